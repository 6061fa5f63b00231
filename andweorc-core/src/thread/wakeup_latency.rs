//! Wake-ups: a sleeping thread absorbs delay until another thread notifies it.
//!
//! From a wake to the first instruction of the worker that slept until then 20 to 60 us pass here,
//! in which a processor wakes up and the kernel switches. They are as long whatever is made faster.
//! So who sleeps takes its delay until it is notified; what D grows by while it gets going it pays,
//! before it looks for work and tells others of it. If it took that as well, it would in virtual
//! time have come so much earlier: in `join_set`, where half of the pieces are begun by a worker
//! that was asleep, 34 us after they were spawned as 24, in a cycle of 540.
//! (`tests/simulation/notified.rs` shows the same: 13 points too high with two workers, and 26 with
//! four, each of which gets the next one going.)
//!
//! No runtime tells when it notifies a worker. It does so as a task is woken or spawned, or as a
//! worker that was notified finds work. So the last time that one of these happened counts: by then
//! it was notified, and most often just then. What lies longer back than it takes to get going was
//! about something else.

use super::runqueue_wait::Comes;
use super::{Thread, ledger, model, virtual_at};
use crate::clock;
use crate::defer;
use crate::engine::{LastWake, Rested};
use crate::ledger::Account;
use crate::process::process;
use crate::time::{Nanos, Real, Speedup, Virtual};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// When somebody may have been notified last, and L of who did it. Relaxed, and one after the
/// other: they publish nothing else, and where two threads write at once both tell of the same
/// moment.
pub(super) struct Last {
    at: AtomicI64,
    taken: AtomicI64,
}

impl Last {
    /// Nobody yet.
    pub(super) const fn new() -> Last {
        Last { at: AtomicI64::new(0), taken: AtomicI64::new(0) }
    }

    fn set(&self, taken: Nanos, now: Real) {
        self.taken.store(taken.0, Relaxed);
        self.at.store(now.0, Relaxed);
    }

    fn get(&self) -> LastWake {
        LastWake { at: Real(self.at.load(Relaxed)), taken: Nanos(self.taken.load(Relaxed)) }
    }
}

/// Somebody whose L is `taken` wakes or spawns a task at `now`: an idle worker may be notified of
/// that.
#[inline]
pub(super) fn note_wake(taken: Nanos, now: Real) {
    if ledger().speedup() != Speedup::ZERO {
        note_wake_of_worker(taken, now);
    }
}

#[cold]
#[inline(never)]
fn note_wake_of_worker(taken: Nanos, now: Real) {
    // Where all are busy, a line that all would write is not touched.
    if defer::is_worker_idle() {
        process().threads.last_wake.set(taken, now);
    }
}

/// The thread of `account` is about to wake another one, at `now`.
pub(super) fn note_wake_of_thread(account: &Account, now: Real) {
    if ledger().speedup() != Speedup::ZERO {
        process().threads.last_wake.set(ledger().local_delay(account, now), now);
    }
}

/// The calling thread spawns a task at `now`. Returns the virtual time at which that begins.
#[inline(never)]
pub fn spawns(now: Real) -> Virtual {
    let at = virtual_at(now);
    note_wake(at.delay_at(now), now);
    at
}

/// The calling thread passes on a wake that is in nobody's name. Most often it runs the task
/// itself: who has been notified a moment ago was so by somebody else.
#[inline]
pub fn pass_on() {
    if ledger().speedup() != Speedup::ZERO {
        let now = clock::now();
        if !last_wake().is_recent(now) {
            note_wake_of_worker(ledger().global_delay(now), now);
        }
    }
}

impl Thread {
    /// The thread has `rested` until now: it takes what it owed by then, as far as that goes, and
    /// pays the rest where another one had got it going.
    // Always: most callers know what ended the rest.
    #[inline(always)]
    pub(super) fn resume(&self, account: &'static Account, rested: Rested, now: Real) {
        let late = rested.by.map_or(Nanos::ZERO, |_| self.came_late(rested.since, now).grown);
        model().end_rest(account, rested, late, now);
        self.note_caught_up(now);
        if rested.pays {
            self.pay_as_notified(account, now);
        }
    }

    /// The thread pays what it still owes after a rest that another one has ended.
    #[inline(never)]
    fn pay_as_notified(&self, account: &'static Account, now: Real) {
        self.absorb_runqueue_wait(account, Comes::Woken, now);
        let now = self.catch_up(now);
        // If it finds work it notifies another one.
        note_wake(ledger().local_delay(account, now), now);
    }
}

/// The last time that somebody may have been notified.
pub(super) fn last_wake() -> LastWake {
    process().threads.last_wake.get()
}
