//! A poll of a task that nobody wrapped.

use super::budget::{self, Look};
use super::{UnwrappedTask, looks, watch};
use crate::deferred;
use crate::profiled::Begun;
use andweorc_core::hooks::clock;
use andweorc_core::hooks::thread::{self, Poll as PollScope, ledger};
use andweorc_core::hooks::time::{Nanos, Real, Virtual};
use andweorc_core::hooks::unwrapped::How;
use std::cell::RefCell;
use std::mem;
use std::sync::Arc;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::coop::RestoreOnPending;

/// The longest that a worker sleeps that has found nothing but tasks that are held. Short, since
/// whatever else comes for it waits as long.
const NAP: Nanos = Nanos::from_micros(100);

/// How long it sleeps where it waits for another worker, which may be done at any moment.
const LOOK: Nanos = Nanos::from_micros(30);

/// A shorter nap takes more time than it lasts.
const MIN_NAP: Nanos = Nanos::from_micros(10);

/// A task whose span the calling thread has entered and not left.
struct Entered {
    task: Arc<UnwrappedTask>,
    how: Entry,
    /// The look at what was entered before, which rests meanwhile.
    around: Option<Look>,
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

/// Whether the calling thread polls no task that nobody wrapped.
pub(super) fn is_between_polls() -> bool {
    with_entered(|entered| entered.is_empty()).unwrap_or(false)
}

fn with_entered<R>(f: impl FnOnce(&mut Vec<Entered>) -> R) -> Option<R> {
    ENTERED.try_with(|entered| Some(f(&mut *entered.try_borrow_mut().ok()?))).ok().flatten()
}

pub(super) fn enter(task: Arc<UnwrappedTask>) {
    deferred::ends();
    let (how, look) = if task.is_here() { begin(&task) } else { (Entry::Other, None) };
    // A thread that is being torn down keeps no account of it: the poll ends here for andweorc.
    with_entered(|entered| entered.push(Entered { task, how, around: looks::replace(look) }))
        .unwrap_or_default();
}

pub(super) fn exit(task: &Arc<UnwrappedTask>) {
    let entry = with_entered(|entered| {
        // Most often the last one; the user may leave spans out of order.
        let at = entered.iter().rposition(|one| Arc::ptr_eq(&one.task, task))?;
        let Entered { how, around, .. } = entered.remove(at);
        // A poll that was entered after this one keeps its look.
        let look = match entered.get_mut(at) {
            Some(above) => mem::replace(&mut above.around, around),
            None => looks::replace(around),
        };
        Some((how, look))
    });
    match entry.flatten() {
        None | Some((Entry::Other, _)) => {}
        Some((held @ Entry::Held { .. }, _)) => {
            drop(held);
            let has_else = !watch::is_idle();
            watch::idle();
            thread::handed_back();
            // It will look again in a moment: whoever has something to do goes first.
            if has_else || !shares_its_work() {
                std::thread::yield_now();
            } else {
                nap(task);
            }
        }
        Some((Entry::Poll(begun), look)) => {
            // Of an earlier wait nothing is known any more.
            task.change(|state| state.asked = look.and_then(|look| look.end()));
            end(task, begun);
        }
    }
}

/// Whether another worker takes what comes while the calling one sleeps.
fn shares_its_work() -> bool {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    matches!(flavor, Ok(RuntimeFlavor::MultiThread))
}

/// Sleeps until `task` may go on, which is held, and [`NAP`] at most.
fn nap(task: &UnwrappedTask) {
    let now = clock::now();
    // V does not go faster than time. One that is due waits for a worker to look into the driver.
    let early =
        task.cell.due().map(|due| ledger().time_until_due(due, now)).filter(|&it| it > Nanos::ZERO);
    let nap = early.map_or(LOOK, |early| early.min(NAP));
    if nap > MIN_NAP {
        andweorc_core::hooks::pause::nap(now + nap);
    } else {
        std::thread::yield_now();
    }
}

/// Begins a poll of the task, unless that is held. Returns how to look at its waits, too.
fn begin(task: &UnwrappedTask) -> (Entry, Option<Look>) {
    let now = clock::now();
    task.cell.end_wait(now);
    let state = task.state();
    let asks = &task.cell.targets().asks;
    if task.how == How::Worker {
        let finds = |ready| !state.found || watch::finds(ready);
        let may_hold = asks[state.wait()].always() && !task.was_stirred();
        if may_hold && task.cell.holds(state.parking.at, now, finds) {
            task.hand_back();
            return (Entry::Held { _budget: budget::use_up() }, None);
        }
        task.goes_on(state);
    }
    let ready = task.cell.take_ready(state.parking.at);
    let woken = ready != Virtual::NEVER;
    let from = match task.how {
        // Nobody says who woke it.
        How::Root => ledger().virtual_now(now),
        // One that can't be held must not hold up its worker either: what came for it too early is
        // forgiven.
        How::Worker if woken => ready.min(ledger().virtual_now(now)),
        How::Worker | How::Blocking if woken => ready,
        How::Worker | How::Blocking => state.parking.at,
    };
    if task.how == How::Blocking {
        thread::in_pool(task.cell.clock.local_delay());
    }
    let caught_up = PollScope::caught_up(from, now);
    let mut begun = Begun::new(&task.cell, &state.parking, caught_up, from, woken, now);
    // A thread of the blocking pool is there to be blocked.
    if task.how != How::Blocking {
        begun.watch();
    }
    let looks = || asks[state.next_wait()].looks();
    let look = (task.how == How::Worker && woken && looks()).then(Look::default);
    (Entry::Poll(begun), look)
}

fn end(task: &UnwrappedTask, mut begun: Begun) {
    // A poll that nobody woke it for is none: its future is dropped. Whoever joins it is woken
    // next, in its name.
    let completed = !begun.poll.is_woken() && task.how != How::Root;
    let mut parking = task.state().parking;
    begun.end(&task.cell, &mut parking, completed);
    if begun.poll.is_woken() {
        task.change(|state| {
            state.has_waited = state.parking.since != Real::NEVER;
            state.parking = parking;
        });
    }
}
