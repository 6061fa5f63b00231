//! Threads that say when they are blocked, on the real ledger and a lock of std's.

use andweorc_core::clock;
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::target::target;
use andweorc_core::thread::{self, blocked, ledger};
use andweorc_core::time::{Nanos, Speedup};
use andweorc_profile::TargetKind;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::{scope, sleep};
use std::time::Duration;

/// One experiment at a time. What switches andweorc on holds none itself: nobody is told to pay by
/// a signal.
static ONE: LazyLock<Mutex<Experimenter>> =
    LazyLock::new(|| Mutex::new(Experimenter::new().expect("the only one in this process")));

/// Time under the lock, asleep.
const UNDER: Nanos = Nanos::from_millis(4);

const TURNS: u32 = 100;

/// A thread under a lock that is always contended pays nowhere but when it comes out of `blocked`,
/// and is delayed by half of the time like everybody. No more can be done under the lock in virtual
/// time than without an experiment, however slow the machine is.
#[test]
fn a_contended_lock_hides_no_delay() {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = clock::now();
    let owed = ledger().begin(Speedup::new(0.5).unwrap(), begun);
    let wait = ledger().begin_wait(owed, begun).expect("an experiment runs");
    let (lock, turns) = (Mutex::new(()), AtomicU32::new(0));
    scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                thread::register().expect("there is room for three threads");
                while turns.fetch_add(1, Ordering::SeqCst) < TURNS {
                    let guard = blocked(|| lock.lock().unwrap());
                    sleep(UNDER.to_duration());
                    drop(guard);
                    // Long enough for the next one to come out.
                    sleep(UNDER.to_duration());
                }
            });
        }
    });
    let ended = clock::now();
    ledger().end_wait(wait, ended);
    let took = (ended - begun) - (ledger().end(ended) - owed);
    drop(one);
    let possible = took.0 as f64 / UNDER.0 as f64;
    println!("{TURNS} turns, {possible:.1} were possible in the virtual time");
    assert!(f64::from(TURNS) < 1.12 * possible, "{TURNS} turns where {possible:.1} are possible");
}

#[test]
fn blocked_thread_is_not_inside_target() {
    let mut one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // One that is ended since the machine stopped the program says nothing.
    let inside_again = (0..20).any(|_| grows_after_blocked(&mut one) > Nanos::from_millis(10));
    assert!(inside_again, "it is inside again");
}

/// By how much D grows while a thread sleeps inside the target, after it was blocked there.
fn grows_after_blocked(experimenter: &mut Experimenter) -> Nanos {
    let target = target(TargetKind::Span, "blocked inside", None, None);
    scope(|scope| {
        let held = scope.spawn(move || {
            let phases = Phases::from_millis(500, 1, 0);
            experimenter.run(Some(target), Speedup::new(0.5).unwrap(), phases).record();
        });
        while ledger().speedup() == Speedup::ZERO && !held.is_finished() {
            sleep(Duration::from_millis(1));
        }
        let entered = thread::enter(target, clock::now());
        let grown = blocked(|| {
            let before = ledger().global_delay(clock::now());
            sleep(Duration::from_millis(50));
            ledger().global_delay(clock::now()) - before
        });
        let before = ledger().global_delay(clock::now());
        sleep(Duration::from_millis(50));
        let grown_after = ledger().global_delay(clock::now()) - before;
        thread::exit(entered, clock::now());
        assert_eq!(grown, Nanos::ZERO, "others owe nothing for it");
        grown_after
    })
}
