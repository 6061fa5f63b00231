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
