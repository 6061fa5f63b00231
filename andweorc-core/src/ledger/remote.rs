//! Delay that came in a message from another process.
//!
//! Clocks of two hosts are never compared, and neither are their delays D. A message carries a
//! [`Stamp`]: L of its sender, counted from the begin of the experiment, which all processes hold
//! under one number. The flight of the message takes as long in virtual time as it really does, so
//! that it arrives at `came - L`.
//!
//! # D of the receiver
//!
//! If L is above D of the receiving process, D [rises](Ledger::raise) to it, and everyone there
//! owes what the sender had taken: in the program that is predicted the message would have come
//! earlier by as much, and everyone else would have been less far. So D has two sources, the
//! target's time in this process and messages of others, and follows the greater of the two.
//!
//! - D is a maximum as before and never falls. It may rise in a jump while nobody here is inside
//!   the target, as it does at a sample: who reads D reads it each time, and nobody may keep it.
//! - Who is inside the target at that time goes on with its own L. Where that is below the new D it
//!   raises D no more until it has got there, and pays the rest as it leaves: the sender and this
//!   thread were in the target at the same time, and owe each other nothing for that.
//! - A wait that is the target goes on along its line in the same way.
//! - Who is idle or parked takes the rise as any other: a rest takes what D grew meanwhile, a task
//!   that the world outside wakes is held for it.
//! - A rise belongs to the experiment that the message names. It is made under the lock under which
//!   experiments end, so that no message raises D after that, in a baseline say.
//!
//! # L of the receiver
//!
//! Who waited for the message has absorbed what its sender had taken, as far as it really waited:
//! it is not to pay that again. But a thread learns L only in its poll, when its rest is over and
//! ended with the D of before. So the ledger keeps for how long threads [rested](Shared::keep_rest)
//! without taking delay: so much more they could have taken. That is kept for all of them together,
//! since a worker that was idle would have run what another one runs that was not. It is kept up to
//! [`MAX_REST`], so that a rest long ago makes up for nothing: a receiver at its limit has no
//! rests, and pays.

use super::account::OUTSIDE;
use super::{Account, Ledger};
use crate::sync::atomic::{AtomicI64, Ordering::SeqCst};
use crate::sync::const_fn;
use crate::time::{Nanos, Real, Virtual};

/// Number of an experiment that no other process takes part in.
const ALONE: i64 = -1;

/// Rests that are kept at most: a few times as long as the jumps that D makes where hosts talk
/// often. Those are about as long as one request is in the target.
const MAX_REST: Nanos = Nanos::from_micros(350);

/// Delay that a message carries to another process: of the participant that sent it, as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of the experiment, by which all processes know it.
    pub experiment: u32,
    /// The delay that the sender had taken since the experiment began, ns.
    pub taken: Nanos,
}

/// Numbers of experiments that several processes hold.
#[derive(Debug)]
pub(super) struct Shared {
    /// Of the running or last one; [`ALONE`] if it has none.
    number: AtomicI64,
    /// Of the next one.
    next: AtomicI64,
    /// When the running or last one began here.
    began: AtomicI64,
    /// Time in which threads rested and took no delay, ns.
    rest: AtomicI64,
}

impl Shared {
    const_fn! {
    pub(super) fn new() -> Shared {
        Shared {
            number: AtomicI64::new(ALONE),
            next: AtomicI64::new(ALONE),
            began: AtomicI64::new(0),
            rest: AtomicI64::new(0),
        }
    }
    }

    /// An experiment begins at `now`.
    pub(super) fn begin(&self, now: Real) {
        self.began.store(now.0, SeqCst);
        self.rest.store(0, SeqCst);
        self.number.store(self.next.swap(ALONE, SeqCst), SeqCst);
    }

    /// Keeps that a thread rested for so long without taking delay.
    pub(super) fn keep_rest(&self, left: Nanos) {
        let more = |rest: i64| {
            let more = rest.saturating_add(left.0).min(MAX_REST.0);
            (more != rest).then_some(more)
        };
        self.rest.fetch_update(SeqCst, SeqCst, more).ok();
    }

    /// Takes as much as is `wanted` of what was kept, as far as there is any.
    fn take_rest(&self, wanted: Nanos) -> Nanos {
        let less = |rest: i64| (rest > 0).then(|| rest - rest.min(wanted.0));
        let before = self.rest.fetch_update(SeqCst, SeqCst, less).unwrap_or(0);
        Nanos(before.min(wanted.0))
    }
}

impl Ledger {
    /// Gives the experiment that [begins](Ledger::begin) next the number by which other processes
    /// know it. `None` if none takes part, which holds for each experiment that gets no number.
    pub fn number_next(&self, number: Option<u32>) {
        self.shared.next.store(number.map_or(ALONE, i64::from), SeqCst);
    }

    /// The number of the experiment that is held, if other processes take part in it.
    pub fn shared_number(&self) -> Option<u32> {
        let number = u32::try_from(self.shared.number.load(SeqCst)).ok();
        number.filter(|_| self.read.held.load(SeqCst) != 0)
    }

    /// Stamp of a message that a participant sends who has `taken` this delay, or of one that
    /// nobody here is known to send. `None` while no experiment is held that others take part in.
    ///
    /// A stamp tells of D at most. A thread that has paused for too long has taken more, and gets
    /// that back: of two processes that talk, each would raise D of the other by it.
    pub fn stamp(&self, taken: Option<Nanos>, now: Real) -> Option<Stamp> {
        let held = self.experiment.load(SeqCst);
        let number = self.shared_number()?;
        let floor = self.forgiven_delay();
        let delay = self.global_delay(now);
        let taken = taken.map_or(delay, |taken| taken.min(delay)) - floor;
        // The floor is written between two experiments: both were read in the one that goes on.
        let is_same = self.read.held.load(SeqCst) != 0 && self.experiment.load(SeqCst) == held;
        is_same.then(|| Stamp { experiment: number, taken: taken.max(Nanos::ZERO) })
    }

    /// Takes in what a message carried that is seen at `now`: `D = max(D, L)`. Returns L of its
    /// sender on this ledger. `None` if the message is of another experiment than the one that is
    /// held: it is one of the world outside.
    ///
    /// Nobody is delayed for longer than the experiment lasts: what a faulty sender claims beyond
    /// that does not count.
    pub fn raise(&self, stamp: Stamp, now: Real) -> Option<Nanos> {
        let held = self.experiment.load(SeqCst);
        if self.shared_number() != Some(stamp.experiment) {
            return None;
        }
        let lasts = self.credited(now) - Real(self.shared.began.load(SeqCst));
        let taken = self.forgiven_delay() + stamp.taken.min(lasts).max(Nanos::ZERO);
        if taken.0 <= self.read.owed.load(SeqCst) {
            return self.is_held_still(held).then_some(taken);
        }
        // No experiment ends meanwhile.
        let _lines = self.lines();
        let is_held = self.is_held_still(held);
        if is_held {
            self.read.owed.fetch_max(taken.0, SeqCst);
        }
        is_held.then_some(taken)
    }

    fn is_held_still(&self, experiment: u32) -> bool {
        self.read.held.load(SeqCst) != 0 && self.experiment.load(SeqCst) == experiment
    }

    /// Whether the thread is inside the target, or expected to be.
    pub fn is_inside(&self, account: &Account) -> bool {
        account.since.load(SeqCst) != OUTSIDE
    }

    /// The thread learns at `now` that who runs on it, and had `parked` at that virtual time, has
    /// waited for a message whose sender had `taken` this delay: it has taken as much, as far as
    /// rests go, and is never back before it parked. Inside the target too.
    pub fn absorb_message(&self, account: &Account, taken: Nanos, parked: Virtual, now: Real) {
        let most = taken.min(parked.delay_at(now));
        let missing = most - self.local_delay(account, now);
        if missing <= Nanos::ZERO {
            return;
        }
        let absorbed = self.shared.take_rest(missing);
        if !self.is_inside(account) {
            self.took(account, absorbed, now);
        } else {
            // Credited as a sample is: the owner is inside, and D is at least as great already.
            account.sampled.fetch_add(absorbed.0, SeqCst);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
