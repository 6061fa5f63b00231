//! Rests of threads: times in which a thread is idle, or blocked by another one.
//!
//! A thread that rests takes the delay that passes meanwhile, as far as who ended its rest had
//! taken it. Who that was is not always known: no runtime tells when it notifies a worker, and no
//! lock of std who handed it on.

use super::{Model, ThreadState};
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

/// End of a thread's rest, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestEnd {
    /// The thread itself found something to do, or nobody knows what ended it: it takes all.
    Unknown,
    /// Another thread.
    Thread {
        /// L of that one.
        by: Nanos,
        /// By so much D grew while the thread waited for its processor behind the target, which
        /// makes it no later.
        late: Nanos,
    },
}

impl Model<'_> {
    /// The thread of `account`, outside the target, has rested for `rested` until `now`, when `end`
    /// ended that. It takes what it owed by then, and is to pay the rest.
    // Always: most callers know what ended it.
    #[inline(always)]
    pub fn end_rest(&self, account: &Account, rested: Nanos, end: RestEnd, now: Real) {
        match end {
            RestEnd::Unknown => self.ledger.absorb(account, rested, now),
            RestEnd::Thread { by, late } => {
                let credit = if self.rules.credit_passes { MAX_CREDIT } else { Nanos::ZERO };
                let by = by.min(self.ledger.global_delay(now) + credit) + late;
                self.ledger.inherit(account, rested, by, now);
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
