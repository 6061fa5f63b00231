//! Whether tasks of a kind wait for nothing but what asks for the runtime's budget first.
//!
//! tokio lets a task do so many things in one poll. All that it lets a task wait for asks for that budget before anything else, but
//! for a few (`Notify`, `readable`); what waits for other things (futures' channels, flume) asks for nothing. A task that nobody wrapped
//! can be held by taking its budget away, and can't see that as long as everything that it waits for asks: nothing is ready,
//! and the poll ends. A task that goes on for something else would find tokio's channels empty that are not.
//!
//! So a kind is held only if what its tasks wait for was looked at, [`ENOUGH`] times, and asked each time. One that did not is never held
//! again. After that one poll of [`EVERY`] is looked at.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Looks after which a kind may be held.
const ENOUGH: u32 = 32;

/// One of so many polls is looked at after that.
const EVERY: u32 = 16;

/// What is known of the waits of one kind of task.
#[derive(Debug, Default)]
pub struct Asks {
    /// Waits that were looked at, all of which asked.
    asked: AtomicU32,
    /// One did not.
    never: AtomicBool,
    polls: AtomicU32,
}

// All accesses are Relaxed: they publish nothing else, and of two threads that count at once one may be forgotten.

impl Asks {
    /// Whether the poll that begins is to be looked at.
    pub fn looks(&self) -> bool {
        if self.never.load(Relaxed) {
            return false;
        }
        let polls = self.polls.load(Relaxed).wrapping_add(1);
        self.polls.store(polls, Relaxed);
        self.asked.load(Relaxed) < ENOUGH || polls.is_multiple_of(EVERY)
    }

    /// Waits began in a poll that was looked at: each of them asked, or one did not.
    pub fn looked_at(&self, waits: u32, all_asked: bool) {
        if all_asked {
            self.asked.store(self.asked.load(Relaxed).saturating_add(waits), Relaxed);
        } else {
            self.never.store(true, Relaxed);
        }
    }

    /// Whether all waits that were looked at asked for budget, and these were enough.
    pub fn always(&self) -> bool {
        !self.never.load(Relaxed) && self.asked.load(Relaxed) >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_asks_always_once_enough_waits_did_and_as_long_as_all_do() {
        let asks = Asks::default();
        for _ in 0..ENOUGH {
            assert!(!asks.always() && asks.looks());
            asks.looked_at(1, true);
        }
        assert!(asks.always());
        assert_eq!((0..10 * EVERY).filter(|_| asks.looks()).count(), 10);
        asks.looked_at(2, false);
        assert!(!asks.always() && !asks.looks(), "for good");
        asks.looked_at(1, true);
        assert!(!asks.always());
    }
}
