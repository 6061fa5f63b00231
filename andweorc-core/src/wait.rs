//! Waits: the time in which a task, or a span that is open, does not run, and what ended it.

use crate::counter::Counter;
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

/// The time that a target of kind wait took, by cause.
#[derive(Debug, Default)]
pub(crate) struct Split {
    outside: Counter,
    task: Counter,
    queue: Counter,
}

impl Split {
    /// Adds a wait from `since` to `until`.
    pub(crate) fn add(&self, since: Real, ended: Ended, until: Real) {
        let waited = match ended.by {
            Cause::Outside => &self.outside,
            Cause::Task => &self.task,
        };
        waited.add(to_ns(ended.woken - since));
        self.queue.add(to_ns(until - ended.woken));
    }

    /// Time so far in ns: for the world outside, for another task, and ready but not yet polled.
    pub(crate) fn get(&self) -> [u64; 3] {
        [&self.outside, &self.task, &self.queue].map(Counter::get)
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
