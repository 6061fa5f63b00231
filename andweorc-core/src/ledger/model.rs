//! Models of the ledger's accounts: what other threads see of one whose owner enters and leaves the
//! target.

use super::*;
use loom::model::Builder;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Count;

const HALF: Speedup = Speedup::from_ppm(500_000);

fn check(model: impl Fn() + Sync + Send + 'static) {
    let runs = Arc::new(Count::new(0));
    let counted = Arc::clone(&runs);
    let mut builder = Builder::new();
    builder.preemption_bound = None;
    builder.check(move || {
        counted.fetch_add(1, SeqCst);
        model();
    });
    let runs = runs.load(SeqCst);
    assert!(
        runs > 10,
        "only {runs} orders were tried: loom sees no race, and the model shows nothing"
    );
}

/// A ledger in an experiment, by which 20 ns inside the target save 10.
fn ledger() -> &'static Ledger {
    let ledger: &Ledger = Box::leak(Box::new(Ledger::new()));
    ledger.begin(HALF, Real(0));
    ledger
}

/// One that holds experiment 7 together with other processes.
fn shared_ledger() -> &'static Ledger {
    let ledger: &Ledger = Box::leak(Box::new(Ledger::new()));
    ledger.number_next(Some(7));
    ledger.begin(HALF, Real(0));
    ledger
}

#[test]
fn loom_d_never_falls_when_a_stay_ends() {
    check(|| {
        let ledger = ledger();
        let account = ledger.open(Real(0)).unwrap();
        let owner = thread::spawn(move || {
            ledger.enter(account, Real(0));
            ledger.exit(account, Real(20), Nanos(20));
        });
        let first = ledger.global_delay(Real(20));
        let second = ledger.global_delay(Real(20));
        assert!([0, 10].contains(&first.0), "never half a stay, never one counted twice: {first}");
        assert!(second >= first, "fell from {first} to {second}");
        owner.join().unwrap();
        assert_eq!(ledger.global_delay(Real(1000)), Nanos(10));
    });
}

#[test]
fn loom_d_falls_by_what_was_preempted_and_no_more() {
    check(|| {
        let ledger = ledger();
        let account = ledger.open(Real(0)).unwrap();
        let owner = thread::spawn(move || {
            ledger.enter(account, Real(0));
            // For 8 of the 20 ns it had no processor.
            ledger.exit(account, Real(20), Nanos(12));
        });
        let first = ledger.global_delay(Real(20));
        let second = ledger.global_delay(Real(20));
        assert!([0, 6, 10].contains(&first.0) && first - second <= Nanos(4), "{first}, {second}");
        owner.join().unwrap();
        assert_eq!(ledger.global_delay(Real(1000)), Nanos(6));
    });
}

#[test]
fn loom_no_reader_sees_a_torn_account() {
    check(|| {
        let ledger = ledger();
        let account = ledger.open(Real(0)).unwrap();
        let owner = thread::spawn(move || {
            ledger.enter(account, Real(0));
            ledger.exit(account, Real(20), Nanos(20));
            ledger.enter(account, Real(40));
        });
        // 10 of the first stay, and from 40 on half of the time of the second.
        let seen = ledger.global_delay(Real(60)).0;
        assert!([0, 10, 20, 30].contains(&seen), "{seen}");
        assert!(seen != 30 || ledger.global_delay(Real(60)).0 <= 30);
        owner.join().unwrap();
        assert_eq!(ledger.global_delay(Real(60)), Nanos(20));
    });
}

#[test]
fn loom_two_threads_inside_are_a_maximum() {
    check(|| {
        let ledger = ledger();
        let (ours, theirs) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
        let other = thread::spawn(move || {
            ledger.enter(theirs, Real(0));
            ledger.exit(theirs, Real(20), Nanos(20));
        });
        ledger.enter(ours, Real(0));
        ledger.exit(ours, Real(12), Nanos(12));
        other.join().unwrap();
        assert_eq!(ledger.global_delay(Real(100)), Nanos(10));
    });
}

#[test]
fn loom_the_end_of_an_experiment_races_with_a_stay() {
    check(|| {
        let ledger = ledger();
        let account = ledger.open(Real(0)).unwrap();
        let owner = thread::spawn(move || {
            ledger.enter(account, Real(0));
            ledger.exit(account, Real(20), Nanos(20));
        });
        let ended = ledger.end(Real(10));
        assert!([0, 5, 10].contains(&ended.0), "{ended}");
        owner.join().unwrap();
        let owed = ledger.global_delay(Real(1000));
        assert!(
            owed <= Nanos(10) && ledger.global_delay(Real(2000)) == owed,
            "nothing grows: {owed}"
        );
    });
}

#[test]
fn loom_a_message_raises_d_for_good_while_the_target_runs() {
    check(|| {
        let ledger = shared_ledger();
        let account = ledger.open(Real(0)).unwrap();
        let owner = thread::spawn(move || {
            ledger.enter(account, Real(0));
            ledger.exit(account, Real(20), Nanos(20));
        });
        let taken = ledger.raise(Stamp { experiment: 7, taken: Nanos(6) }, Real(20));
        let first = ledger.global_delay(Real(20));
        let second = ledger.global_delay(Real(20));
        assert_eq!(taken, Some(Nanos(6)));
        assert!([6, 10].contains(&first.0) && second >= first, "{first}, {second}");
        owner.join().unwrap();
        // A maximum, never a sum: the two were in the target at the same time.
        assert_eq!(ledger.global_delay(Real(1000)), Nanos(10));
    });
}

#[test]
fn loom_no_message_raises_d_after_its_experiment() {
    check(|| {
        let ledger = shared_ledger();
        let receiver =
            thread::spawn(move || ledger.raise(Stamp { experiment: 7, taken: Nanos(6) }, Real(20)));
        let ended = ledger.end(Real(20));
        let began = ledger.begin(Speedup::ZERO, Real(30));
        assert_eq!(began, ended);
        receiver.join().unwrap();
        assert_eq!(ledger.global_delay(Real(1000)), began, "a baseline delays nobody");
    });
}

#[test]
fn loom_a_stamp_is_of_one_experiment() {
    check(|| {
        let ledger = shared_ledger();
        ledger.raise(Stamp { experiment: 7, taken: Nanos(6) }, Real(10));
        let sender = thread::spawn(move || ledger.stamp(Some(Nanos(6)), Real(20)));
        ledger.end(Real(20));
        ledger.number_next(Some(8));
        ledger.begin(HALF, Real(30));
        let stamp = sender.join().unwrap();
        let of_either = [(7, 6), (8, 0)].map(|(experiment, taken)| (experiment, Nanos(taken)));
        let sent = stamp.map(|stamp| (stamp.experiment, stamp.taken));
        assert!(sent.is_none_or(|sent| of_either.contains(&sent)), "{sent:?}");
    });
}

#[test]
fn loom_a_receiver_inside_the_target_takes_what_it_waited_for_once() {
    check(|| {
        let ledger = shared_ledger();
        let account = ledger.open(Real(0)).unwrap();
        ledger.absorb(account, Nanos(50), Real(50));
        let owner = thread::spawn(move || {
            ledger.enter(account, Real(60));
            ledger.raise(Stamp { experiment: 7, taken: Nanos(6) }, Real(60));
            ledger.absorb_message(account, Nanos(6), Virtual(0), Real(60));
            ledger.exit(account, Real(80), Nanos(20));
        });
        let first = ledger.global_delay(Real(80));
        let second = ledger.global_delay(Real(80));
        assert!([0, 6, 10, 16].contains(&first.0) && second >= first, "{first}, {second}");
        owner.join().unwrap();
        assert_eq!(ledger.global_delay(Real(80)), Nanos(16));
        assert_eq!(ledger.lag(account, Real(80)), Nanos::ZERO);
    });
}
