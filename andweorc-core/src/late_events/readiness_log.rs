//! When input came for the sockets of the program, as a [thread](super::epoll_watcher) that slept
//! until then noticed.

use crate::time::Real;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicUsize};

/// So many are kept: those of a tenth of a second at 2500 a second.
const MAX_KEPT: usize = 256;

/// The last inputs, of all sockets together.
#[derive(Debug)]
pub struct ReadinessLog {
    /// When they came, real ns; 0 before there was one.
    came: [AtomicI64; MAX_KEPT],
    /// How many there were.
    counted: AtomicUsize,
    /// How many of them told when something came.
    used: AtomicUsize,
}

impl ReadinessLog {
    /// None yet.
    pub const fn new() -> ReadinessLog {
        let [counted, used] = [const { AtomicUsize::new(0) }; 2];
        ReadinessLog { came: [const { AtomicI64::new(0) }; MAX_KEPT], counted, used }
    }

    /// One came. Only one thread may say so, in their order.
    pub fn record(&self, at: Real) {
        // Relaxed: nobody else writes it.
        let counted = self.counted.load(Relaxed);
        // Relaxed: published by the count.
        self.came[counted % MAX_KEPT].store(at.0, Relaxed);
        // Release: pairs with the Acquire of `first`, which reads no further than this.
        self.counted.store(counted.wrapping_add(1), Release);
    }

    /// Counts that one told when something came.
    pub(super) fn count_use(&self) {
        // Relaxed: only counted.
        self.used.fetch_add(1, Relaxed);
    }

    /// How many told when something came, up to now.
    pub(super) fn used(&self) -> usize {
        // Relaxed: only counted.
        self.used.load(Relaxed)
    }

    /// When the first one came after `after`, `until` then at the latest.
    pub(super) fn first(&self, after: Real, until: Real) -> Option<Real> {
        // Acquire: pairs with the Release of `record`.
        let counted = self.counted.load(Acquire);
        // From the last one back: mostly none is that young. The oldest may be written over
        // meanwhile, by one that is younger than all. Relaxed: published by the count.
        let back = (1..=MAX_KEPT)
            .map(|back| self.came[counted.wrapping_sub(back) % MAX_KEPT].load(Relaxed));
        let young = back.map(Real).take_while(|&came| after < came);
        young.filter(|&came| came <= until).min()
    }
}

impl Default for ReadinessLog {
    fn default() -> ReadinessLog {
        ReadinessLog::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_between_two_times() {
        let inputs = ReadinessLog::new();
        assert_eq!(inputs.first(Real(0), Real(i64::MAX)), None);
        for at in [10, 20, 30] {
            inputs.record(Real(at));
        }
        assert_eq!(inputs.first(Real(0), Real(100)), Some(Real(10)));
        assert_eq!(inputs.first(Real(10), Real(100)), Some(Real(20)));
        assert_eq!(inputs.first(Real(20), Real(30)), Some(Real(30)));
        assert_eq!(inputs.first(Real(20), Real(29)), None);
    }

    #[test]
    fn old_ones_are_forgotten() {
        let inputs = ReadinessLog::new();
        for at in 1..=MAX_KEPT as i64 + 3 {
            inputs.record(Real(at));
        }
        assert_eq!(inputs.first(Real(0), Real(i64::MAX)), Some(Real(4)));
    }
}
