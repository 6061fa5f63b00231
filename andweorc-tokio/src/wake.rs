//! The waker of a profiled task: who woke it, and when, in virtual time.
//!
//! # Protocol
//!
//! A [`WakeCell`] is built once for a task's waker and never changes it: tokio keeps one waker for a task's life, and
//! `will_wake` stays true across polls. A wake first writes when it makes the task ready, then passes itself on to the waker outside;
//! the poll takes what was written. Passing on is what orders the two: tokio's state transition releases in the wake and
//! acquires in the poll. So the cell's own accesses are Relaxed (but for `held`, by which one wake is passed on
//! for another), and a wake that races with the poll that takes its time is seen by the
//! next poll, which it causes. Times can only be late by that; no wake is ever lost, for each is passed on, at once or by the
//! [deferral](andweorc_core::defer) queue, which never drops one.
//!
//! A profiled future may be part of another one: a request of a connection, a task of a `LocalSet`. Its wake passes through the cell of
//! the future around it, which is ready when its part is. So what has been held for the part is not held again for the whole
//! (`PASSING`).

use crate::parks::{Unnamed, clock_is_paused};
use andweorc_core::ledger::{Parked, TargetWait};
use andweorc_core::thread::LEDGER;
use andweorc_core::time::{Nanos, Real, Virtual};
use andweorc_core::wait::Cause;
use andweorc_core::{clock, defer, thread};
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
#[cfg(loom)]
use loom::thread_local;
use std::cell::Cell;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

thread_local! {
    /// While the calling thread passes on a wake that is in nobody's name: when the future that it woke is ready, and by whom.
    #[allow(clippy::missing_const_for_thread_local, reason = "that of loom takes no const")]
    static PASSING: Cell<Option<(Virtual, Cause)>> = Cell::new(None);
}

/// Whether a task must be held that is ready at `ready`.
///
/// Never on a runtime whose clock is paused: while a task is held there is nothing to do, and such a clock runs ahead to the next timer,
/// a timeout of the task that is held, say.
pub(crate) fn is_early(ready: Virtual, now: Real) -> bool {
    LEDGER.early(ready, now) > defer::LEAST && !clock_is_paused()
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
    /// [`Unnamed`]: who wakes it, if nobody's name is on the wake.
    unnamed: AtomicU8,
    /// The deferral queue has it.
    held: AtomicBool,
    /// Until when.
    due: AtomicI64,
    /// The real time of the first wake since its last poll, twice, plus one if it came from outside.
    woken: AtomicI64,
    /// It is in a wait that is the target: `wait` has it.
    waits: AtomicBool,
    wait: Mutex<Option<TargetWait>>,
}

impl WakeCell {
    pub(crate) fn new(outer: Waker, taken: Nanos) -> Arc<WakeCell> {
        Arc::new(WakeCell {
            outer,
            by_entity: AtomicI64::new(Virtual::NEVER.0),
            by_outside: AtomicI64::new(Real::NEVER.0),
            taken: AtomicI64::new(taken.0),
            unnamed: AtomicU8::new(Unnamed::Outside as u8),
            held: AtomicBool::new(false),
            due: AtomicI64::new(Virtual::NEVER.0),
            woken: AtomicI64::new(Real::NEVER.0),
            waits: AtomicBool::new(false),
            wait: Mutex::new(None),
        })
    }

    /// Whether this cell passes its wakes on to `outer`.
    pub(crate) fn passes_on_to(&self, outer: &Waker) -> bool {
        self.outer.will_wake(outer)
    }

    /// When the wakes since the last call make a task ready that parked as `parked` says. [`Virtual::NEVER`] without any.
    pub(crate) fn take_ready(&self, parked: Parked) -> Virtual {
        let by_entity = Virtual(self.by_entity.swap(Virtual::NEVER.0, Ordering::Relaxed));
        let by_outside = Real(self.by_outside.swap(Real::NEVER.0, Ordering::Relaxed));
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
    pub(crate) fn take_woken(&self) -> Option<(Real, Cause)> {
        let woken = self.woken.swap(Real::NEVER.0, Ordering::Relaxed);
        (woken != Real::NEVER.0).then_some((Real(woken >> 1), cause(woken)))
    }

    /// The task was woken at `now`; counted if it is the first time since its last poll.
    fn set_woken(&self, now: Real, by: Cause) {
        let woken = (now.0 << 1) | i64::from(by == Cause::Outside);
        self.woken.fetch_min(woken, Ordering::Relaxed);
    }

    /// The task, parked, is in a wait that is the target, from `now` until its next wake or poll.
    pub(crate) fn begin_wait(&self, now: Real) {
        let taken = Nanos(self.taken.load(Ordering::Relaxed));
        let wait = LEDGER.begin_wait(taken, now);
        let waits = wait.is_some();
        *self.wait.lock().unwrap_or_else(PoisonError::into_inner) = wait;
        // Relaxed: the lock orders what it stands for; a wake that does not see it yet leaves it to the poll that it causes.
        self.waits.store(waits, Ordering::Relaxed);
    }

    /// Ends that wait, if there is one.
    pub(crate) fn end_wait(&self, now: Real) {
        if !self.waits.load(Ordering::Relaxed) || !self.waits.swap(false, Ordering::Relaxed) {
            return;
        }
        let wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(wait) = wait {
            let floor = LEDGER.floor();
            let grown = LEDGER.end_wait(wait, now);
            let taken = Nanos(self.taken.load(Ordering::Relaxed)).max(floor);
            self.taken.store((taken + grown).0, Ordering::Relaxed);
        }
    }

    /// The task runs, or parks, having taken this delay.
    pub(crate) fn set_taken(&self, taken: Nanos, unnamed: Unnamed) {
        self.taken.store(taken.0, Ordering::Relaxed);
        self.unnamed.store(unnamed as u8, Ordering::Relaxed);
    }

    /// Holds the task's wake until V gets to `due`.
    pub(crate) fn hold(self: &Arc<Self>, due: Virtual) {
        // AcqRel: a wake that finds the task held is passed on by the release that follows. What was done before it must be seen by the
        // poll after that.
        if !self.held.swap(true, Ordering::AcqRel) {
            // Relaxed: read by who takes this out of the queue, whose lock orders the two.
            self.due.store(due.0, Ordering::Relaxed);
            defer::until(due, Arc::clone(self) as Arc<dyn defer::Held>);
        }
    }

    /// Passes on a wake that is in nobody's name, which makes the task ready at `ready`.
    fn pass_on(&self, ready: Virtual, by: Cause) {
        let before = PASSING.with(|passing| passing.replace(Some((ready, by))));
        self.outer.wake_by_ref();
        PASSING.with(|passing| passing.set(before));
    }

    /// Notes a wake that goes its own way: that of a task which nobody wrapped, and which can't be held here.
    #[cfg(tokio_unstable)]
    pub(crate) fn note(&self) {
        thread::pay_before_acting();
        let now = clock::now();
        self.end_wait(now);
        let ready = if let Some((ready, by)) = PASSING.with(Cell::get) {
            self.set_woken(now, by);
            ready
        } else if let Some(waker) = thread::entity_at(now) {
            self.set_woken(now, Cause::Task);
            thread::acted();
            waker
        } else {
            let unnamed = Unnamed::from_number(self.unnamed.load(Ordering::Relaxed));
            let by = if unnamed == Unnamed::Outside { Cause::Outside } else { Cause::Task };
            self.set_woken(now, by);
            match unnamed {
                Unnamed::Outside => {
                    self.by_outside.fetch_min(now.0, Ordering::Relaxed);
                    return;
                }
                Unnamed::Program => LEDGER.virtual_now(now),
                Unnamed::Runtime => Virtual(i64::MIN),
            }
        };
        self.by_entity.fetch_min(ready.0, Ordering::Relaxed);
    }

    /// A wake with no entity on the waking thread.
    fn wake_unnamed(self: &Arc<Self>, now: Real) {
        let unnamed = Unnamed::from_number(self.unnamed.load(Ordering::Relaxed));
        let ready = match unnamed {
            Unnamed::Outside => {
                self.set_woken(now, Cause::Outside);
                self.by_outside.fetch_min(now.0, Ordering::Relaxed);
                let due = now.less(Nanos(self.taken.load(Ordering::Relaxed)).max(LEDGER.floor()));
                if is_early(due, now) {
                    self.hold(due);
                } else {
                    self.pass_on(due, Cause::Outside);
                }
                return;
            }
            // Whoever wrote into the socket had paid what it owed when it began to run: its virtual time is about V.
            Unnamed::Program => LEDGER.virtual_now(now),
            // Ready since it parked.
            Unnamed::Runtime => Virtual(i64::MIN),
        };
        self.set_woken(now, Cause::Task);
        self.by_entity.fetch_min(ready.0, Ordering::Relaxed);
        self.pass_on(ready, Cause::Task);
    }
}

/// Who woke, as [`WakeCell::woken`] has it.
fn cause(woken: i64) -> Cause {
    if woken & 1 == 1 { Cause::Outside } else { Cause::Task }
}

impl defer::Held for WakeCell {
    fn release(self: Arc<Self>) {
        let due = Virtual(self.due.load(Ordering::Relaxed));
        let by = cause(self.woken.load(Ordering::Relaxed));
        // A wake from here on holds the task anew, one from before is covered by this one. AcqRel: pairs with `hold`.
        self.held.swap(false, Ordering::AcqRel);
        self.pass_on(due, by);
    }
}

impl Wake for WakeCell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        thread::pay_before_acting();
        let now = clock::now();
        self.end_wait(now);
        if let Some((ready, by)) = PASSING.with(Cell::get) {
            self.set_woken(now, by);
            self.by_entity.fetch_min(ready.0, Ordering::Relaxed);
            self.outer.wake_by_ref();
        } else if let Some(waker) = thread::entity_at(now) {
            self.set_woken(now, Cause::Task);
            self.by_entity.fetch_min(waker.0, Ordering::Relaxed);
            self.outer.wake_by_ref();
            thread::acted();
        } else {
            self.wake_unnamed(now);
        }
    }
}
