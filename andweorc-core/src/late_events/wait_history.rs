//! How long tasks of one kind wait for the world outside.
//!
//! Of a wait whose end is noticed at once that is known, of another one only between which bounds.
//! Those known are not like the others: what ends a wait makes workers busy, and so which of the
//! next ones are noticed late: by those known alone the others would be taken to end too late. So
//! the others count too, each as what it is taken to be. That is Turnbull's estimate of a
//! distribution from data of which some are only known between bounds, which is what it makes of
//! them itself ("The empirical distribution function with arbitrarily grouped, censored and
//! truncated data", 1976), by draws in the place of shares (Tanner and Wong, "The calculation of
//! posterior distributions by data augmentation", 1987).

use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// So many are kept: a service changes, and what one wait of fifty is like should not be forgotten.
const MAX_KEPT: usize = 128;

/// Waits are steady if half of them differ by less than this part.
const MAX_SPREAD: f64 = 0.05;

/// Number of waits that must be known before they can be steady.
const MIN_KNOWN: usize = 8;

/// The last waits of tasks of one kind, one by one: it waits now for a timer, now for a database.
#[derive(Debug)]
pub struct WaitHistory {
    /// ns.
    waits: [AtomicU64; MAX_KEPT],
    /// How many were counted.
    counted: AtomicUsize,
    /// With which the next [draw](WaitHistory::draw) begins.
    turn: AtomicUsize,
}

// All accesses are Relaxed: it is a guess, and of two threads that count or draw at once one may be
// forgotten.

impl Default for WaitHistory {
    fn default() -> WaitHistory {
        WaitHistory {
            waits: std::array::from_fn(|_| AtomicU64::new(0)),
            counted: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
        }
    }
}

impl WaitHistory {
    /// Counts one, as it was or is taken to have been.
    pub fn count(&self, waited: Nanos) {
        let place = self.counted.fetch_add(1, Relaxed) % MAX_KEPT;
        self.waits[place].store(waited.0.max(0) as u64, Relaxed);
    }

    /// Whether they are all much alike: the middle half of them at least.
    pub(crate) fn is_steady(&self) -> bool {
        let kept = self.counted.load(Relaxed).min(MAX_KEPT);
        if kept < MIN_KNOWN {
            return false;
        }
        let mut waits: Vec<_> = self.waits[..kept].iter().map(|it| it.load(Relaxed)).collect();
        waits.sort_unstable();
        let (least, most) = (waits[kept / 4] as f64, waits[kept * 3 / 4] as f64);
        most - least < most * MAX_SPREAD
    }

    /// The length of a wait that is known to be from `least` to `most`: that of one of those that
    /// were, of each in its turn. Where none was, the middle.
    ///
    /// One of them and not their mean: a task is held for what is left of its wait, and for nothing
    /// if that is over. So by the mean it would be held for less than waits of different lengths
    /// are on average (Jensen's inequality).
    pub(crate) fn draw(&self, least: Nanos, most: Nanos) -> Nanos {
        let kept = self.counted.load(Relaxed).min(MAX_KEPT);
        let first = self.turn.load(Relaxed);
        let in_turn = (first..first + kept).map(|turn| turn % kept);
        let wait = |place: usize| Nanos(self.waits[place].load(Relaxed) as i64);
        let found = in_turn
            .map(|place| (place, wait(place)))
            .find(|&(_, wait)| least <= wait && wait <= most);
        match found {
            Some((place, wait)) => {
                self.turn.store(place + 1, Relaxed);
                wait
            }
            None => least + Nanos((most - least).0 / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: i64) -> Nanos {
        Nanos::from_micros(us)
    }

    #[test]
    fn wait_is_drawn_from_typical_waits_within_its_bounds() {
        let typical = WaitHistory::default();
        for _ in 0..10 {
            typical.count(us(400));
            typical.count(us(1000));
        }
        assert_eq!(typical.draw(us(300), us(500)), us(400));
        assert_eq!(typical.draw(us(500), us(2000)), us(1000), "it had not come by 500");
    }

    #[test]
    fn each_is_drawn_in_its_turn() {
        let typical = WaitHistory::default();
        for waited in [400, 5000, 1000, 700] {
            typical.count(us(waited));
        }
        let drawn: Vec<_> = (0..6).map(|_| typical.draw(us(0), us(2000))).collect();
        assert_eq!(drawn, [400, 1000, 700, 400, 1000, 700].map(us));
    }

    #[test]
    fn of_a_wait_unlike_all_others_only_the_bounds_are_known() {
        let typical = WaitHistory::default();
        assert_eq!(typical.draw(us(100), us(200)), us(150), "nothing is known");
        typical.count(us(400));
        assert_eq!(typical.draw(us(100), us(200)), us(150));
        assert_eq!(typical.draw(us(500), us(600)), us(550));
    }

    #[test]
    fn old_waits_are_forgotten() {
        let typical = WaitHistory::default();
        typical.count(us(1100));
        for _ in 0..MAX_KEPT {
            typical.count(us(1300));
        }
        assert_eq!(typical.draw(us(1050), us(1350)), us(1300));
        assert_eq!(typical.draw(us(1050), us(1150)), us(1100), "the middle");
    }

    #[test]
    fn waits_of_which_most_are_alike_are_steady() {
        let typical = WaitHistory::default();
        assert!(!typical.is_steady(), "nothing is known");
        for n in 0..20 {
            typical.count(us(1000 + n));
        }
        typical.count(us(2000));
        assert!(typical.is_steady());
        for n in 0..40 {
            typical.count(us(300 + 10 * n));
        }
        assert!(!typical.is_steady());
    }
}
