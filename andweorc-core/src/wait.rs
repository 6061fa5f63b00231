//! Waits: the time in which a task, or a span that is open, does not run, and what ended it.

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

/// Of a wait from `since` to `until`, the ns for the world outside, for another task, and ready but not yet polled.
#[inline]
pub(crate) fn split(since: Real, ended: Ended, until: Real) -> [u64; 3] {
    let waited = to_ns(ended.woken - since);
    let queued = to_ns(until - ended.woken);
    match ended.by {
        Cause::Outside => [waited, 0, queued],
        Cause::Task => [0, waited, queued],
    }
}

/// No less than none.
#[inline]
pub(crate) fn to_ns(time: Nanos) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_split_at_its_wake() {
        let ended = |by| Ended { parked: Real(10), woken: Real(40), by };
        assert_eq!(split(Real(5), ended(Cause::Outside), Real(47)), [35, 0, 7]);
        assert_eq!(split(Real(9), ended(Cause::Task), Real(41)), [0, 31, 1]);
    }
}
