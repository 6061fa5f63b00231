//! Rests of threads: times in which a thread is idle, or blocked by another one.
//!
//! A thread that rests takes the delay that passes meanwhile, as far as who ended its rest had
//! taken it. Who that was is not always known: no runtime tells when it notifies a worker, and no
//! lock of std who handed it on.

use super::{Model, ThreadKind, ThreadState};
use crate::ledger::Account;
use crate::time::{Nanos, Real};

/// Time within which a thread that was notified gets going.
const WAKE: Nanos = Nanos::from_micros(100);

/// So much credit passes on at most. Who comes back from a pause later than others on its processor
/// can make it was stopped, and so was most often the whole program (a limit on processor time, a
/// signal, the host): nobody has waited for that one alone.
const MAX_CREDIT: Nanos = Nanos::from_millis(1);

/// The last time that somebody may have been notified: as a task was woken or spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastWake {
    /// When.
    pub at: Real,
    /// L of who did it.
    pub taken: Nanos,
}

impl LastWake {
    /// Whether somebody who was notified then may not run yet at `now`.
    #[inline]
    pub fn is_recent(self, now: Real) -> bool {
        now - self.at <= WAKE
    }

    /// L of who ended the rest of a thread that rested from `since` until `now` and was notified.
    /// A wake that lies longer back than it takes to get going was about something else.
    pub fn taken(self, since: Real, now: Real) -> Option<Nanos> {
        (self.at > since && self.is_recent(now)).then_some(self.taken)
    }
}

/// A rest of a thread that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rested {
    /// When it began.
    pub since: Real,
    /// For how long the thread rested, or how much of its debt that has taken at most.
    pub lasted: Nanos,
    /// L of the thread that ended it. `None` where the thread itself found something to do, or
    /// nobody knows what ended it: it takes all.
    pub by: Option<Nanos>,
    /// Whether the thread pays what is left before it goes on, and tells others then: if it finds
    /// work, it notifies the next one.
    pub pays: bool,
}

impl Rested {
    /// A rest since `since` that ended at `now`, as the thread found something to do itself.
    #[inline]
    pub fn until_found(since: Real, now: Real) -> Rested {
        Rested { since, lasted: now - since, by: None, pays: false }
    }

    /// A rest since `since` that has taken `most` of what is owed, and no more.
    pub fn for_at_most(since: Real, most: Nanos) -> Rested {
        Rested { since, lasted: most, by: None, pays: false }
    }

    /// A rest since `since` that ended at `now`, as another thread had notified this one: the one
    /// that woke somebody `last`, if that can be it.
    pub fn until_notified(since: Real, last: LastWake, now: Real) -> Rested {
        let by = last.taken(since, now);
        Rested { since, lasted: now - since, by, pays: by.is_some() }
    }

    /// A rest of a worker since `since`, between its park hooks. One that has `noticed` something
    /// in the driver has found that itself. Others were notified: by the one that woke somebody
    /// `last`, if that can be it.
    pub fn of_worker(since: Real, noticed: bool, last: LastWake, now: Real) -> Rested {
        if noticed {
            Rested::until_found(since, now)
        } else {
            Rested::until_notified(since, last, now)
        }
    }

    /// A rest of a thread of this kind that begins at `now` what somebody spawned for the blocking
    /// pool whose L was `by`; it was `idle` since then, as far as that is known. `None` where it
    /// did not rest. Of one that was a worker until a task blocked it in place no hook has told
    /// since when it was idle: it owes nothing.
    pub fn in_pool(kind: ThreadKind, idle: Option<Real>, by: Nanos, now: Real) -> Option<Rested> {
        if kind == ThreadKind::Worker {
            return Some(Rested::until_found(Real(0), now));
        }
        let since = idle?;
        Some(Rested { since, lasted: now - since, by: Some(by), pays: false })
    }
}

impl Model<'_> {
    /// The thread of `account`, outside the target, has `rested` until `now`. It takes what it owed
    /// by then, and is to pay the rest. D grew by `late` while it waited for its processor behind
    /// the target, after another thread had ended its rest: that makes it no later.
    // Always: most callers know what ended it.
    #[inline(always)]
    pub fn end_rest(&self, account: &Account, rested: Rested, late: Nanos, now: Real) {
        match rested.by {
            None => self.ledger.absorb(account, rested.lasted, now),
            Some(by) => {
                let credit = if self.rules.credit_passes { MAX_CREDIT } else { Nanos::ZERO };
                let by = by.min(self.ledger.global_delay(now) + credit) + late;
                self.ledger.inherit(account, rested.lasted, by, now);
            }
        }
    }
}

/// A block of a thread by another one, which has begun and not ended.
#[derive(Clone, Copy, Debug)]
#[must_use = "a block that begins also ends"]
pub struct Block {
    since: Real,
    /// The thread's state before.
    before: ThreadState,
    /// The thread was inside the target, which it has left meanwhile.
    inside: bool,
}

/// End of a block, as its shell saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEnd {
    /// Another thread has acted, which had paid before.
    Thread,
    /// A deadline by the virtual clock has passed: the thread has waited for all that was owed.
    VirtualTime,
    /// A deadline by the world outside has passed, which was not sped up: nothing is taken.
    RealTime,
    /// The thread has come out of what it said that it waits for: a lock, most often.
    Said,
}

impl Block {
    /// A thread in the state `before`, `inside` the target or not, blocks at `now`. Returns the
    /// state that it is in from now on, too.
    pub fn begin(before: ThreadState, inside: bool, now: Real) -> (Block, ThreadState) {
        (Block { since: now, before, inside }, before.blocked())
    }

    /// When it began.
    pub fn since(&self) -> Real {
        self.since
    }

    /// Whether the thread is back inside the target afterwards.
    pub fn is_inside(&self) -> bool {
        self.inside
    }

    /// Whether a thread in this state, which the block `end`ed for, pays what it owes before it
    /// goes on. Who has said itself that it blocks pays where it would without: not inside the
    /// target.
    pub fn pays(&self, state: ThreadState, end: BlockEnd) -> bool {
        match end {
            BlockEnd::Thread | BlockEnd::VirtualTime => true,
            BlockEnd::RealTime => false,
            BlockEnd::Said => !self.inside && state.participates(),
        }
    }

    /// Returns the state of the thread after it, from the one that it is in now.
    pub fn end(self, state: ThreadState) -> ThreadState {
        state.unblocked(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Real = Real(1_000_000);
    const NOW: Real = Real(2_000_000);
    const LAST: LastWake = LastWake { at: Real(1_950_000), taken: Nanos(7) };

    #[test]
    fn worker_that_noticed_something_itself_takes_all() {
        let rested = Rested::of_worker(SINCE, true, LAST, NOW);
        assert_eq!((rested.by, rested.pays, rested.lasted), (None, false, NOW - SINCE));
    }

    #[test]
    fn notified_worker_takes_what_the_notifier_had_and_pays_the_rest() {
        let rested = Rested::of_worker(SINCE, false, LAST, NOW);
        assert_eq!((rested.by, rested.pays), (Some(LAST.taken), true));
    }

    #[test]
    fn wake_before_the_rest_or_long_ago_has_not_ended_it() {
        let before = LastWake { at: SINCE, ..LAST };
        let long_ago = LastWake { at: Real(1_100_000), ..LAST };
        for last in [before, long_ago] {
            let rested = Rested::until_notified(SINCE, last, NOW);
            assert_eq!(rested, Rested::until_found(SINCE, NOW));
        }
    }

    #[test]
    fn thread_of_the_pool_has_waited_for_the_one_that_spawned_unless_it_was_a_worker() {
        let in_pool = |kind, idle| Rested::in_pool(kind, idle, Nanos(7), NOW);
        let rested = in_pool(ThreadKind::Other, Some(SINCE)).unwrap();
        assert_eq!((rested.by, rested.lasted, rested.pays), (Some(Nanos(7)), NOW - SINCE, false));
        assert_eq!(in_pool(ThreadKind::Other, None), None);
        let was_worker = in_pool(ThreadKind::Worker, None).unwrap();
        assert_eq!((was_worker.by, was_worker.lasted), (None, NOW - Real(0)));
    }
}
