//! The waker of a profiled task: who woke it, and when, in virtual time.
//!
//! # Protocol
//!
//! A [`WakeCell`] is built once for a task's waker and never changes it: tokio keeps one waker for
//! a task's life, and `will_wake` stays true across polls. A wake first writes when it makes the
//! task ready, then passes itself on to the waker outside; the poll takes what was written. Passing
//! on is what orders the two: tokio's state transition releases in the wake and acquires in the
//! poll. So the cell's own accesses are Relaxed (but for `held`, by which one wake is passed on for
//! another), and a wake that races with the poll that takes its time is seen by the next poll,
//! which it causes. Times can only be late by that; no wake is ever lost, for each is passed on, at
//! once or by the [deferral](andweorc_core::defer) queue or a runtime's alarm, which never drop
//! one.
//!
//! A profiled future may be part of another one: a request of a connection, a task of a `LocalSet`.
//! Its wake passes through the cell of the future around it, which is ready when its part is. So
//! what has been held for the part is not held again for the whole (`PASSING`).

// Models have neither; they include this file by its path.
#[cfg(all(tokio_unstable, not(loom)))]
#[path = "wake/foreign.rs"]
mod foreign;
#[cfg(all(test, not(loom)))]
#[path = "wake/tests.rs"]
pub(crate) mod tests;

#[cfg(not(loom))]
use crate::alarm;
use crate::parks::{Unnamed, clock_is_paused};
use crate::put_off;
use crate::wakers;
// Models have no driver.
#[cfg(loom)]
use andweorc_core::defer as alarm;
use andweorc_core::ledger::{Parked, TargetWait};
use andweorc_core::target::TaskTargets;
use andweorc_core::thread::{Acts, LEDGER};
use andweorc_core::time::{Nanos, Real, Virtual};
use andweorc_core::wait::Cause;
use andweorc_core::{clock, defer, program_clock, thread};
#[cfg(loom)]
use loom::sync::atomic::{AtomicI64, AtomicPtr, Ordering};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};
use std::task::{RawWaker, RawWakerVTable, Wake, Waker};

/// While the calling thread passes on a wake that is in nobody's name: when the future that it woke
/// is ready, and by whom.
type Passing = Cell<Option<(Virtual, Cause)>>;

#[cfg(not(loom))]
andweorc_core::plain_thread_local! {
    static PASSING: Passing = Cell::new(None);
}

#[cfg(loom)]
loom::thread_local! {
    static PASSING: Passing = Cell::new(None);
}

/// The calling thread passes on a wake until this is dropped, also by a panic of the waker outside.
struct Passes {
    before: Option<(Virtual, Cause)>,
}

impl Passes {
    fn on(wake: (Virtual, Cause)) -> Passes {
        Passes { before: PASSING.with(|passing| passing.replace(Some(wake))) }
    }
}

impl Drop for Passes {
    fn drop(&mut self) {
        PASSING.with(|passing| passing.set(self.before));
    }
}

/// Whether a task must be held that is ready at `ready`.
///
/// Never on a runtime whose clock is paused: while a task is held there is nothing to do, and such
/// a clock runs ahead to the next timer, a timeout of the task that is held, say.
pub(crate) fn is_early(ready: Virtual, now: Real) -> bool {
    LEDGER.early(ready, now) > defer::LEAST && !clock_is_paused()
}

/// Functions of a waker of a [`WakeCell`], whose data is the pointer of an `Arc` that it owns: as
/// of `Waker::from(Arc<impl Wake>)`, and it counts its clones.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

andweorc_core::plain_thread_local! {
    static CLONES: Cell<u32> = Cell::new(0);
}

/// How many wakers the calling thread has cloned so far. Who waits for something new leaves a clone
/// there.
#[inline]
pub(crate) fn clones() -> u32 {
    CLONES.get()
}

/// The calling thread has cloned one.
#[inline]
pub(crate) fn cloned() {
    CLONES.set(CLONES.get().wrapping_add(1));
    #[cfg(all(tokio_unstable, not(loom)))]
    crate::foreign::poll::wait_begins();
}

/// A clone of the waker of a task, which begins no wait.
pub(crate) fn keep(outer: &Waker) -> Waker {
    #[cfg(all(tokio_unstable, not(loom)))]
    return crate::foreign::poll::keep(outer);
    #[cfg(not(all(tokio_unstable, not(loom))))]
    outer.clone()
}

/// # Safety
///
/// `cell` is from `Arc::into_raw` or `Arc::as_ptr`, and the `Arc` lives.
unsafe fn clone(cell: *const ()) -> RawWaker {
    cloned();
    // SAFETY: as the caller says. The new count is the clone's.
    unsafe { Arc::increment_strong_count(cell.cast::<WakeCell>()) };
    RawWaker::new(cell, &VTABLE)
}

/// # Safety
///
/// As of [`clone`], and the caller gives its count away.
unsafe fn wake(cell: *const ()) {
    // SAFETY: as the caller says.
    unsafe { Arc::from_raw(cell.cast::<WakeCell>()) }.wake();
}

/// # Safety
///
/// As of [`clone`].
unsafe fn wake_by_ref(cell: *const ()) {
    // SAFETY: as the caller says. The count stays the caller's.
    let cell = ManuallyDrop::new(unsafe { Arc::from_raw(cell.cast::<WakeCell>()) });
    cell.wake_by_ref();
}

/// # Safety
///
/// As of [`wake`].
unsafe fn release(cell: *const ()) {
    // SAFETY: as the caller says.
    drop(unsafe { Arc::from_raw(cell.cast::<WakeCell>()) });
}

/// Nothing was written since it was last taken: [`Virtual::NEVER`] and [`Real::NEVER`].
const NOTHING: i64 = i64::MAX;

/// Takes what wakes wrote. Only polls take, one at a time: where nothing was written there is
/// nothing to swap.
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
    if seldom(time >= written.load(Ordering::Relaxed)) {
        return;
    }
    written.fetch_min(time, Ordering::Relaxed);
}

/// Returns `is`, which seldom is so: the compiler puts what follows from it out of the way.
#[inline]
fn seldom(is: bool) -> bool {
    #[cold]
    #[inline]
    fn seldom() {}
    if is {
        seldom();
    }
    is
}

/// Record of a task that wakes write and polls take. One for each live task: every byte counts.
#[derive(Debug)]
pub(crate) struct WakeCell {
    outer: Waker,
    /// Targets in which the task can be sped up.
    targets: &'static TaskTargets,
    /// The earliest virtual time of an entity that woke the task since its last poll.
    by_entity: AtomicI64,
    /// The latest real time at which the world outside woke it since its last poll.
    by_outside: AtomicI64,
    /// L of the task as it parked, four times, plus [`Unnamed`]: who wakes it, if nobody's name is
    /// on the wake.
    parked: AtomicI64,
    /// Until when it is held, twice, plus one if it is so for the last time; [`NOTHING`] when it is
    /// not.
    due: AtomicI64,
    /// The real time of the first wake since its last poll, four times, plus its [`Cause`]. Until
    /// then [`NOTHING`], or, below zero, since when it waits, where that was written down. Without
    /// locked instructions: how the wait ended of a wake that comes just as a poll begins may not
    /// be counted. When the task is ready is what the others say.
    woken: AtomicI64,
    /// The wait that is the target, if the task is in one. This owns it.
    wait: AtomicPtr<TargetWait>,
}

impl WakeCell {
    /// Of a task that has taken this delay and is ready at `ready`.
    pub(crate) fn new(
        outer: Waker,
        targets: &'static TaskTargets,
        taken: Nanos,
        ready: Virtual,
    ) -> Arc<WakeCell> {
        Arc::new(WakeCell {
            outer,
            targets,
            by_entity: AtomicI64::new(ready.0),
            by_outside: AtomicI64::new(NOTHING),
            parked: AtomicI64::new(parked(taken, Unnamed::Outside)),
            due: AtomicI64::new(NOTHING),
            woken: AtomicI64::new(NOTHING),
            wait: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Returns the targets in which the task can be sped up.
    #[inline]
    pub(crate) fn targets(&self) -> &'static TaskTargets {
        self.targets
    }

    /// The waker that this is. It goes no further than a borrow of `self`, and is not counted.
    #[inline]
    pub(crate) fn waker(self: &Arc<Self>) -> ManuallyDrop<Waker> {
        // SAFETY: the pointer is that of an `Arc`, which is what `VTABLE` takes. Its count stays as
        // it is: this waker is never dropped.
        ManuallyDrop::new(unsafe { Waker::new(Arc::as_ptr(self).cast(), &VTABLE) })
    }

    /// L of the task as it parked, and what grew since.
    #[inline]
    pub(crate) fn taken(&self) -> Nanos {
        Nanos(self.parked.load(Ordering::Relaxed) >> 2)
    }

    /// Whether this cell passes its wakes on to `outer`.
    #[inline]
    pub(crate) fn passes_on_to(&self, outer: &Waker) -> bool {
        self.outer.will_wake(outer)
    }

    /// When the wakes since the last call make a task ready that parked at `at`. [`Virtual::NEVER`]
    /// without any.
    #[inline]
    pub(crate) fn take_ready(&self, at: Virtual) -> Virtual {
        let by_entity = Virtual(take(&self.by_entity));
        let by_outside = Real(take(&self.by_outside));
        // What it took by now: a wait that is the target adds to it.
        let parked = Parked { at, taken: self.taken() };
        let mut ready = Virtual::NEVER;
        if by_entity != Virtual::NEVER {
            ready = parked.woken_by(by_entity);
        }
        if by_outside != Real::NEVER {
            ready = ready.min(parked.woken_outside(by_outside, LEDGER.floor()));
        }
        ready
    }

    /// When and by whom the task was first woken since the last call.
    #[inline]
    pub(crate) fn take_woken(&self) -> Option<(Real, Cause)> {
        let woken = self.woken.load(Ordering::Relaxed);
        if woken != NOTHING {
            // No swap, which costs as much as all the rest here: of a wake that comes at this very
            // moment it is not counted how the wait ended.
            self.woken.store(NOTHING, Ordering::Relaxed);
        }
        (0..NOTHING).contains(&woken).then_some((Real(woken >> 2), cause(woken)))
    }

    /// Since when it waits, where that was written down and no wake has come since.
    fn waits_since(&self) -> Option<Real> {
        let woken = self.woken.load(Ordering::Relaxed);
        (woken < 0).then_some(Real(-woken))
    }

    /// The task was woken at `now`; counted if it is the first time since its last poll.
    #[inline]
    pub(crate) fn set_woken(&self, now: Real, by: Cause) {
        let woken = (now.0 << 2) | by as i64;
        let before = self.woken.load(Ordering::Relaxed);
        if seldom((0..NOTHING).contains(&before)) {
            return;
        }
        // Of two that come at the same moment either is the first.
        self.woken.store(woken, Ordering::Relaxed);
    }

    /// The task, parked, is in a wait that is the target, from `now` until its next wake or poll.
    pub(crate) fn begin_wait(&self, now: Real) {
        if let Some(wait) = LEDGER.begin_wait(self.taken(), now) {
            // A wake that does not see it yet leaves it to the poll that it causes. Only polls
            // begin waits, and each has ended the one before.
            self.set_wait(Box::into_raw(Box::new(wait)));
        }
    }

    /// Ends that wait, if there is one.
    #[inline]
    pub(crate) fn end_wait(&self, now: Real) {
        if !self.wait.load(Ordering::Relaxed).is_null() {
            self.end_wait_that_is(now);
        }
    }

    #[cold]
    fn end_wait_that_is(&self, now: Real) {
        if let Some(wait) = self.set_wait(ptr::null_mut()) {
            let (taken, floor) = (self.taken(), LEDGER.floor());
            let grown = LEDGER.end_wait(*wait, now);
            let more = taken.max(floor) + grown - taken;
            self.parked.fetch_add(more.0 << 2, Ordering::Relaxed);
        }
    }

    /// Puts a wait in the place of the one that was there. `wait` is null, or from a box.
    fn set_wait(&self, wait: *mut TargetWait) -> Option<Box<TargetWait>> {
        // AcqRel: who takes it out sees what was put in.
        let before = self.wait.swap(wait, Ordering::AcqRel);
        // SAFETY: what is in there came from a box, and whoever swaps it out is the only one to
        // have it.
        (!before.is_null()).then(|| unsafe { Box::from_raw(before) })
    }

    /// The task runs, having taken this delay.
    #[inline]
    pub(crate) fn set_taken(&self, taken: Nanos, unnamed: Unnamed) {
        self.parked.store(parked(taken, unnamed), Ordering::Relaxed);
    }

    /// The task parks at `now`, having taken this delay.
    #[inline]
    pub(crate) fn parks(&self, now: Real, taken: Nanos, unnamed: Unnamed) {
        self.set_taken(taken, unnamed);
        // Only experiments ask for it.
        if LEDGER.is_held() {
            self.waits_from(now);
        }
    }

    /// Writes down since when it waits. If it was woken already, that stays.
    fn waits_from(&self, now: Real) {
        self.woken.compare_exchange(NOTHING, -now.0, Ordering::Relaxed, Ordering::Relaxed).ok();
    }

    /// The world outside woke it, which the calling thread noticed at `now`. Returns when that
    /// came: a wait that is the target ended then.
    fn woken_outside(&self, now: Real) -> Real {
        let came = thread::came(now, self.waits_since(), &self.targets.typical);
        self.end_wait(came);
        self.set_woken(now, outside());
        self.set_by_outside(came);
        came
    }

    /// The world outside woke it at `came`. It can't be kept from seeing, once it is polled, what
    /// has come by then: `join!` needs both answers, and may not have the second one before that is
    /// due. So it is ready when the latest is.
    fn set_by_outside(&self, came: Real) {
        let later = |at: i64| (at == NOTHING || at < came.0).then_some(came.0);
        self.by_outside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later).ok();
    }

    /// When all is due that came while it was held.
    fn all_due(&self) -> Option<Virtual> {
        let came = Real(self.by_outside.load(Ordering::Relaxed));
        (came != Real::NEVER).then(|| came.less(self.taken().max(LEDGER.floor())))
    }

    /// Defers the poll until V gets to `ready`.
    pub(crate) fn defer(self: &Arc<Self>, ready: Virtual) {
        lower(&self.by_entity, ready.0);
        let until = if self.is_tokios() { defer::until } else { defer::until_elsewhere };
        self.hold(ready, false, until);
    }

    /// Whether a poll may be deferred. The wake that ends that may panic where the executor is not
    /// tokio, and nobody could catch it where a panic aborts.
    pub(crate) fn may_be_deferred(&self) -> bool {
        cfg!(panic = "unwind") || self.is_tokios()
    }

    /// Whether a wake may be made later, and by another thread: only wakers of tokio neither block
    /// nor panic.
    fn is_tokios(&self) -> bool {
        if ptr::eq(self.outer.vtable(), &VTABLE) {
            // SAFETY: a waker of that table has a `WakeCell` for its data, in an `Arc` of which it
            // owns a count, and it lives.
            return unsafe { &*self.outer.data().cast::<WakeCell>() }.is_tokios();
        }
        wakers::is_tokios(&self.outer)
    }

    /// Holds the task's wake `until` V gets to `due`, for the `last` time before its next poll or
    /// not.
    fn hold(self: &Arc<Self>, due: Virtual, last: bool, until: fn(Virtual, Arc<dyn defer::Held>)) {
        let until_due = (due.0 << 1) | i64::from(last);
        let first = |held| Some(if held == NOTHING { until_due } else { held });
        // AcqRel, and a write in any case: a wake that finds the task held is passed on by the
        // release that follows. What was done before it must be seen by the poll after that.
        if self.due.fetch_update(Ordering::AcqRel, Ordering::Relaxed, first) == Ok(NOTHING) {
            until(due, Arc::clone(self) as Arc<dyn defer::Held>);
        }
    }

    /// Forgets a wake that is held: the future is gone, and nobody is to be woken for it.
    #[inline]
    pub(crate) fn let_go(&self) {
        // Relaxed: only the caller has polled, and so held. A wake that comes now wakes nobody who
        // would see anything.
        if seldom(self.due.load(Ordering::Relaxed) != NOTHING) {
            self.due.store(NOTHING, Ordering::Relaxed);
        }
    }

    /// Passes on a wake that is in nobody's name, which makes the task ready at `ready`.
    fn pass_on(&self, ready: Virtual, by: Cause) {
        thread::passes_on();
        let _passing = Passes::on((ready, by));
        self.outer.wake_by_ref();
    }

    /// Returns who wakes the task now, with no entity on the waking thread.
    fn unnamed(&self) -> Unnamed {
        let unnamed = Unnamed::from_number((self.parked.load(Ordering::Relaxed) & 3) as u8);
        if seldom(put_off::is_woken()) {
            self.targets.yields.had();
            return Unnamed::Runtime;
        }
        if unnamed == Unnamed::Outside && thread::is_busy_worker() {
            self.targets.yields.may_have();
        }
        unnamed
    }

    /// A wake with no entity on the waking thread.
    fn wake_unnamed(self: &Arc<Self>, now: Real) {
        if thread::takes_part() {
            return self.wake_by_ref();
        }
        let unnamed = self.unnamed();
        if seldom(unnamed != Unnamed::Outside) {
            return self.wake_from_inside(unnamed, now);
        }
        if program_clock::noticed_a_virtual_timer() {
            return self.wake_by_timer(now);
        }
        let due = self.woken_outside(now).less(self.taken().max(LEDGER.floor()));
        // A wake of another executor goes through, on this thread: the poll that it causes is
        // deferred.
        if seldom(is_early(due, now)) && self.is_tokios() {
            self.hold(due, false, alarm::until);
        } else {
            self.pass_on(due, outside());
        }
    }

    /// A timer woke it that goes by the virtual clock: it was due at V by that.
    #[inline(never)]
    fn wake_by_timer(&self, now: Real) {
        let ready = LEDGER.virtual_now(now);
        self.end_wait(now);
        self.set_woken(now, Cause::Timer);
        lower(&self.by_entity, ready.0);
        self.pass_on(ready, Cause::Timer);
    }

    /// A wake by somebody in this program, with no entity on the waking thread.
    #[inline(never)]
    fn wake_from_inside(&self, unnamed: Unnamed, now: Real) {
        let ready = if unnamed == Unnamed::Runtime {
            // Ready since it parked.
            Virtual(i64::MIN)
        } else {
            // Whoever wrote into the socket had paid what it owed when it began to run: its virtual
            // time is about V.
            LEDGER.virtual_now(now)
        };
        self.end_wait(now);
        // One that yielded waited for nobody: all of its time was in the run queue.
        let woken = if unnamed == Unnamed::Runtime { Real(0) } else { now };
        self.set_woken(woken, Cause::Task);
        lower(&self.by_entity, ready.0);
        self.pass_on(ready, Cause::Task);
    }
}

impl Drop for WakeCell {
    /// A wait that is still under way goes on in the ledger until the experiment ends: its task is
    /// gone, and nobody woke it.
    fn drop(&mut self) {
        drop(self.set_wait(ptr::null_mut()));
    }
}

/// Packs a delay taken and who wakes into a number, as [`WakeCell::parked`] has it.
#[inline]
fn parked(taken: Nanos, unnamed: Unnamed) -> i64 {
    (taken.0 << 2) | unnamed as i64
}

/// Whether a task is held for the last time, as [`WakeCell::due`] has it.
fn is_last(due: i64) -> bool {
    due & 1 == 1
}

/// Returns who woke, as [`WakeCell::woken`] has it.
fn cause(woken: i64) -> Cause {
    match woken & 3 {
        0 => Cause::Outside,
        1 => Cause::Task,
        _ => Cause::Timer,
    }
}

/// The cause of a wake from outside: a timer, where that is known.
fn outside() -> Cause {
    if program_clock::noticed_a_timer() { Cause::Timer } else { Cause::Outside }
}

impl defer::Held for WakeCell {
    fn release(self: Arc<Self>) {
        let by = cause(self.woken.load(Ordering::Relaxed));
        // A wake from here on holds the task anew, one from before is covered by this one. AcqRel:
        // pairs with `hold`.
        let due = self.due.swap(NOTHING, Ordering::AcqRel);
        if due == NOTHING {
            return;
        }
        if let Some(all) = self.all_due()
            && !is_last(due)
            && is_early(all, clock::now())
        {
            // Once: who is woken again and again is not held for ever.
            let until = if self.is_tokios() { alarm::until } else { defer::until_elsewhere };
            self.hold(all, true, until);
        } else {
            self.pass_on(Virtual(due >> 1), by);
        }
    }
}

impl Wake for WakeCell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    // Not inlined: a task is woken both ways, by the same code.
    #[inline(never)]
    fn wake_by_ref(self: &Arc<Self>) {
        let Acts { at: now, entity, last } = thread::act();
        let passing = PASSING.with(Cell::get);
        let named = passing.or_else(|| entity.map(|waker| (waker, Cause::Task)));
        let Some((ready, by)) = named else { return self.wake_unnamed(now) };
        self.end_wait(now);
        self.set_woken(now, by);
        lower(&self.by_entity, ready.0);
        self.outer.wake_by_ref();
        if last && passing.is_none() {
            thread::acted();
        }
    }
}
