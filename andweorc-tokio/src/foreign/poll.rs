//! A poll of a task that nobody wrapped.

use super::{ForeignTask, watch};
use crate::profiled::{Begun, wait_ended};
use crate::put_off;
use andweorc_core::clock;
use andweorc_core::foreign::How;
use andweorc_core::thread::{self, LEDGER, Poll as PollScope, Polled};
use andweorc_core::time::{Real, Virtual};
use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::task::coop::{RestoreOnPending, has_budget_remaining, poll_proceed};

/// More than any budget.
const MOST_BUDGET: u32 = 1000;

/// What the calling thread has entered and not left.
struct Entered {
    task: Arc<ForeignTask>,
    how: Entry,
}

enum Entry {
    /// By somebody else, who has its span.
    Other,
    /// Too early. When this is dropped, others get the budget back.
    Held { _budget: Option<RestoreOnPending> },
    /// A poll; or the end of it, when it is dropped.
    Poll(Begun),
}

thread_local! {
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

fn with_entered<R>(f: impl FnOnce(&mut Vec<Entered>) -> R) -> Option<R> {
    ENTERED.try_with(|entered| Some(f(&mut *entered.try_borrow_mut().ok()?))).ok().flatten()
}

pub(super) fn enter(task: Arc<ForeignTask>) {
    put_off::ends();
    let how = if task.is_here() { begin(&task) } else { Entry::Other };
    // A thread that is being torn down keeps no account of it: the poll ends here for andweorc.
    with_entered(|entered| entered.push(Entered { task, how })).unwrap_or_default();
}

pub(super) fn exit(task: &Arc<ForeignTask>) {
    let entry = with_entered(|entered| {
        // Most often the last one; the user may leave spans out of order.
        let at = entered.iter().rposition(|one| Arc::ptr_eq(&one.task, task))?;
        Some(entered.remove(at).how)
    });
    match entry.flatten() {
        None | Some(Entry::Other) => {}
        Some(held @ Entry::Held { .. }) => {
            drop(held);
            watch::idle();
            thread::handed_back();
            // It will look again in a moment: whoever has something to do goes first.
            std::thread::yield_now();
        }
        Some(Entry::Poll(begun)) => end(task, begun),
    }
}

fn begin(task: &ForeignTask) -> Entry {
    let now = clock::now();
    task.cell.end_wait(now);
    let state = task.state();
    if task.how == How::Worker {
        if task.cell.holds(state.at, now, |ready| !state.found || watch::finds(ready)) {
            task.hands_back();
            return Entry::Held { _budget: use_up_budget() };
        }
        task.goes_on(state);
    }
    let ready = task.cell.take_ready(state.at);
    let woken = ready != Virtual::NEVER;
    let from = match task.how {
        // Nobody says who woke it.
        How::Root => LEDGER.virtual_now(now),
        How::Worker | How::Blocking if woken => ready,
        How::Worker | How::Blocking => state.at,
    };
    if task.how == How::Blocking {
        thread::in_pool(task.cell.taken());
    }
    let targets = task.cell.targets();
    let ended = match state.parked {
        Real::NEVER => None,
        parked => wait_ended(targets.wait, parked, &task.cell, now),
    };
    let level = PollScope::level(from, now);
    let polled = Polled::of(&*task.cell, state.parked == Real::NEVER);
    let scope = PollScope::begin_on(level, targets.task, polled, from, ended, now);
    Entry::Poll(Begun::new(&task.cell, scope, woken))
}

fn end(task: &ForeignTask, begun: Begun) {
    let Begun { mut scope, listen, woken, before } = begun;
    let unnamed = listen.end();
    let waits = scope.waits(task.cell.targets().wait);
    let now = clock::now();
    // A poll that nobody woke it for is none: its future is dropped. Whoever joins it is woken next, in its name.
    let at = scope.end(!woken && task.how != How::Root, now).at;
    if woken {
        let parked = before.waits_since(&scope, at, now);
        task.change(|state| (state.at, state.parked) = (at, parked));
        put_off::marks(&task.cell.targets().yields);
        task.cell.parks(parked, at.delay_at(parked), unnamed);
        if waits {
            task.cell.begin_wait(now);
        }
    }
}

/// Uses up the budget of the poll that begins, until the answer is dropped.
fn use_up_budget() -> Option<RestoreOnPending> {
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(restore) = poll_proceed(&mut context) else { return None };
    for _ in 0..MOST_BUDGET {
        if !has_budget_remaining() {
            break;
        }
        if let Poll::Ready(one) = poll_proceed(&mut context) {
            one.made_progress();
        }
    }
    Some(restore)
}
