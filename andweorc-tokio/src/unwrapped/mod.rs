//! Tasks that nobody wrapped, with `--cfg tokio_unstable`: those that libraries spawn.
//!
//! # How they are seen
//!
//! With that cfg and its feature `tracing` (which this crate then switches on), tokio gives each
//! task a span, which it enters to poll the task and to drop its future, and an event for each
//! wake. The layer of `andweorc-tracing` hands both on to here. That is all that a wrapper has: the
//! scope of a poll, ended before the task is given back to the runtime, and who wakes. So polls and
//! wakes are treated as those of [`Profiled`](crate::Profiled). tokio's own poll hooks tell less
//! (no `LocalSet`, no wakes, no drops), and the hook after a poll comes too late: another worker
//! may have the task by then.
//!
//! # How they are held
//!
//! A wrapper that is polled too early returns `Pending`. Nobody can do that for a task that is not
//! wrapped, but the task itself can be made to: in a poll that comes too early it finds its budget
//! for cooperative scheduling used up. What tokio lets a task wait for asks for that budget first,
//! so the task finds nothing ready, and is woken again as soon as others had their turn. No worker
//! is blocked for it; one that has nothing else to do looks again and again until the time has
//! come.
//!
//! A task that waits for something else may go on in such a poll, and find a channel empty that is
//! not (`now_or_never`). So a task is held only
//!
//! - if nothing but the driver of its runtime, with an event or a timer, has woken it since it
//!   parked, and
//! - if the waits of its kind that the driver ends were seen (`budget.rs` of the core) to ask for
//!   budget: as a wait begins, a waker is cloned, and one step of the budget is taken then and
//!   given back later.
//!
//! Others go on as they come. What came for them too early is forgiven, and what is outside is not
//! stretched for them.
//!
//! One thing is left: a task that waits for a socket or a timer and at the same time for something
//! that does not ask, in a `select!` or `join!`, and gets the latter in the moment between its
//! being there and its wake, while it is held for the former.
//!
//! # What is not seen
//!
//! - A task that was spawned before there was a subscriber with the layer, or before andweorc was
//!   on.
//! - Who wakes a future in `block_on`: it goes on in the time of the program.
//! - A wait that does not ask for budget, of a kind of which all polls did that are looked at: the
//!   first ones, and one of 17 after that.

mod budget;
pub(crate) mod driver_watch;
pub(crate) mod looks;
mod poll;
mod site;
pub(crate) mod watch;

use crate::deferred;
use crate::id_number::number_of;
use crate::thread_key::thread_key;
use crate::wake::{WakeCell, cloned};
use crate::wrapped::Wrapped;
use andweorc_core::hooks::engine::Parking;
use andweorc_core::hooks::time::Real;
use andweorc_core::hooks::unwrapped::{How, Spawned, Task, Tasks};
use andweorc_core::hooks::{clock, thread};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// Takes part in the polls of tasks that nobody wrapped, from now on, as far as a layer reports
/// them.
pub fn install() {
    andweorc_core::hooks::unwrapped::install(&Foreign);
}

#[derive(Debug)]
struct Foreign;

impl Tasks for Foreign {
    fn is_wrapped(&self) -> bool {
        Wrapped::take()
    }

    fn waker_cloned(&self) {
        cloned();
    }

    fn spawned(&self, spawned: Spawned<'_>) -> Option<Arc<dyn Task>> {
        if spawned.how == How::Blocking && site::is_worker(spawned.file) {
            return None;
        }
        let now = clock::now();
        let born = thread::spawns(now);
        let (waker, targets) = (Waker::noop().clone(), site::targets(&spawned));
        Some(Arc::new(UnwrappedTask {
            id: spawned.id,
            how: spawned.how,
            by: thread_key(),
            cell: WakeCell::new(waker, targets, born.delay_at(now), born),
            state: Mutex::new(State {
                parking: Parking::born(born),
                has_waited: false,
                asked: None,
                handed_back: None,
                found: false,
                held: false,
            }),
            stirred: AtomicBool::new(false),
        }))
    }
}

/// A task that nobody wrapped.
#[derive(Debug)]
struct UnwrappedTask {
    id: u64,
    how: How,
    /// Number of the thread that spawned the task, as [`thread_key`] has it.
    by: usize,
    /// Cell that notes who woke the task. It wakes nobody.
    cell: Arc<WakeCell>,
    /// But for whoever wakes it, only who polls it looks at this.
    state: Mutex<State>,
    /// Something else than the driver of a runtime has woken the task since it parked.
    stirred: AtomicBool,
}

/// State that is kept of a task between polls.
#[derive(Clone, Copy, Debug)]
struct State {
    parking: Parking,
    /// The task had waited before the wait that it is in.
    has_waited: bool,
    /// Whether the wait that began last has asked for budget, if that was looked at.
    asked: Option<bool>,
    /// Thread that was to poll the task too early and gave it back: the runtime has that thread
    /// look again.
    handed_back: Option<usize>,
    /// Whether the task was found in the driver by a worker that had nothing to do but what is
    /// held.
    found: bool,
    /// Whether the task is held.
    held: bool,
}

impl State {
    /// Which record of its kind is that of the wait that it is in: 0 for the first wait of a task,
    /// 1 for all others. Many tasks begin with a wait of another kind, until all are there, say.
    fn wait(&self) -> usize {
        usize::from(self.has_waited)
    }

    /// Which record is that of the wait that it begins next.
    fn next_wait(&self) -> usize {
        usize::from(self.parking.since != Real::NEVER)
    }
}

impl UnwrappedTask {
    fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether something else than the driver of a runtime has woken it since it parked: it may
    /// have got that, and go on.
    fn was_stirred(&self) -> bool {
        // Acquire, pairs with the Release of the wake.
        self.stirred.load(Ordering::Acquire)
    }

    /// The driver has ended its wait, as far as is known: such a wait may be held.
    fn driver_ends_wait(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = state.asked.take().filter(|_| !self.was_stirred()) {
            self.cell.targets().asks[state.wait()].looked_at(asked);
        }
    }

    /// Records that the task is held, and that the calling thread gives it back.
    fn hand_back(&self) {
        self.change(|state| {
            state.handed_back = Some(thread_key());
            if !mem::replace(&mut state.held, true) {
                watch::held();
            }
        });
    }

    /// The calling thread polls it, as `state` says.
    fn goes_on(&self, state: State) {
        self.stirred.store(false, Ordering::Relaxed);
        if state.found || state.held {
            self.change(|state| (state.found, state.held) = (false, false));
        }
        if state.held {
            watch::let_go();
        }
        watch::busy(state.found);
    }

    /// Whether the runtime has the calling thread look again at what it gave back, so that this
    /// wake is nobody's. What the driver wakes in the same round comes before that, and in a moment
    /// counts as it.
    fn looks_again(&self) -> bool {
        let here = Some(thread_key());
        let again = self.state().handed_back == here
            && thread::parked_since().is_none()
            && thread::participant_at(clock::now()).is_none();
        if again {
            self.change(|state| state.handed_back = None);
        }
        again
    }

    /// Whether it is this task that the calling thread polls, or drops: its span may be entered by
    /// others too, who took it for one of the user's (`Span::current()`).
    fn is_here(&self) -> bool {
        match self.how {
            How::Root => thread_key() == self.by,
            How::Worker | How::Blocking => {
                tokio::task::try_id().and_then(number_of) == Some(self.id)
            }
        }
    }
}

impl Task for UnwrappedTask {
    fn enter(self: Arc<Self>) {
        poll::enter(self);
    }

    fn exit(self: Arc<Self>) {
        poll::exit(&self);
    }

    fn wake(&self) {
        if !self.looks_again() {
            if is_from_driver() {
                self.driver_ends_wait();
            } else {
                // Before the waker pays what it owes: what it has done can be seen already.
                // Release, pairs with the Acquire in `was_stirred`.
                self.stirred.store(true, Ordering::Release);
            }
            let found = watch::is_idle() && !deferred::is_woken();
            if found && thread::participant_at(clock::now()).is_none() {
                self.change(|state| state.found = true);
            }
            self.cell.note();
        }
    }
}

/// Whether the calling thread has found the wake that it makes in the driver of its runtime.
fn is_from_driver() -> bool {
    // A worker of a multi-thread runtime is a task itself, and the only one that is not reported.
    // One of a current-thread runtime is known by its hooks.
    let works = tokio::task::try_id().is_some() || thread::is_busy_worker();
    let looks = thread::parked_since().is_some()
        || (works && poll::is_between_polls() && !deferred::is_woken());
    looks && thread::participant_at(clock::now()).is_none()
}

impl Drop for UnwrappedTask {
    fn drop(&mut self) {
        if self.state().held {
            watch::let_go();
        }
        self.cell.end_wait(clock::now());
    }
}
