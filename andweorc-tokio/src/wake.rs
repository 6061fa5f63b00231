//! The waker of a profiled task: who woke it, and when, in virtual time.
//!
//! # Protocol
//!
//! A [`WakeCell`] is built once for a task's waker and never changes it: tokio keeps one waker for a task's life, and
//! `will_wake` stays true across polls. A wake first writes when it makes the task ready, then passes itself on to the waker outside;
//! the poll takes what was written. Passing on is what orders the two: tokio's state transition releases in the wake and
//! acquires in the poll. So the cell's own accesses are Relaxed, and a wake that races with the poll that takes its time is seen by the
//! next poll, which it causes. Times can only be late by that; no wake is ever lost, for each is passed on, at once or by the
//! [deferral](andweorc_core::defer) queue, which never drops one.

use andweorc_core::ledger::{Parked, TargetWait};
use andweorc_core::thread::LEDGER;
use andweorc_core::time::{Nanos, Real, Virtual};
use andweorc_core::wait::Cause;
use andweorc_core::{clock, defer, thread};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Nothing was written since it was last taken: [`Virtual::NEVER`] and [`Real::NEVER`].
const NOTHING: i64 = i64::MAX;

/// Takes what wakes wrote. Only polls take, one at a time: where nothing was written there is nothing to swap.
#[inline]
fn take(written: &AtomicI64) -> i64 {
    if written.load(Ordering::Relaxed) == NOTHING {
        return NOTHING;
    }
    written.swap(NOTHING, Ordering::Relaxed)
}

/// Writes `time` unless an earlier one is there.
#[inline]
fn lower(written: &AtomicI64, time: i64) {
    if time < written.load(Ordering::Relaxed) {
        written.fetch_min(time, Ordering::Relaxed);
    }
}

/// What wakes write and polls take.
#[derive(Debug)]
pub(crate) struct WakeCell {
    outer: Waker,
    /// The earliest virtual time of an entity that woke the task since its last poll.
    by_entity: AtomicI64,
    /// The earliest real time at which the world outside woke it since its last poll.
    by_outside: AtomicI64,
    /// L of the task as it parked.
    taken: AtomicI64,
    /// It parked because its coop budget was used up: the runtime will wake it, in its own name.
    yielded: AtomicBool,
    /// The deferral queue has it.
    held: AtomicBool,
    /// The real time of the first wake since its last poll, twice, plus one if it came from outside.
    woken: AtomicI64,
    /// It is in a wait that is the target: `wait` has it.
    waits: AtomicBool,
    /// Boxed: few tasks wait in the target, and each has a cell.
    wait: Mutex<Option<Box<TargetWait>>>,
}

impl WakeCell {
    pub(crate) fn new(outer: Waker, taken: Nanos) -> Arc<WakeCell> {
        Arc::new(WakeCell {
            outer,
            by_entity: AtomicI64::new(Virtual::NEVER.0),
            by_outside: AtomicI64::new(Real::NEVER.0),
            taken: AtomicI64::new(taken.0),
            yielded: AtomicBool::new(false),
            held: AtomicBool::new(false),
            woken: AtomicI64::new(Real::NEVER.0),
            waits: AtomicBool::new(false),
            wait: Mutex::new(None),
        })
    }

    /// Whether this cell passes its wakes on to `outer`.
    #[inline]
    pub(crate) fn passes_on_to(&self, outer: &Waker) -> bool {
        self.outer.will_wake(outer)
    }

    /// When the wakes since the last call make a task ready that parked as `parked` says. [`Virtual::NEVER`] without any.
    #[inline]
    pub(crate) fn take_ready(&self, parked: Parked) -> Virtual {
        let by_entity = Virtual(take(&self.by_entity));
        let by_outside = Real(take(&self.by_outside));
        let mut ready = Virtual::NEVER;
        if by_entity != Virtual::NEVER {
            ready = parked.woken_by(by_entity);
        }
        if by_outside != Real::NEVER {
            // What it took by now: a wait that is the target adds to it.
            let parked = Parked { taken: Nanos(self.taken.load(Ordering::Relaxed)), ..parked };
            ready = ready.min(parked.woken_outside(by_outside, LEDGER.floor()));
        }
        ready
    }

    /// When and by whom the task was first woken since the last call.
    #[inline]
    pub(crate) fn take_woken(&self) -> Option<(Real, Cause)> {
        let woken = take(&self.woken);
        let by = if woken & 1 == 1 { Cause::Outside } else { Cause::Task };
        (woken != Real::NEVER.0).then_some((Real(woken >> 1), by))
    }

    /// The task, parked, is in a wait that is the target, from `now` until its next wake or poll.
    pub(crate) fn begin_wait(&self, now: Real) {
        let taken = Nanos(self.taken.load(Ordering::Relaxed));
        let mut wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner);
        *wait = LEDGER.begin_wait(taken, now).map(Box::new);
        // Relaxed: the lock orders what it stands for; a wake that does not see it yet leaves it to the poll that it causes.
        self.waits.store(wait.is_some(), Ordering::Relaxed);
    }

    /// Ends that wait, if there is one.
    #[inline]
    pub(crate) fn end_wait(&self, now: Real) {
        if !self.waits.load(Ordering::Relaxed) || !self.waits.swap(false, Ordering::Relaxed) {
            return;
        }
        let wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(wait) = wait {
            let floor = LEDGER.floor();
            let grown = LEDGER.end_wait(*wait, now);
            let taken = Nanos(self.taken.load(Ordering::Relaxed)).max(floor);
            self.taken.store((taken + grown).0, Ordering::Relaxed);
        }
    }

    /// The task runs, or parks, having taken this delay.
    #[inline]
    pub(crate) fn set_taken(&self, taken: Nanos, yielded: bool) {
        self.taken.store(taken.0, Ordering::Relaxed);
        self.yielded.store(yielded, Ordering::Relaxed);
    }

    /// Holds the task's wake until V gets to `due`.
    pub(crate) fn hold(self: &Arc<Self>, due: Virtual) {
        if !self.held.swap(true, Ordering::Relaxed) {
            defer::until(due, Arc::clone(self) as Arc<dyn defer::Held>);
        }
    }
}

impl defer::Held for WakeCell {
    fn release(self: Arc<Self>) {
        // Relaxed: a wake from here on holds the task anew, one from before is covered by this one.
        self.held.store(false, Ordering::Relaxed);
        self.outer.wake_by_ref();
    }
}

impl Wake for WakeCell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let now = clock::now();
        self.end_wait(now);
        if let Some(waker) = thread::entity_at(now) {
            lower(&self.woken, now.0 << 1);
            lower(&self.by_entity, waker.0);
        } else if self.yielded.load(Ordering::Relaxed) {
            lower(&self.woken, now.0 << 1);
            lower(&self.by_entity, i64::MIN);
        } else {
            lower(&self.woken, (now.0 << 1) | 1);
            lower(&self.by_outside, now.0);
            let taken = Nanos(self.taken.load(Ordering::Relaxed)).max(LEDGER.floor());
            let due = now.less(taken);
            if LEDGER.early(due, now) > defer::LEAST {
                return self.hold(due);
            }
        }
        self.outer.wake_by_ref();
    }
}
