//! A test a rule of messages between processes.

use super::*;
use crate::ledger::TargetWait;
use crate::time::Speedup;

const HALF: Speedup = Speedup::from_ppm(500_000);

/// A ledger that holds experiment 7 since 0.
fn ledger() -> Box<Ledger> {
    let ledger = Box::new(Ledger::new());
    ledger.number_next(Some(7));
    ledger.begin(HALF, Real(0));
    ledger
}

fn stamp(taken: i64) -> Stamp {
    Stamp { experiment: 7, taken: Nanos(taken) }
}

#[test]
fn l_above_d_raises_it_and_below_leaves_it() {
    let ledger = ledger();
    let other = ledger.open(Real(0)).unwrap();
    assert_eq!(ledger.raise(stamp(40), Real(100)), Some(Nanos(40)));
    assert_eq!(ledger.lag(other, Real(100)), Nanos(40), "everyone owes what the sender had taken");
    assert_eq!(ledger.raise(stamp(30), Real(110)), Some(Nanos(30)));
    assert_eq!(ledger.global_delay(Real(110)), Nanos(40));
}

#[test]
fn nobody_is_delayed_for_longer_than_the_experiment_lasts() {
    let ledger = ledger();
    assert_eq!(ledger.raise(stamp(i64::MAX), Real(100)), Some(Nanos(100)));
    assert_eq!(ledger.raise(stamp(i64::MIN), Real(100)), Some(Nanos(0)));
    assert_eq!(ledger.virtual_now(Real(100)).0, 0);
}

#[test]
fn delay_counts_from_the_begin_of_the_experiment_on_either_side() {
    let ledger = ledger();
    ledger.raise(stamp(100), Real(200));
    ledger.end(Real(200));
    ledger.number_next(Some(8));
    ledger.begin(HALF, Real(300));
    assert_eq!(ledger.stamp(None, Real(300)), Some(Stamp { experiment: 8, taken: Nanos(0) }));
    assert_eq!(ledger.raise(stamp(50), Real(400)), None, "of the experiment before");
    let taken = ledger.raise(Stamp { experiment: 8, taken: Nanos(50) }, Real(400));
    assert_eq!((taken, ledger.global_delay(Real(400))), (Some(Nanos(150)), Nanos(150)));
    assert_eq!(ledger.stamp(Some(Nanos(120)), Real(400)).unwrap().taken, Nanos(20));
    assert_eq!(ledger.stamp(Some(Nanos(30)), Real(400)).unwrap().taken, Nanos(0), "forgiven");
}

#[test]
fn thread_inside_the_target_owes_what_its_own_time_there_does_not_make_up_for() {
    let ledger = ledger();
    let inside = ledger.open(Real(0)).unwrap();
    ledger.enter(inside, Real(0));
    ledger.raise(stamp(40), Real(60));
    assert_eq!(ledger.global_delay(Real(60)), Nanos(40));
    assert_eq!(ledger.global_delay(Real(70)), Nanos(40), "35 of its own");
    assert_eq!(ledger.global_delay(Real(100)), Nanos(50));
    ledger.raise(stamp(70), Real(100));
    ledger.exit(inside, Real(120), Nanos(120));
    assert_eq!(ledger.lag(inside, Real(120)), Nanos(10));
}

#[test]
fn wait_that_is_the_target_goes_on_along_its_line() {
    let ledger = ledger();
    let wait: TargetWait = ledger.begin_wait(Nanos(0), Real(0)).unwrap();
    ledger.raise(stamp(40), Real(60));
    assert_eq!(ledger.global_delay(Real(70)), Nanos(40));
    assert_eq!(ledger.global_delay(Real(100)), Nanos(50));
    assert_eq!(ledger.end_wait(wait, Real(100)), Nanos(50));
    assert_eq!(ledger.global_delay(Real(200)), Nanos(50));
}

#[test]
fn who_waited_takes_what_rests_have_left_and_pays_the_rest() {
    let ledger = ledger();
    let account = ledger.open(Real(0)).unwrap();
    ledger.raise(stamp(10), Real(100));
    // Idle for 50, in which it owed no more than 10.
    ledger.absorb(account, Nanos(50), Real(150));
    ledger.raise(stamp(30), Real(150));
    ledger.absorb_message(account, Nanos(30), Virtual(125), Real(150));
    assert_eq!(ledger.lag(account, Real(150)), Nanos(5), "never back before its task parked");
    ledger.raise(stamp(90), Real(160));
    ledger.absorb_message(account, Nanos(90), Virtual(0), Real(160));
    assert_eq!(ledger.local_delay(account, Real(160)), Nanos(50), "no more than it rested");
    ledger.took(account, Nanos(40), Real(200));
    ledger.raise(stamp(120), Real(200));
    ledger.absorb_message(account, Nanos(120), Virtual(0), Real(200));
    assert_eq!(ledger.lag(account, Real(200)), Nanos(30), "nothing is taken twice");
    ledger.absorb_message(account, Nanos(120), Virtual::NEVER, Real(200));
    assert_eq!(ledger.lag(account, Real(200)), Nanos(30), "who did not wait takes nothing");
}

#[test]
fn who_waited_takes_it_inside_the_target_as_well() {
    let ledger = ledger();
    let account = ledger.open(Real(0)).unwrap();
    ledger.absorb(account, Nanos(100), Real(100));
    ledger.enter(account, Real(100));
    ledger.raise(stamp(60), Real(120));
    ledger.absorb_message(account, Nanos(60), Virtual(0), Real(120));
    assert_eq!(ledger.lag(account, Real(120)), Nanos(0));
    ledger.exit(account, Real(140), Nanos(40));
    assert_eq!(ledger.global_delay(Real(140)), Nanos(70));
    assert_eq!(ledger.lag(account, Real(140)), Nanos(0));
}
