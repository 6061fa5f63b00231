//! Which polls are worth marking, so that it shows whether they have yielded.
//!
//! A task that yields with `tokio::task::yield_now` is woken by its worker between two polls, in
//! nobody's name, as by an event that a busy worker finds when it looks for some: the wake does not
//! tell. A mark behind the poll does, but costs more than the poll of a small task. So only polls
//! of kinds are marked of which a wake came that way, and of those that do not yield fewer and
//! fewer.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many polls of a kind are marked first.
const FIRST: u32 = 8;

/// And after one that had yielded. All tasks of a kind may yield before the first of them is woken.
const AGAIN: u32 = 256;

/// A kind of which none had is marked once more after so many wakes that may have been a yield's.
const EVERY: u32 = 64;

/// Record of one kind of task: how many of its polls are still to be marked.
#[derive(Debug, Default)]
pub struct Yields {
    /// So many polls are still to be marked.
    left: AtomicU32,
    /// Wakes that may have been a yield's, while none was.
    maybe: AtomicU32,
}

// All accesses are Relaxed: which polls are marked is a matter of cost, and of two threads that
// count at once one may be forgotten.

impl Yields {
    /// A task of this kind was woken by a busy worker between two polls, in nobody's name, and no
    /// mark told why.
    #[inline]
    pub fn may_have(&self) {
        if !self.marks() {
            self.count_maybe();
        }
    }

    fn count_maybe(&self) {
        let maybe = self.maybe.load(Relaxed);
        self.maybe.store(maybe.wrapping_add(1), Relaxed);
        if maybe == 0 {
            self.left.store(FIRST, Relaxed);
        } else if maybe.is_multiple_of(EVERY) {
            self.left.store(1, Relaxed);
        }
    }

    /// Whether the next poll is to be marked.
    #[inline]
    pub fn marks(&self) -> bool {
        self.left.load(Relaxed) > 0
    }

    /// Records that a poll was marked.
    pub fn marked(&self) {
        self.left.store(self.left.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// By a mark: a task of this kind had yielded.
    pub fn had(&self) {
        // Written seldom, since all workers read it.
        if self.left.load(Relaxed) < AGAIN / 2 {
            self.left.store(AGAIN, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many polls are marked, each after a wake that may have been a yield's; marks
    /// tell whether they `yielded`.
    fn marked(yields: &Yields, polls: u32, yielded: bool) -> u32 {
        let mut known = false;
        let marked = (0..polls).filter(|_| {
            if known {
                yields.had();
            } else {
                yields.may_have();
            }
            let marks = yields.marks();
            if marks {
                yields.marked();
            }
            known = marks && yielded;
            marks
        });
        marked.count() as u32
    }

    #[test]
    fn task_kind_that_yields_has_every_poll_marked() {
        assert_eq!(marked(&Yields::default(), 5000, true), 5000);
    }

    #[test]
    fn task_kind_that_does_not_yield_is_marked_seldom() {
        let yields = Yields::default();
        assert_eq!(marked(&yields, 1 + 10 * EVERY, false), FIRST + 9);
        assert!(marked(&yields, 2 * EVERY, true) > EVERY, "it is found out if that changes");
        let ceased = marked(&yields, 2 * AGAIN, false);
        assert!(ceased <= AGAIN + 2 * AGAIN / EVERY, "{ceased}: and if it ceases");
    }

    #[test]
    fn nobody_is_marked_without_reason() {
        assert!(!Yields::default().marks());
    }
}
