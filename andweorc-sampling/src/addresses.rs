//! Addresses as the signal handler knows them: whether code there is inside the target of the
//! running experiment.
//!
//! A table that only grows, of addresses that were sampled before and are resolved by now. The
//! handler looks them up; who resolves adds them, and judges all anew when the target changes. An
//! address whose code was unloaded keeps its place and is unknown again, since other code may be
//! loaded there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Places in the table. An address for which none is near stays unknown.
const PLACES: usize = 1 << 16;

/// Verdict on whether the code at an address is inside the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// Nothing yet: it was never sampled before.
    Unknown = 0,
    /// Its callers decide.
    Callers = 1,
    /// The address is inside the target.
    Inside = 2,
    /// The address is outside the target, whoever called it.
    Outside = 3,
}

/// The table that the handler asks, once there is one.
static TABLE: OnceLock<Addresses> = OnceLock::new();

/// Returns the table that the handler asks.
pub fn table() -> &'static Addresses {
    TABLE.get_or_init(Addresses::default)
}

/// Returns that table once somebody has asked for it. Async-signal-safe.
pub(crate) fn known() -> Option<&'static Addresses> {
    TABLE.get()
}

/// The table. One writer at a time.
#[derive(Debug)]
pub struct Addresses {
    places: Box<[(AtomicU64, AtomicU8)]>,
}

impl Default for Addresses {
    /// A table that knows no address.
    fn default() -> Addresses {
        let place = || (AtomicU64::new(0), AtomicU8::new(Verdict::Unknown as u8));
        Addresses { places: (0..PLACES).map(|_| place()).collect() }
    }
}

impl Addresses {
    /// Returns what is known of `address`. Async-signal-safe.
    pub fn get(&self, address: u64) -> Verdict {
        for (at, verdict) in self.from(address) {
            // Acquire: pairs with the release in `set`, after which the verdict is there.
            match at.load(Ordering::Acquire) {
                0 => return Verdict::Unknown,
                found if found == address => {
                    // Relaxed: a verdict stands for itself, and a new one counts from the next
                    // sample on.
                    return match verdict.load(Ordering::Relaxed) {
                        1 => Verdict::Callers,
                        2 => Verdict::Inside,
                        3 => Verdict::Outside,
                        _ => Verdict::Unknown,
                    };
                }
                _ => {}
            }
        }
        Verdict::Unknown
    }

    /// Sets what is known of `address`. False when there is no place.
    pub fn set(&self, address: u64, now: Verdict) -> bool {
        for (at, verdict) in self.from(address) {
            // Relaxed: only this side writes it.
            let found = at.load(Ordering::Relaxed);
            if found == 0 || found == address {
                // Relaxed: published by the address, or on its own.
                verdict.store(now as u8, Ordering::Relaxed);
                // Release: pairs with the acquire in `get`.
                at.store(address, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Makes all addresses unknown.
    pub fn forget(&self) {
        for (_, verdict) in &self.places {
            // Relaxed: a verdict stands for itself.
            verdict.store(Verdict::Unknown as u8, Ordering::Relaxed);
        }
    }

    /// Whether a chain is inside the target: the first address decides that can. `None` when one
    /// before is unknown.
    pub fn judge(&self, chain: &[u64]) -> Option<bool> {
        for &address in chain {
            match self.get(address) {
                Verdict::Unknown => return None,
                Verdict::Callers => {}
                Verdict::Inside => return Some(true),
                Verdict::Outside => return Some(false),
            }
        }
        Some(false)
    }

    /// The places where `address` may be, the likeliest first. A handler must not search for long:
    /// there are a few.
    fn from(&self, address: u64) -> impl Iterator<Item = &(AtomicU64, AtomicU8)> {
        const TRIES: usize = 16;
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (0..TRIES).map(move |i| &self.places[(hash as usize + i) % PLACES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_address_that_can_decides() {
        let table = Addresses::default();
        let known = [(10, Verdict::Callers), (20, Verdict::Inside), (30, Verdict::Outside)];
        assert!(known.iter().all(|&(address, verdict)| table.set(address, verdict)));
        assert_eq!(table.judge(&[10, 20, 30]), Some(true));
        assert_eq!(table.judge(&[10, 30, 20]), Some(false));
        assert_eq!(table.judge(&[10, 10]), Some(false), "nobody above is inside");
        assert_eq!(table.judge(&[10, 40, 20]), None);
        assert!(table.set(20, Verdict::Outside));
        assert_eq!(table.judge(&[10, 20]), Some(false));
    }

    #[test]
    fn forgotten_addresses_are_unknown_and_can_be_judged_anew() {
        let table = Addresses::default();
        assert!(table.set(10, Verdict::Inside) && table.set(20, Verdict::Inside));
        assert!(table.set(10, Verdict::Unknown));
        assert_eq!((table.judge(&[10]), table.judge(&[20])), (None, Some(true)));
        table.forget();
        assert_eq!(table.judge(&[20]), None);
        assert!(table.set(20, Verdict::Outside));
        assert_eq!(table.judge(&[20]), Some(false));
    }

    #[test]
    fn a_full_table_refuses_and_stays_right() {
        let table = Addresses::default();
        let kept: Vec<u64> = (1..=2 * PLACES as u64)
            .filter(|address| table.set(*address * 3, Verdict::Inside))
            .collect();
        assert!(kept.len() > PLACES / 2 && kept.len() <= PLACES);
        assert!(kept.iter().all(|address| table.get(address * 3) == Verdict::Inside));
        assert_eq!(table.get(1), Verdict::Unknown);
    }
}
