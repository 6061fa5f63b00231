//! Debts of threads that were blocked, in programs of std's and parking_lot's locks: on the real
//! ledger, of tens of milliseconds. A thread that was blocked by another one must not have them;
//! one that slept, or waited until a time, must.

use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::target::{Target, target};
use andweorc_core::thread::{self, ledger};
use andweorc_core::time::{Nanos, Speedup};
use andweorc_core::{clock, thread::blocked};
use andweorc_profile::TargetKind;
use andweorc_threads as _;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Condvar, Mutex, PoisonError, mpsc};
use std::thread::{park, scope, sleep, spawn};
use std::time::Duration;

/// CPU time in the target, at 50 %: everybody owes half of it.
const WORK: Nanos = Nanos::from_millis(60);

/// Half of that debt: who owes less has not all of it, who owes more has.
const HALF: Nanos = Nanos::from_millis(15);

fn work_in(target: &Target) {
    let entered = thread::enter(target, clock::now());
    let begun = clock::thread_cpu();
    while clock::thread_cpu() - begun < WORK {}
    thread::exit(entered, clock::now());
}

/// Two registered threads: `worker` gets a function that meets the other, and one that works inside
/// the target. Returns what the other owes after `waiter`, which gets the first.
fn owed(
    worker: impl FnOnce(&dyn Fn(), &dyn Fn()) + Send,
    waiter: impl FnOnce(&dyn Fn()) + Send,
) -> Nanos {
    // There is one ledger, and one experiment at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = target(TargetKind::Span, "target", None, None);
    let mut experimenter = Experimenter::new().unwrap().with_max_slowdown(1e9);
    let stop = experimenter.stopper();
    let second = Duration::from_secs(1);
    // Where the machine stops the program the experiment is ended, and need not be waited for.
    let phases = Phases { warmup: 60 * second, measure: Duration::ZERO, cooldown: Duration::ZERO };
    let meeting = Barrier::new(2);
    let meet = || {
        meeting.wait();
    };
    let owes = scope(|scope| {
        let half = Speedup::new(0.5).unwrap();
        let held = scope.spawn(move || experimenter.run(Some(target), half, phases).record());
        while ledger().speedup() == Speedup::ZERO && !held.is_finished() {
            sleep(Duration::from_millis(1));
        }
        let waiter = scope.spawn(|| {
            let account = thread::register().unwrap();
            waiter(&meet);
            ledger().lag(account, clock::now())
        });
        let worker = scope.spawn(|| {
            thread::register();
            worker(&meet, &|| work_in(target));
        });
        let owes = waiter.join().unwrap();
        worker.join().unwrap();
        stop.stop();
        owes
    });
    drop(one);
    owes
}

/// Asserts that this is so once: a busy machine keeps a thread that is to wait from running, or
/// stops the program and so ends the experiment.
#[track_caller]
fn once<T: Copy + Debug>(owed: impl Fn() -> T, is: impl Fn(T) -> bool) {
    let mut told = Vec::new();
    let held = (0..20).any(|_| {
        let owed = owed();
        told.push(owed);
        is(owed)
    });
    assert!(held, "{told:?}");
}

#[track_caller]
fn owes_nothing(owed: impl Fn() -> Nanos) {
    once(owed, |owed| owed < HALF);
}

#[track_caller]
fn owes_all(owed: impl Fn() -> Nanos) {
    once(owed, |owed| owed > HALF);
}

#[test]
fn thread_that_waited_for_a_lock_owes_nothing() {
    let lock = Mutex::new(());
    owes_nothing(|| {
        owed(
            |meet, work| {
                let guard = lock.lock().unwrap();
                meet();
                work();
                drop(guard);
            },
            |meet| {
                meet();
                drop(lock.lock().unwrap());
            },
        )
    });
    let lock = parking_lot::Mutex::new(());
    owes_nothing(|| {
        owed(
            |meet, work| {
                let guard = lock.lock();
                meet();
                work();
                drop(guard);
            },
            |meet| {
                meet();
                drop(lock.lock());
            },
        )
    });
}

#[test]
fn thread_that_waited_at_a_barrier_owes_nothing() {
    let barrier = Barrier::new(2);
    owes_nothing(|| {
        owed(
            |meet, work| {
                meet();
                work();
                barrier.wait();
            },
            |meet| {
                meet();
                barrier.wait();
            },
        )
    });
}

#[test]
fn thread_that_waited_for_a_message_owes_nothing() {
    owes_nothing(|| {
        let (sender, receiver) = mpsc::channel();
        owed(
            move |meet, work| {
                meet();
                work();
                sender.send(()).unwrap();
            },
            move |meet| {
                meet();
                receiver.recv().unwrap();
            },
        )
    });
}

#[test]
fn block_that_a_thread_reports_itself_is_not_counted_twice() {
    let told = || {
        let (lock, asks) = (Mutex::new(()), AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        owed(
            |meet, work| {
                let guard = lock.lock().unwrap();
                meet();
                work();
                while !asks.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(1));
                }
                sleep(Duration::from_millis(10));
                drop(guard);
            },
            |meet| {
                meet();
                // It owes all, then is blocked for a part of that, and pays what is left.
                sleep(LONG);
                let account = thread::register().unwrap();
                let (since, before) = (clock::now(), ledger().lag(account, clock::now()));
                asks.store(true, Ordering::SeqCst);
                blocked(|| drop(lock.lock().unwrap()));
                let (took, after) = (clock::now() - since, ledger().lag(account, clock::now()));
                tell.send([before, took, after]).unwrap();
            },
        );
        told.recv().unwrap()
    };
    // What it owed, how long it was blocked and paid, what it owes.
    once(told, |[before, took, after]| before > HALF && after >= before - took);
}

/// Long enough for [`WORK`] on a busy machine. Who waits in one piece uses no processor time, and
/// is not told to pay meanwhile.
const LONG: Duration = Duration::from_secs(1);

#[test]
fn thread_that_waited_until_a_time_owes_all_its_delay() {
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let worker = |meet: &dyn Fn(), work: &dyn Fn()| {
        meet();
        work();
    };
    owes_all(|| {
        owed(worker, |meet| {
            meet();
            let guard = lock.lock().unwrap();
            let (guard, timeout) = never.wait_timeout(guard, LONG).unwrap();
            assert!(timeout.timed_out());
            drop(guard);
        })
    });
    owes_all(|| {
        owed(worker, |meet| {
            meet();
            sleep(LONG);
        })
    });
}

#[test]
fn thread_that_unparks_another_has_paid_before() {
    owes_nothing(|| {
        let parked = spawn(park);
        let owes = owed(
            |meet, work| {
                meet();
                work();
            },
            |meet| {
                meet();
                sleep(LONG);
                parked.thread().unpark();
            },
        );
        parked.join().unwrap();
        owes
    });
}
