//! Tests of wakes: who woke a task, and until when it is held for that.

use super::*;
use crate::profiled::{Kind, Profile, wait_ended};
use andweorc_core::engine::Rules;
use andweorc_core::thread::ledger;
use andweorc_core::time::Speedup;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::sleep;
use std::time::Duration;
use tests_support::wakes::Watched;

const MS: Duration = Duration::from_millis(1);

/// The ledger and the looks are those of the process.
static ALONE: Mutex<()> = Mutex::new(());

/// Until it is dropped no other test of this process is in an experiment.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what `f` comes to on a thread of its own: a worker by its hooks, which has just been
/// idle and is busy now.
fn as_busy_worker<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let _alone = alone();
    let worker = std::thread::spawn(|| {
        thread::parked(true);
        sleep(MS);
        thread::unparked();
        f()
    });
    worker.join().unwrap()
}

fn cell(kind: &'static str) -> (Arc<WakeCell>, Nanos) {
    let targets = Kind::Name(kind.into()).targets();
    let taken = ledger().global_delay(clock::now());
    (WakeCell::new(Waker::noop().clone(), targets, taken, Virtual::NEVER), taken)
}

#[test]
fn task_woken_by_a_busy_worker_was_ready_before_the_wake() {
    as_busy_worker(|| {
        ledger().begin(Speedup::from_ppm(500_000), clock::now());
        let (cell, taken) = cell("wake: noticed late");
        let parks = clock::now();
        cell.clock.waits_from(parks);
        sleep(MS);
        let before = clock::now();
        Arc::clone(&cell).wake();
        let ready = cell.take_ready(Virtual(i64::MIN));
        assert!(parks.less(taken) <= ready && ready < before.less(taken), "{ready:?}");
        // How it was noticed is told as it was.
        assert!(
            cell.clock.take_woken().is_some_and(|(at, by)| at >= before && by == Cause::Outside)
        );
        ledger().end(clock::now());
    });
}

#[test]
fn a_wait_that_is_the_target_ends_when_that_came_which_ended_it() {
    as_busy_worker(|| {
        let half = Speedup::from_ppm(500_000);
        ledger().begin(half, clock::now());
        // Of a test beside this one a worker may look at this very moment: then nothing came
        // before.
        let ends = (0..20).map(|_| {
            let (cell, _) = cell("wake: a target noticed late");
            let taken = cell.clock.local_delay();
            let parks = clock::now();
            cell.clock.parks(model(), parks, taken, WaitHint::External);
            cell.clock.begin_wait(model(), parks);
            sleep(MS);
            let noticed = clock::now();
            let source = cell.unnamed(noticed);
            let WakeSource::External { came, .. } = source else { panic!("{source:?}") };
            cell.clock.woken(model(), source, noticed);
            assert_eq!(
                cell.clock.local_delay() - taken,
                half.of(came - parks),
                "until {noticed:?}"
            );
            (came, noticed)
        });
        let late = ends.filter(|(came, noticed)| came < noticed).count();
        ledger().end(clock::now());
        assert!(late > 0);
    });
}

#[test]
fn a_poll_on_a_thread_whose_clock_is_behind_ends_the_wait() {
    let targets = Kind::Name("wake: polled on a clock that is behind".into()).targets();
    let now = clock::now();
    let cell =
        WakeCell::new(Waker::noop().clone(), targets, ledger().global_delay(now), Virtual::NEVER);
    cell.clock.set_woken(now, Cause::Task);
    let parked = now + Nanos(50);
    let ended = wait_ended(targets.wait, parked, &cell, now).expect("it was woken");
    assert_eq!((ended.parked(), ended.woken()), (parked, parked));
}

/// Lets D grow, by half of the time that this takes.
fn delay(time: Duration) {
    std::thread::spawn(move || {
        let account = ledger().open(clock::now()).expect("accounts are free");
        ledger().enter(account, clock::now());
        sleep(time);
        ledger().exit(account, clock::now(), Nanos(i64::MAX));
        ledger().close(account, clock::now());
    })
    .join()
    .unwrap();
}

#[test]
fn a_task_is_held_until_all_is_due_that_came_while_it_was() {
    let _alone = alone();
    thread::enable();
    ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
    let Watched { waker: outer, woken: told, .. } = &Watched::spawn();
    let targets = Kind::Name("wake: waits for two".into()).targets();
    let taken = ledger().global_delay(clock::now());
    let cell = WakeCell::new(outer.clone(), targets, taken, Virtual::NEVER);
    delay(100 * MS);
    Arc::clone(&cell).wake();
    sleep(10 * MS);
    let second = clock::now();
    Arc::clone(&cell).wake();
    let woken = told.recv().unwrap();
    assert!(
        ledger().time_until_due(second.less(taken), woken) <= Rules::SHIPPED.min_hold,
        "{woken:?} {second:?}"
    );
    assert!(cell.take_ready(Virtual(i64::MIN)) >= second.less(taken), "as of the second");
    ledger().end(clock::now());
}

#[test]
fn a_task_is_ready_when_the_latest_is_that_came_from_outside() {
    let _alone = alone();
    thread::enable();
    ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
    let (cell, taken) = cell("wake: two came");
    Arc::clone(&cell).wake();
    sleep(MS);
    let second = clock::now();
    Arc::clone(&cell).wake();
    assert!(cell.take_ready(Virtual(i64::MIN)) >= second.less(taken));
    // What comes later, but was there earlier, changes nothing.
    for came in [second + Nanos(2), second] {
        let source = WakeSource::External { came, by: Cause::Outside };
        cell.clock.woken(model(), source, clock::now());
    }
    assert_eq!(cell.take_ready(Virtual(i64::MIN)), (second + Nanos(2)).less(taken));
    ledger().end(clock::now());
}

/// A waker of an executor that is gone.
struct Gone;

impl Wake for Gone {
    fn wake(self: Arc<Self>) {
        panic!("the executor is gone");
    }
}

#[test]
fn a_foreign_wake_is_made_where_it_is_called() {
    let _alone = alone();
    thread::enable();
    ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
    let targets = Kind::Name("wake: foreign".into()).targets();
    let cells = |outer: Waker| {
        let taken = ledger().global_delay(clock::now());
        let cell = WakeCell::new(outer, targets, taken, Virtual::NEVER);
        // A part of it, as of a request in a connection.
        let part = WakeCell::new((*cell.waker()).clone(), targets, taken, Virtual::NEVER);
        [cell, part]
    };
    let foreign = cells(Waker::from(Arc::new(Gone)));
    let task = Watched::spawn();
    let tokios = cells(task.waker.clone());
    delay(20 * MS);
    for cell in foreign {
        let woken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cell.wake()));
        assert!(woken.is_err(), "its panic is that of the thread that wakes");
        assert_eq!(PASSING.get(), None, "and ends what it was about");
    }
    for cell in tokios {
        delay(20 * MS);
        let before = clock::now();
        Arc::clone(&cell).wake();
        assert!(task.woken.recv().unwrap() - before > Nanos::from_millis(1), "it is held");
    }
    ledger().end(clock::now());
}

/// A part of `task` that leaves its waker in what is returned, and ends when it is polled once
/// more.
fn leaves_its_waker(task: &Watched) -> (Pin<Box<impl Future<Output = ()>>>, Waker) {
    let left = Arc::new(Mutex::new(None));
    let leave = Arc::clone(&left);
    let part = poll_fn(move |context: &mut Context<'_>| {
        let before = leave.lock().unwrap().replace(context.waker().clone());
        if before.is_some() { Poll::Ready(()) } else { Poll::Pending }
    });
    let mut part = Box::pin(part.profiled("wake: part"));
    assert!(part.as_mut().poll(&mut Context::from_waker(&task.waker)).is_pending());
    let waker = left.lock().unwrap().take().unwrap();
    (part, waker)
}

#[test]
fn a_future_that_is_gone_is_not_woken() {
    let _alone = alone();
    thread::enable();
    ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
    let (of_gone, of_kept) = (Watched::spawn(), Watched::spawn());
    let (gone, its_waker) = leaves_its_waker(&of_gone);
    let (_kept, waker) = leaves_its_waker(&of_kept);
    delay(20 * MS);
    its_waker.wake();
    waker.wake();
    drop(gone);
    // All that is due then or before has been released when this is.
    of_kept.woken.recv().unwrap();
    assert!(of_gone.woken.try_recv().is_err());
    ledger().end(clock::now());
}
