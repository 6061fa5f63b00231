//! Queue of what is held, in the order in which it is due.

use super::Held;
use crate::time::Virtual;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

/// A queue of what is held. The earliest comes first.
#[derive(Default)]
pub struct Waiting(BinaryHeap<Entry>);

struct Entry {
    due: Virtual,
    held: Arc<dyn Held>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.due == other.due
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The earliest is the greatest: `BinaryHeap` gives the greatest first.
    fn cmp(&self, other: &Entry) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl Waiting {
    /// None yet.
    pub const fn new() -> Waiting {
        Waiting(BinaryHeap::new())
    }

    /// Adds one. Says whether it is the first that is due.
    pub fn push(&mut self, due: Virtual, held: Arc<dyn Held>) -> bool {
        let first = self.first().is_none_or(|first| due < first);
        self.0.push(Entry { due, held });
        first
    }

    /// When the first is due.
    pub fn first(&self) -> Option<Virtual> {
        self.0.peek().map(|first| first.due)
    }

    /// Takes the first out.
    pub fn pop(&mut self) -> Option<Arc<dyn Held>> {
        self.0.pop().map(|first| first.held)
    }

    /// Takes out what is due when the virtual clock is at `now`, in order.
    pub fn take_due(&mut self, now: Virtual) -> Vec<Arc<dyn Held>> {
        let mut due = Vec::new();
        while self.first().is_some_and(|first| first <= now) {
            due.extend(self.pop());
        }
        due
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|entry| entry.due)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Held for Nothing {
        fn release(self: Arc<Self>) {}
    }

    #[test]
    fn takes_what_is_due_in_order_and_leaves_the_rest() {
        let mut waiting = Waiting::new();
        let firsts = [30, 10, 20, 21].map(|due| waiting.push(Virtual(due), Arc::new(Nothing)));
        assert_eq!(firsts, [true, true, false, false]);
        assert_eq!(waiting.take_due(Virtual(20)).len(), 2);
        assert_eq!(waiting.first(), Some(Virtual(21)));
        assert_eq!(format!("{waiting:?}"), "[Virtual(21), Virtual(30)]");
    }
}
