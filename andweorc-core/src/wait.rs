//! Waits: the time in which a task, or a span that is open, does not run, and what ended it.

use crate::counter::Counters;
use crate::time::{Nanos, Real};

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The world outside: a timer or a socket. The two cannot be told apart on stable tokio.
    Outside,
    /// Another task or thread of the program: a lock, a channel, a join.
    Task,
}

/// A task's wait that is over: the task was polled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When the task parked.
    pub parked: Real,
    /// When it was woken for the first time.
    pub woken: Real,
    /// By whom.
    pub by: Cause,
}

/// The time that a target of kind wait took, by cause: outside, task, queue.
#[derive(Debug, Default)]
pub(crate) struct Split(Counters<3>);

impl Split {
    /// Adds a wait from `since` to `until`.
    pub(crate) fn add(&self, since: Real, ended: Ended, until: Real) {
        let waited = to_ns(ended.woken - since);
        let queued = to_ns(until - ended.woken);
        self.0.add(match ended.by {
            Cause::Outside => [waited, 0, queued],
            Cause::Task => [0, waited, queued],
        });
    }

    /// Time so far in ns: for the world outside, for another task, and ready but not yet polled.
    pub(crate) fn get(&self) -> [u64; 3] {
        self.0.get()
    }
}

fn to_ns(time: Nanos) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_split_at_its_wake() {
        let split = Split::default();
        let ended = |by| Ended { parked: Real(10), woken: Real(40), by };
        split.add(Real(5), ended(Cause::Outside), Real(47));
        split.add(Real(9), ended(Cause::Task), Real(41));
        assert_eq!(split.get(), [35, 31, 8]);
    }
}
