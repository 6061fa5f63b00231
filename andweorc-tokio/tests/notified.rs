//! A worker that another thread gets going takes its delay until then, and pays what D grows by
//! until it runs.

use andweorc_core::clock;
use andweorc_core::target::target;
use andweorc_core::thread::{self, Blocking, ledger};
use andweorc_core::time::{Nanos, Real, Speedup};
use andweorc_profile::TargetKind;
use andweorc_tokio::Profile;
use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The ledger is that of the process.
static ALONE: Mutex<()> = Mutex::new(());

/// By how much D grows while the worker gets going.
const GROWS: Duration = Duration::from_millis(20);

/// A thread that gets going within this is taken for one that was notified then.
const IN_TIME: Duration = Duration::from_micros(50);

/// How often at most.
const TRIES: u32 = 200;

/// D grows, in no time.
fn delay() {
    let now = clock::now();
    let account = ledger().open(now).expect("accounts are free");
    let since = Real(now.0 - 2 * i64::try_from(GROWS.as_nanos()).expect("it is short"));
    ledger().enter(account, since);
    ledger().exit(account, now, Nanos(i64::MAX));
    ledger().close(account, now);
}

/// How a thread goes to sleep. What it returns wakes it up.
type Sleeps = fn() -> Box<dyn FnOnce()>;

/// A worker that has nothing to do.
const IDLE: Sleeps = || {
    thread::parked(false);
    Box::new(thread::unparked)
};

/// One that notices something in the driver.
const NOTICES: Sleeps = || {
    thread::parked(true);
    Box::new(|| {
        thread::noticed();
        thread::unparked();
    })
};

/// A plain thread at a futex.
const BLOCKED: Sleeps = || {
    let blocking = Blocking::begin(8).expect("it is a participant");
    Box::new(|| blocking.end())
};

/// Tries how a thread gets going that `sleeps` while somebody `acts`: of so many tries, returns
/// those in which it does so [in time](IN_TIME). Says whether it pays what D grows by before it
/// goes on.
fn pays(sleeps: Sleeps, mut acts: impl FnMut(Waker)) -> impl Iterator<Item = bool> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    thread::enable();
    let half = Speedup::new(0.5).expect("it is a fraction");
    let tries = (0..TRIES).map(move |_| {
        let _alone = &alone;
        ledger().begin(half, clock::now());
        let waker = waker();
        let [asleep, runs] = [const { AtomicBool::new(false) }; 2];
        let until = |flag: &AtomicBool| {
            let mut spins = 0;
            while !flag.load(SeqCst) {
                spins += 1;
                if spins < 10_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
            }
        };
        let (acted, (woken, took)) = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                thread::register();
                let wakes = sleeps();
                asleep.store(true, SeqCst);
                until(&runs);
                let woken = Instant::now();
                wakes();
                (woken, woken.elapsed())
            });
            until(&asleep);
            acts(waker);
            let acted = Instant::now();
            delay();
            runs.store(true, SeqCst);
            (acted, worker.join().expect("it does not panic"))
        });
        ledger().end(clock::now());
        (woken - acted <= IN_TIME).then_some(took >= GROWS / 2)
    });
    tries.flatten()
}

/// Whether it ever pays.
fn notified(sleeps: Sleeps, acts: impl FnMut(Waker)) -> bool {
    let mut tries = pays(sleeps, acts).take(20);
    let (mut some, mut paid) = (false, false);
    while !paid && let Some(pays) = tries.next() {
        (some, paid) = (true, pays);
    }
    if !some {
        println!("skipped: on this machine no thread gets going in time");
    }
    paid || !some
}

/// Whether it pays most often. Whoever is taken off the processor seems to.
fn pays_mostly(sleeps: Sleeps, acts: impl FnMut(Waker)) -> bool {
    let tries: Vec<_> = pays(sleeps, acts).take(20).collect();
    2 * tries.iter().filter(|&&paid| paid).count() > tries.len()
}

/// A waker of a profiled task that waits.
fn waker() -> Waker {
    let left = RefCell::new(None);
    let waits = poll_fn(|context| {
        left.replace(Some(context.waker().clone()));
        Poll::<()>::Pending
    });
    let mut waits = Box::pin(waits.profiled("waits"));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(waits);
    // What a task wakes as it is dropped is in its name. That is over.
    as_task(|| ());
    left.take().expect("it was polled")
}

/// BeforeWake as a task that is polled.
fn as_task(acts: impl FnOnce()) {
    let task = target(TargetKind::Task, "acts", None, None);
    let now = clock::now();
    let mut poll = thread::Poll::begin(task, ledger().virtual_now(now), None, now);
    acts();
    poll.end(false, clock::now());
}

#[test]
fn a_worker_that_a_task_wakes() {
    assert!(notified(IDLE, |waker| as_task(|| waker.wake())));
}

#[test]
fn a_worker_that_a_task_wakes_that_owes() {
    let owes_and_wakes = |waker: Waker| {
        delay();
        waker.wake();
    };
    assert!(notified(IDLE, |waker| as_task(|| owes_and_wakes(waker))));
}

#[test]
fn a_worker_that_a_task_spawns_for() {
    assert!(notified(IDLE, |_| as_task(|| drop(pending::<()>().profiled("spawned")))));
}

#[test]
fn a_worker_that_is_handed_what_came_from_outside() {
    assert!(notified(IDLE, Waker::wake));
}

#[test]
fn a_worker_that_nobody_notified() {
    assert!(!pays_mostly(IDLE, drop));
}

#[test]
fn a_worker_that_has_noticed_something_itself() {
    assert!(!pays_mostly(NOTICES, |waker| as_task(|| waker.wake())));
}

#[test]
fn a_thread_that_another_one_lets_in() {
    let lets_in = |_| {
        thread::register();
        // It has been blocked for longer than what it would take if it took all.
        std::thread::sleep(2 * GROWS);
        thread::catch_up_before_waking(8);
    };
    // On a thread of its own: it is a participant from here on.
    let paid = std::thread::scope(|scope| scope.spawn(|| notified(BLOCKED, lets_in)).join());
    assert!(paid.expect("it does not panic"));
}
