//! Wakes from the world outside that are held come back through the runtime's driver, as the events
//! did that they come from.
//!
//! Who notices an event is the one worker that sleeps in the driver, and while that one runs what
//! it woke, nobody looks there, though another worker be idle: what comes next lies there until
//! somebody looks. A wake passed on by a thread of andweorc's own would get any idle worker going,
//! mostly not that one. In experiments the driver would be watched all the time, and services with
//! time to spare be predicted too high, by up to 20 points (docs/lab-notebook/causes.md).
//!
//! So each runtime has a timer in its driver that goes off when the first wake that it holds is
//! due. Whoever looks there releases it: a sleeping worker at once, a busy one when it would have
//! noticed an event. It costs a system call whenever another wake is due first, and no other
//! thread.
//!
//! # No wake depends on a thread that need not come
//!
//! Only a thread that looks into the driver of a runtime holds a wake there. All others leave it to
//! the thread of [`defer`](andweorc_core::defer), which also [guards](andweorc_core::defer::guard)
//! the timer of each runtime. So a wake is released when it is due, and by
//! [`GRACE`](andweorc_core::defer::GRACE) later at the latest:
//!
//! | who wakes | who holds it | who releases it | and if that one never runs again | test |
//! |---|---|---|---|---|
//! | a worker that is parked, from the driver | the timer of its runtime | whoever looks into that driver | the guard | `overdue_wakes_of_a_runtime_that_nobody_drives_are_released` |
//! | a busy worker of a multi-thread runtime, between two polls | the same | the same; a worker does so after each 61 polls | the guard, when a poll takes long | `a_wake_behind_a_long_poll_is_released` |
//! | a worker in the poll of a task that nobody wrapped, or a thread that once drove a runtime | the thread of `defer` | itself; between two polls also busy workers | it runs no code but tokio's wakers, which neither block nor panic | `only_who_looks_into_a_driver_holds_there` |
//! | a plain thread, one of the blocking pool, one that is torn down | the same | the same | the same | `a_thread_that_is_torn_down_parks_and_wakes` |
//! | anybody, a task of another executor | nobody: its wake goes through. A poll that comes too early is woken again by a thread for such wakes | that thread | there are several: one that blocks holds up no other | `wakes_that_block_or_panic_hold_up_no_others`, `a_foreign_wake_is_made_where_it_is_called` |
//! | anybody, as the runtime ends or has ended | nobody | at once: what was held is released by the driver's end, or with the last thread that knew the timer | | `nothing_is_held_beyond_the_end_of_the_runtime` |
//! | anybody, while the runtime's clock is paused | nobody | at once. A plain thread does not know; its wake and a clock that runs ahead are in a race without andweorc too | the thread of `defer` | `with_a_paused_clock_nothing_is_held` |
//! | anybody, in a child of fork | nobody | at once | | `a_child_of_fork_is_neither_delayed_nor_profiled` |
//! | anybody, where no thread can be started | nobody | at once | | `nothing_is_held_where_there_is_no_thread` |

use crate::runtime_id::RuntimeId;
use crate::thread_key::{NOBODY, thread_key};
#[cfg(tokio_unstable)]
use crate::unwrapped::driver_watch::Watch;
use andweorc_core::hooks::defer::{Guarded, Held, Lead, Waiting};
use andweorc_core::hooks::engine::Rules;
use andweorc_core::hooks::fork::forked;
use andweorc_core::hooks::thread::{self, ledger};
use andweorc_core::hooks::time::{Nanos, Real, Virtual};
use andweorc_core::hooks::{clock, defer};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
#[cfg(tokio_unstable)]
use std::cell::Cell;
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use tokio::io::unix::AsyncFd;
use tokio::io::{self, Interest};
use tokio::runtime::Handle;
use tokio::task;

/// The alarms of the runtimes of one builder.
pub(crate) type Shared = Arc<Mutex<HashMap<RuntimeId, Weak<Alarm>>>>;

/// A timer that tokio takes.
#[derive(Debug)]
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// The alarm of a runtime.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<Timer>,
    holds: Mutex<Holds>,
    /// The worker that waits in the driver, as [`thread_key`] has it, or [`NOBODY`].
    watcher: AtomicUsize,
    /// Watch of the worker that would wait in the driver, were no task held that nobody wrapped.
    #[cfg(tokio_unstable)]
    watch: Watch,
}

#[derive(Debug, Default)]
struct Holds {
    waiting: Waiting,
    /// When the timer goes off next.
    set: Option<Real>,
    /// Number of the thread that has set the timer, as [`thread_key`] has it.
    set_by: usize,
    /// How late a sleeping worker gets going after that: it is set as much earlier.
    lead: Lead,
    /// The runtime has ended: nobody will look.
    ended: bool,
}

/// Runtime that the calling thread works for, or worked for last, as far as the thread knows it.
struct Ours {
    builder: Shared,
    runtime: RuntimeId,
    alarm: Option<Arc<Alarm>>,
    /// The task that a worker of a multi-thread runtime is itself, in which it looks into the
    /// driver.
    worker: Option<task::Id>,
    /// Whether the thread has nothing to do that is not held.
    #[cfg(tokio_unstable)]
    idle: Cell<bool>,
}

impl Ours {
    fn of(builder: &Shared) -> Ours {
        let runtime = RuntimeId::current();
        Ours {
            builder: Arc::clone(builder),
            runtime,
            alarm: of_runtime(builder, runtime),
            worker: task::try_id().filter(|_| runtime.is_multi_thread()),
            #[cfg(tokio_unstable)]
            idle: Cell::new(false),
        }
    }

    fn is_of(&self, builder: &Shared) -> bool {
        let lives = || self.alarm.as_ref().is_none_or(|alarm| !alarm.holds().ended);
        // A worker of a multi-thread runtime never changes to another runtime of the same builder.
        let same = || self.worker.is_some() || self.runtime == RuntimeId::current();
        Arc::ptr_eq(&self.builder, builder) && same() && lives()
    }

    /// The alarm of the runtime into whose driver the calling thread looks at the moment.
    fn driver(&self) -> Option<&Arc<Alarm>> {
        let between_polls = || self.worker.is_some() && self.worker == task::try_id();
        let looks = thread::parked_since().is_some() || between_polls();
        self.alarm.as_ref().filter(|_| looks)
    }
}

thread_local! {
    static OURS: RefCell<Option<Ours>> = const { RefCell::new(None) };
}

/// The calling thread parks, a worker of a runtime of the builder that has `shared`, and with a
/// driver for I/O. Says whether it will be the one that waits in the driver: the first that parks
/// is.
pub(crate) fn parks(shared: &Shared) -> bool {
    let other = change_ours(|ours| ours.take_if(|ours| !ours.is_of(shared)));
    // What an alarm still holds is released when it is dropped, which may look for ours.
    drop(other);
    let watches = change_ours(|ours| {
        let ours = ours.get_or_insert_with(|| Ours::of(shared));
        ours.alarm.as_ref().is_none_or(|alarm| alarm.watch())
    });
    watches.unwrap_or(true)
}

/// Runs `f` with what the calling thread knows of its runtime. A thread that is being torn down
/// knows of none.
fn change_ours<R>(f: impl FnOnce(&mut Option<Ours>) -> R) -> Option<R> {
    OURS.try_with(|ours| Some(f(&mut *ours.try_borrow_mut().ok()?))).ok().flatten()
}

/// Runs `f` with the watch of the runtime that the calling thread works for, and whether it is idle
/// there.
#[cfg(tokio_unstable)]
pub(crate) fn with_ours<R>(f: impl FnOnce(&Watch, &Cell<bool>) -> R) -> Option<R> {
    // A thread that is being torn down works for none.
    let with = OURS.try_with(|ours| {
        let ours = ours.try_borrow().ok()?;
        let ours = ours.as_ref()?;
        Some(f(&ours.alarm.as_ref()?.watch, &ours.idle))
    });
    with.ok().flatten()
}

/// Records that the calling thread is no longer parked, and goes on. Says whether it was the one
/// that waited in the driver.
pub(crate) fn unparks() -> bool {
    let watched = change_ours(|ours| {
        let alarm = ours.as_ref().and_then(|ours| ours.alarm.as_ref());
        alarm.is_some_and(|alarm| alarm.change_watcher(thread_key(), NOBODY))
    });
    watched.unwrap_or(false)
}

/// The alarm of this runtime of the builder, for which the calling thread works. `None` where it
/// can have none.
fn of_runtime(shared: &Shared, runtime: RuntimeId) -> Option<Arc<Alarm>> {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let known = shared.get(&runtime).and_then(Weak::upgrade);
    if let Some(alarm) = known.filter(|alarm| !alarm.holds().ended) {
        return Some(alarm);
    }
    shared.retain(|_, alarm| alarm.strong_count() > 0);
    let alarm = Alarm::new().ok()?;
    if !defer::guard(Arc::downgrade(&alarm) as Weak<dyn Guarded>) {
        return None;
    }
    shared.insert(runtime, Arc::downgrade(&alarm));
    Some(alarm)
}

/// Releases `held` when V has got to `due`: where the calling thread looks into the driver of a
/// runtime, when somebody looks there again.
pub(crate) fn until(due: Virtual, held: Arc<dyn Held>) {
    // A thread that is being torn down works for no runtime.
    let driver = |ours: &RefCell<Option<Ours>>| ours.try_borrow().ok()?.as_ref()?.driver().cloned();
    match OURS.try_with(driver).ok().flatten().filter(|_| !forked()) {
        Some(alarm) => alarm.hold(due, held),
        None => defer::until(due, held),
    }
}

impl Alarm {
    fn new() -> io::Result<Arc<Alarm>> {
        Handle::try_current().map_err(io::Error::other)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Timer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        #[allow(deprecated, reason = "what replaces it is not there in tokio 1.47")]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        let alarm = Arc::new(Alarm {
            timer,
            holds: Mutex::default(),
            watcher: AtomicUsize::new(NOBODY),
            #[cfg(tokio_unstable)]
            watch: Watch::new(),
        });
        alarm.listen(&Waker::from(Arc::new(Listener(Arc::downgrade(&alarm)))));
        Ok(alarm)
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `who` the one that waits in the driver, if it `was` that one until now.
    fn change_watcher(&self, was: usize, who: usize) -> bool {
        // Relaxed: tokio's lock of the driver decides. This follows it but for a worker that comes
        // just as another one goes.
        self.watcher.compare_exchange(was, who, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn watcher(&self) -> usize {
        // Relaxed, as in `change_watcher`.
        self.watcher.load(Ordering::Relaxed)
    }

    /// The calling thread parks. Says whether it will be the one that waits in the driver.
    fn watch(&self) -> bool {
        let watches = self.change_watcher(NOBODY, thread_key()) || self.watcher() == thread_key();
        if watches {
            self.move_here();
        }
        watches
    }

    /// Sets the timer again, if another thread has set it than the one that it will wake. A timer
    /// goes off on the processor from which it was set, and a kernel that keeps threads on few
    /// processors lets who is woken run there too: in turns with the worker that is busy there,
    /// with another processor idle for a millisecond or more. An event of a socket hardly does that
    /// to a worker.
    fn move_here(&self) {
        let mut holds = self.holds();
        if holds.set.is_some()
            && holds.set_by != thread_key()
            && let Some(first) = holds.waiting.first()
        {
            self.set(&mut holds, first, clock::now());
        }
    }

    /// The calling thread looks into the driver. If it is parked, it is the one that waits there,
    /// whoever parked first.
    fn looks(&self) {
        if thread::parked_since().is_some() {
            // Relaxed, as in `change_watcher`.
            self.watcher.store(thread_key(), Ordering::Relaxed);
        }
    }

    fn hold(&self, due: Virtual, held: Arc<dyn Held>) {
        self.looks();
        let mut holds = self.holds();
        if holds.ended {
            drop(holds);
            return defer::until(due, held);
        }
        if holds.waiting.push(due, held) {
            self.set(&mut holds, due, clock::now());
            drop(holds);
            defer::due_at(due);
        }
    }

    /// Sets the timer for what is `due` first.
    fn set(&self, holds: &mut Holds, due: Virtual, now: Real) {
        let (early, lead) = (ledger().time_until_due(due, now), holds.lead.mean());
        // While something stays in the target V moves slowly: as it is due soon, what is late is
        // little, and what is early would go off again and again.
        let stays = !ledger().is_at_rest() && early < lead + lead;
        let at = now + (if stays { early } else { early - lead }).max(Nanos(1));
        (holds.set, holds.set_by) = (Some(at), thread_key());
        let at = Expiration::OneShot(TimeSpec::nanoseconds(at.0));
        // It fails for times that are none, only.
        self.timer.get_ref().0.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME).ok();
    }

    /// Lets the driver call `waker` when the timer goes off next. Nobody reads the timer: each time
    /// that it goes off is an event of its own.
    fn listen(&self, waker: &Waker) {
        let mut context = Context::from_waker(waker);
        while let Poll::Ready(event) = self.timer.poll_read_ready(&mut context) {
            match event {
                Ok(mut event) => event.clear_ready(),
                Err(_) => {
                    self.holds().ended = true;
                    return;
                }
            }
        }
    }

    /// Releases what is due, and sets the timer for what comes next.
    fn release(&self) {
        self.looks();
        thread::noticed();
        let mut holds = self.holds();
        let now = clock::now();
        let woken = thread::parked_since().zip(holds.set.take());
        if let Some((_, set)) = woken.filter(|(parked, set)| parked < set) {
            holds.lead.measured(now - set);
            thread::wakes_in(holds.lead.mean());
        }
        let due = if holds.ended {
            holds.waiting.take_due(Virtual::NEVER)
        } else {
            holds.waiting.take_due(Virtual(ledger().virtual_now(now).0 + Rules::SHIPPED.min_hold.0))
        };
        if let Some(next) = holds.waiting.first() {
            self.set(&mut holds, next, now);
        }
        drop(holds);
        due.into_iter().for_each(|held| held.release());
    }
}

impl Guarded for Alarm {
    fn release_due_by(&self, until: Virtual) -> Option<Virtual> {
        let mut holds = self.holds();
        let overdue = holds.waiting.take_due(until);
        let first = holds.waiting.first();
        drop(holds);
        overdue.into_iter().for_each(|held| held.release());
        first
    }
}

impl Drop for Alarm {
    /// Its runtime is gone, and all its workers are.
    fn drop(&mut self) {
        let holds = self.holds.get_mut().unwrap_or_else(PoisonError::into_inner);
        let left = holds.waiting.take_due(Virtual::NEVER);
        left.into_iter().for_each(|held| held.release());
    }
}

/// Whom the driver wakes when the timer goes off.
struct Listener(Weak<Alarm>);

impl Wake for Listener {
    fn wake(self: Arc<Self>) {
        if let Some(alarm) = self.0.upgrade() {
            // First, so that it isn't missed when it goes off again from here on.
            alarm.listen(&Waker::from(Arc::clone(&self)));
            alarm.release();
        }
    }
}

#[cfg(test)]
mod tests;
