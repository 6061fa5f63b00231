//! The waker of a profiled task: a shell around the task's clock, which knows the rules.
//!
//! A [`WakeCell`] is built once for a task's waker and never changes it: tokio keeps one waker for
//! a task's life, and `will_wake` stays true across polls. A wake tells the
//! [clock](andweorc_core::engine::TaskClock) who makes it, then passes itself on to the waker
//! outside, or is held. No wake is ever lost, for each is passed on, at once or by the
//! [deferral](andweorc_core::defer) queue or a runtime's alarm, which never drop one.
//!
//! A profiled future may be part of another one: a request of a connection, a task of a `LocalSet`.
//! Its wake passes through the cell of the future around it, which is ready when its part is. So
//! what has been held for the part is not held again for the whole (`PASSING`).

// Models have neither; they include this file by its path.
#[cfg(all(test, not(loom)))]
#[path = "wake/tests.rs"]
pub(crate) mod tests;
#[cfg(all(tokio_unstable, not(loom)))]
#[path = "wake/unwrapped.rs"]
mod unwrapped;

use crate::deferred;
#[cfg(not(loom))]
use crate::driver_timer;
use crate::wait_hint::clock_is_paused;
use crate::wakers;
// Models have no driver.
#[cfg(loom)]
use andweorc_core::hooks::defer as driver_timer;
use andweorc_core::hooks::engine::{Effect, Released, TaskClock, WaitHint, WakeSource, seldom};
use andweorc_core::hooks::target::TaskTargets;
use andweorc_core::hooks::thread::{BeforeWake, model};
use andweorc_core::hooks::time::{Nanos, Real, Virtual};
use andweorc_core::hooks::wait::Cause;
use andweorc_core::hooks::{clock, defer, program_clock, thread, wall};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Wake, Waker};

/// While the calling thread passes on a wake that is in nobody's name: when the future that it woke
/// is ready, and by whom.
type Passing = Cell<Option<(Virtual, Cause)>>;

#[cfg(not(loom))]
andweorc_core::hooks::plain_thread_local! {
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
    model().is_early(ready, now) && !clock_is_paused()
}

/// Functions of a waker of a [`WakeCell`], whose data is the pointer of an `Arc` that it owns: as
/// of `Waker::from(Arc<impl Wake>)`, and it counts its clones.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

andweorc_core::hooks::plain_thread_local! {
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
    crate::unwrapped::looks::wait_begins();
}

/// A clone of the waker of a task, which begins no wait.
pub(crate) fn keep(outer: &Waker) -> Waker {
    #[cfg(all(tokio_unstable, not(loom)))]
    return crate::unwrapped::looks::keep(outer);
    #[cfg(not(all(tokio_unstable, not(loom))))]
    outer.clone()
}

/// # Safety
///
/// `cell` is from `Arc::into_raw` or `Arc::as_ptr`, and the `Arc` lives.
unsafe fn clone(cell: *const ()) -> RawWaker {
    cloned();
    if wall::is_recording() {
        wall::waker_cloned(cell.addr());
    }
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

/// Record of a task that wakes write and polls take. One for each live task: every byte counts.
#[derive(Debug)]
pub(crate) struct WakeCell {
    outer: Waker,
    /// Targets in which the task can be sped up.
    targets: &'static TaskTargets,
    /// The task's clock.
    pub(crate) clock: TaskClock,
}

impl WakeCell {
    /// Of a task that has taken this delay and is ready at `ready`.
    pub(crate) fn new(
        outer: Waker,
        targets: &'static TaskTargets,
        taken: Nanos,
        ready: Virtual,
    ) -> Arc<WakeCell> {
        Arc::new(WakeCell { outer, targets, clock: TaskClock::new(taken, ready) })
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

    /// Number of the task where [wakes](wall::woken) are recorded.
    pub(crate) fn number(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Whether this cell passes its wakes on to `outer`.
    #[inline]
    pub(crate) fn will_wake(&self, outer: &Waker) -> bool {
        self.outer.will_wake(outer)
    }

    /// When the wakes since the last call make a task ready that parked at `at`. [`Virtual::NEVER`]
    /// without any.
    #[inline]
    pub(crate) fn take_ready(&self, at: Virtual) -> Virtual {
        self.clock.take_ready(model(), at)
    }

    /// Ends the wait that is the target, if the task is in one.
    #[inline]
    pub(crate) fn end_wait(&self, now: Real) {
        self.clock.end_wait(model(), now);
    }

    /// Defers the poll until V gets to `ready`.
    pub(crate) fn defer(self: &Arc<Self>, ready: Virtual) {
        let until = if self.is_tokios() { defer::until } else { defer::until_elsewhere };
        if self.clock.defer_poll(ready) {
            until(ready, Arc::clone(self) as Arc<dyn defer::Held>);
        }
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

    /// Passes on a wake that is in nobody's name, which makes the task ready at `ready`.
    fn pass_on(&self, ready: Virtual, by: Cause) {
        thread::pass_on();
        let _passing = Passes::on((ready, by));
        self.outer.wake_by_ref();
    }

    /// Returns who wakes the task at `now`, with no participant on the waking thread.
    #[inline]
    fn unnamed(&self, now: Real) -> WakeSource {
        if seldom(deferred::is_woken()) {
            self.targets.yields.had();
            return WakeSource::Runtime;
        }
        match self.clock.hint() {
            WaitHint::Runtime => return WakeSource::Runtime,
            WaitHint::Loopback => return WakeSource::Loopback,
            WaitHint::External => {}
        }
        if thread::is_busy_worker() {
            self.targets.yields.may_have();
        }
        if program_clock::noticed_a_virtual_timer() {
            return WakeSource::Timer;
        }
        let came = thread::came(now, self.clock.waits_since(), &self.targets.wait_history);
        WakeSource::External { came, by: external() }
    }

    /// A wake with no participant on the waking thread.
    fn wake_unnamed(self: &Arc<Self>, now: Real) {
        if thread::takes_part() {
            return self.wake_by_ref();
        }
        let source = self.unnamed(now);
        match self.clock.woken(model(), source, now) {
            // A wake of another executor goes through, on this thread: the poll that it causes is
            // deferred.
            Effect::Hold(due) if self.is_tokios() && !clock_is_paused() => {
                if self.clock.hold(due, false) {
                    driver_timer::until(due, Arc::clone(self) as Arc<dyn defer::Held>);
                }
            }
            Effect::Hold(ready) | Effect::PassOn(ready) => self.pass_on(ready, cause(source)),
        }
    }
}

/// The cause of a wait that this source of a wake ended.
fn cause(source: WakeSource) -> Cause {
    match source {
        WakeSource::Task { by, .. } | WakeSource::External { by, .. } => by,
        WakeSource::Timer => Cause::Timer,
        WakeSource::Loopback | WakeSource::Runtime => Cause::Task,
    }
}

/// The cause of a wake from outside: a timer, where that is known.
fn external() -> Cause {
    if program_clock::noticed_a_timer() { Cause::Timer } else { Cause::Outside }
}

impl defer::Held for WakeCell {
    fn release(self: Arc<Self>) {
        let now = clock::now();
        let Some(Released { due, by, again }) = self.clock.released(model(), now) else { return };
        if let Some(all) = again
            && !clock_is_paused()
        {
            let until = if self.is_tokios() { driver_timer::until } else { defer::until_elsewhere };
            if self.clock.hold(all, true) {
                until(all, Arc::clone(&self) as Arc<dyn defer::Held>);
            }
        } else {
            self.pass_on(due, by);
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
        let BeforeWake { at: now, participant, last } = thread::before_wake();
        let passing = PASSING.with(Cell::get);
        let named = passing.or_else(|| participant.map(|waker| (waker, Cause::Task)));
        let Some((at, by)) = named else { return self.wake_unnamed(now) };
        if wall::is_recording() {
            wall::woken(self.number());
        }
        self.clock.woken(model(), WakeSource::Task { at, by }, now);
        self.outer.wake_by_ref();
        if last && passing.is_none() {
            thread::after_final_wake();
        }
    }
}
