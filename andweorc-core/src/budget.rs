//! Whether tasks of a kind wait for nothing but what asks for the runtime's budget first. Many
//! begin with a wait of another kind, until all are there, say: the first wait of each task has a
//! record of its own.
//!
//! tokio lets a task do so many things in one poll. All that it lets a task wait for asks for that
//! budget before anything else, but for a few (`Notify`, `readable`); what waits for other things
//! (futures' channels, flume) asks for nothing. A task that nobody wrapped can be held by taking
//! its budget away, and can't see that as long as everything that it waits for asks: nothing is
//! ready, and the poll ends. A task that goes on for something else would find tokio's channels
//! empty that are not.
//!
//! So tasks of a kind are held only while the last 32 of its waits that were looked at have asked.
//! One poll of 17 is looked at then. A look may also be wrong, and take a wait for one that has not
//! asked.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Waits in a row that have asked before a kind may be held.
const ENOUGH: u32 = 32;

/// One of so many polls is looked at after that. A prime: polls of two kinds often take turns.
const EVERY: u32 = 17;

/// The record of one kind of task: whether its waits ask for budget.
#[derive(Debug, Default)]
pub struct Asks {
    /// Waits that were looked at since one had not asked.
    asked: AtomicU32,
    polls: AtomicU32,
}

// All accesses are Relaxed: they publish nothing else, and of two threads that count at once one
// may be forgotten.

impl Asks {
    /// Whether the poll that begins is to be looked at.
    pub fn looks(&self) -> bool {
        let polls = self.polls.load(Relaxed).wrapping_add(1);
        self.polls.store(polls, Relaxed);
        !self.always() || polls.is_multiple_of(EVERY)
    }

    /// A wait was looked at, and asked or did not.
    pub fn looked_at(&self, asked: bool) {
        let before = self.asked.load(Relaxed);
        self.asked.store(if asked { before.saturating_add(1) } else { 0 }, Relaxed);
    }

    /// Whether enough of the last waits that were looked at have asked.
    #[inline]
    pub fn always(&self) -> bool {
        self.asked.load(Relaxed) >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_asks_always_while_enough_waits_in_a_row_did() {
        let asks = Asks::default();
        for _ in 0..2 {
            for _ in 0..ENOUGH {
                assert!(!asks.always() && asks.looks());
                asks.looked_at(true);
            }
            assert!(asks.always());
            assert_eq!((0..10 * EVERY).filter(|_| asks.looks()).count(), 10);
            asks.looked_at(false);
        }
        for _ in 0..10 * ENOUGH {
            asks.looked_at(true);
            asks.looked_at(false);
            assert!(!asks.always(), "one in two does not");
        }
    }
}
