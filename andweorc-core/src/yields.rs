//! Which kinds of tasks are worth asking, at the end of a poll, whether they have only yielded.
//!
//! A task that yields with `tokio::task::yield_now` is woken by its worker between two polls, in nobody's name, as by an event that a busy
//! worker finds when it looks for some: the wake does not tell. That can be asked as the poll ends, but it costs more than the poll of a small
//! task. So only kinds are asked of which a wake came that way, and those that mostly say no are asked less and less.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many polls of a kind are asked first, and again after each that had yielded.
const ASK: u32 = 8;

/// A kind of which none of them had is asked once more after so many wakes that may have been a yield's.
const EVERY: u32 = 64;

/// What is known of the polls of one kind of task.
#[derive(Debug, Default)]
pub struct Yields {
    /// So many polls are still to be asked.
    left: AtomicU32,
    /// Wakes that may have been a yield's, while none was.
    maybe: AtomicU32,
}

// All accesses are Relaxed: which polls are asked is a matter of cost, and of two threads that count at once one may be forgotten.

impl Yields {
    /// A task of this kind was woken by a busy worker between two polls, in nobody's name.
    #[inline]
    pub fn may_have(&self) {
        if !self.asks() {
            self.count_maybe();
        }
    }

    fn count_maybe(&self) {
        let maybe = self.maybe.load(Relaxed);
        self.maybe.store(maybe.wrapping_add(1), Relaxed);
        if maybe == 0 {
            self.left.store(ASK, Relaxed);
        } else if maybe.is_multiple_of(EVERY) {
            self.left.store(1, Relaxed);
        }
    }

    /// Whether the next poll is to be asked.
    #[inline]
    pub fn asks(&self) -> bool {
        self.left.load(Relaxed) > 0
    }

    /// What it said.
    pub fn answered(&self, yielded: bool) {
        let left = if yielded { ASK } else { self.left.load(Relaxed).saturating_sub(1) };
        self.left.store(left, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many polls are asked that all say the same, each after a wake that may have been a yield's.
    fn asked(yields: &Yields, polls: u32, yielded: bool) -> u32 {
        let asked = (0..polls).filter(|_| {
            yields.may_have();
            let asks = yields.asks();
            if asks {
                yields.answered(yielded);
            }
            asks
        });
        asked.count() as u32
    }

    #[test]
    fn who_yields_is_asked_each_time() {
        assert_eq!(asked(&Yields::default(), 1000, true), 1000);
    }

    #[test]
    fn who_does_not_is_asked_seldom() {
        let yields = Yields::default();
        assert_eq!(asked(&yields, 1 + 10 * EVERY, false), ASK + 9);
        assert!(asked(&yields, 2 * EVERY, true) > EVERY, "it is found out if that changes");
    }

    #[test]
    fn nobody_is_asked_without_reason() {
        assert!(!Yields::default().asks());
    }
}
