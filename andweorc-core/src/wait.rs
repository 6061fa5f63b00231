//! Waits: the time in which a task, or a span that is open, does not run, and what ended it.

use crate::counter::Counters;
use crate::time::{Nanos, Real};
use std::fmt;
use std::num::NonZeroI64;

/// Cause that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The world outside: a socket; or a timer, where the two can't be told apart.
    Outside = 0,
    /// Another task or thread of the program: a lock, a channel, a join.
    Task = 1,
    /// A timer.
    Timer = 2,
}

/// A task's wait that is over: the task was polled again. An `Option` of it is two words, which
/// each poll keeps in registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    parked: Real,
    /// When the task was woken, four times, plus 1 and its [`Cause`].
    woken: NonZeroI64,
}

const _: () = assert!(size_of::<Option<Ended>>() == 16, "two words");

impl Ended {
    /// Of a task that parked at `parked`, and was woken for the first time at `woken`, `by` whom.
    #[inline]
    pub fn new(parked: Real, woken: Real, by: Cause) -> Ended {
        let woken = NonZeroI64::new((woken.0 << 2) | (1 + by as i64)).expect("no cause is 0");
        Ended { parked, woken }
    }

    /// When the task parked.
    #[inline]
    pub fn parked(self) -> Real {
        self.parked
    }

    /// When it was woken for the first time.
    #[inline]
    pub fn woken(self) -> Real {
        Real(self.woken.get() >> 2)
    }

    /// By whom.
    #[inline]
    pub fn by(self) -> Cause {
        match self.woken.get() & 3 {
            1 => Cause::Outside,
            2 => Cause::Task,
            _ => Cause::Timer,
        }
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parked, woken, by) = (self.parked, self.woken(), self.by());
        write!(f, "Ended {{ parked: {parked:?}, woken: {woken:?}, by: {by:?} }}")
    }
}

/// The waits of a target of kind wait.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Time in all, number, and of the time that for the world outside, for another task, and in
    /// the queue.
    times: Counters<5>,
    /// Of that for the world outside, what spans inside of it waited, and what was for timers.
    outside: Counters<2>,
}

impl Waits {
    /// Adds a wait from `since` to `until`, which ended like this, where that is known. Not
    /// inlined: most visits of a span end no wait, and have less code to fetch without it.
    #[inline(never)]
    pub(crate) fn add(&self, since: Real, ended: Option<Ended>, until: Real) {
        let [outside, task, queue] = ended.map_or([0; 3], |ended| {
            let waited = to_ns(ended.woken() - since);
            let queued = to_ns(until - ended.woken());
            match ended.by() {
                Cause::Outside => [waited, 0, queued],
                Cause::Task => [0, waited, queued],
                Cause::Timer => {
                    self.outside.add([0, waited]);
                    [waited, 0, queued]
                }
            }
        });
        self.times.add([to_ns(until - since), 1, outside, task, queue]);
    }

    /// Adds a wait for the world outside, of so many ns, that a span inside of this one had.
    pub(crate) fn add_inside(&self, outside_ns: u64) {
        self.outside.add([outside_ns, 0]);
    }

    /// Time so far in ns, and number.
    pub(crate) fn total(&self) -> (u64, u64) {
        let [ns, count, ..] = self.times.get();
        (ns, count)
    }

    /// Time so far in ns, as far as its cause is known: for the world outside, for another task,
    /// and ready but not yet polled.
    pub(crate) fn by_cause(&self) -> [u64; 3] {
        let [_, _, by_cause @ ..] = self.times.get();
        by_cause
    }

    /// Of the time for the world outside that for timers, as far as they are told from it. ns.
    pub(crate) fn for_timers(&self) -> u64 {
        let [_, timers] = self.outside.get();
        timers
    }

    /// Time so far in ns that it waited for the world outside, and no span inside of it did.
    pub(crate) fn own_outside(&self) -> u64 {
        let ([outside, ..], [inside, _]) = (self.by_cause(), self.outside.get());
        outside.saturating_sub(inside)
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
        let ended = |by| Ended::new(Real(10), Real(40), by);
        waits.add(Real(5), Some(ended(Cause::Outside)), Real(47));
        waits.add(Real(9), Some(ended(Cause::Task)), Real(41));
        waits.add(Real(9), None, Real(10));
        assert_eq!((waits.total(), waits.by_cause()), ((75, 3), [35, 31, 8]));
        waits.add_inside(25);
        assert_eq!((waits.own_outside(), waits.by_cause()), (10, [35, 31, 8]));
        assert_eq!(waits.for_timers(), 0);
        waits.add(Real(5), Some(ended(Cause::Timer)), Real(47));
        assert_eq!((waits.for_timers(), waits.by_cause()), (35, [70, 31, 15]));
    }
}
