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

/// The waits of a target of kind wait: time in all, number, and of the time that for the world outside, for another task, and in the queue.
#[derive(Debug, Default)]
pub(crate) struct Waits(Counters<5>);

impl Waits {
    /// Adds a wait from `since` to `until`, which ended like this, where that is known. Not inlined: most visits of a span end no wait, and have
    /// less code to fetch without it.
    #[inline(never)]
    pub(crate) fn add(&self, since: Real, ended: Option<Ended>, until: Real) {
        let [outside, task, queue] = ended.map_or([0; 3], |ended| {
            let waited = to_ns(ended.woken - since);
            let queued = to_ns(until - ended.woken);
            match ended.by {
                Cause::Outside => [waited, 0, queued],
                Cause::Task => [0, waited, queued],
            }
        });
        self.0.add([to_ns(until - since), 1, outside, task, queue]);
    }

    /// Time so far in ns, and number.
    pub(crate) fn total(&self) -> (u64, u64) {
        let [ns, count, ..] = self.0.get();
        (ns, count)
    }

    /// Time so far in ns, as far as its cause is known: for the world outside, for another task, and ready but not yet polled.
    pub(crate) fn by_cause(&self) -> [u64; 3] {
        let [_, _, by_cause @ ..] = self.0.get();
        by_cause
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
        let waits = Waits::default();
        let ended = |by| Ended { parked: Real(10), woken: Real(40), by };
        waits.add(Real(5), Some(ended(Cause::Outside)), Real(47));
        waits.add(Real(9), Some(ended(Cause::Task)), Real(41));
        waits.add(Real(9), None, Real(10));
        assert_eq!((waits.total(), waits.by_cause()), ((75, 3), [35, 31, 8]));
    }
}
