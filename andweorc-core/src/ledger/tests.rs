//! One test a rule of the table, and the cases between experiments.

use super::*;

const HALF: Speedup = Speedup::from_ppm(500_000);

fn ledger() -> Box<Ledger> {
    Box::new(Ledger::new())
}

#[test]
fn time_inside_the_target_grows_l_and_d() {
    let ledger = ledger();
    let a = ledger.open(Real(0)).unwrap();
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(100));
    ledger.exit(a, Real(300), Nanos(200));
    assert_eq!(ledger.global_delay(Real(300)), Nanos(100));
    assert_eq!(ledger.lag(a, Real(300)), Nanos(0));
    assert_eq!(ledger.local_delay(a, Real(1000)), Nanos(100), "outside the target L stands still");
}

#[test]
fn d_is_the_maximum_over_threads_not_the_sum() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    ledger.enter(b, Real(0));
    ledger.exit(a, Real(100), Nanos(100));
    ledger.exit(b, Real(120), Nanos(120));
    assert_eq!(ledger.global_delay(Real(120)), Nanos(60));
    assert_eq!(ledger.lag(a, Real(120)), Nanos(10));
    assert_eq!(ledger.lag(b, Real(120)), Nanos(0));
}

#[test]
fn d_grows_while_the_target_runs() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    assert_eq!(ledger.global_delay(Real(50)), Nanos(25));
    assert_eq!(ledger.lag(b, Real(80)), Nanos(40));
    assert_eq!(ledger.virtual_now(Real(80)), Virtual(40));
}

#[test]
fn a_pause_pays_and_its_overshoot_is_credit() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    ledger.exit(a, Real(100), Nanos(100));
    ledger.took(b, Nanos(70), Real(170));
    assert_eq!(ledger.lag(b, Real(170)), Nanos(-20));
    ledger.enter(a, Real(200));
    ledger.exit(a, Real(260), Nanos(60));
    assert_eq!(ledger.lag(b, Real(260)), Nanos(10), "credit is used up by later growth");
}

#[test]
fn preempted_time_is_not_credited() {
    let ledger = ledger();
    let a = ledger.open(Real(0)).unwrap();
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    ledger.exit(a, Real(1000), Nanos(400));
    assert_eq!(ledger.global_delay(Real(1000)), Nanos(200));
}

#[test]
fn idle_time_absorbs_no_more_than_itself_and_no_more_than_d() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    ledger.exit(a, Real(100), Nanos(100));
    ledger.absorb(b, Nanos(20), Real(100));
    assert_eq!(ledger.lag(b, Real(100)), Nanos(30));
    ledger.absorb(b, Nanos(1000), Real(1100));
    assert_eq!(ledger.lag(b, Real(1100)), Nanos(0));
    ledger.took(b, Nanos(5), Real(1100));
    ledger.absorb(b, Nanos(1000), Real(2100));
    assert_eq!(ledger.lag(b, Real(2100)), Nanos(-5), "credit survives idleness");
}

#[test]
fn a_wake_carries_the_wakers_virtual_time_but_never_back_before_the_park() {
    let parked = Parked { at: Virtual(100), taken: Nanos(0) };
    assert_eq!(parked.woken_by(Virtual(150)), Virtual(150));
    assert_eq!(parked.woken_by(Virtual(70)), Virtual(100));
    // The same in terms of L: L_B = min(L_B + waited, L_A).
    let (now, l_a, l_b, park) = (Real(500), Nanos(300), Nanos(50), Real(400));
    let ready = Parked { at: park.less(l_b), taken: l_b }.woken_by(now.less(l_a));
    assert_eq!(ready.delay_at(now), (l_b + (now - park)).min(l_a));
}

#[test]
fn a_wake_from_outside_is_stretched_by_what_d_grew() {
    let ledger = ledger();
    let a = ledger.open(Real(0)).unwrap();
    ledger.begin(HALF, Real(0));
    let parked = Parked { at: Real(0).less(Nanos(0)), taken: Nanos(0) };
    ledger.enter(a, Real(0));
    ledger.exit(a, Real(100), Nanos(100));
    let ready = parked.woken_outside(Real(120), ledger.forgiven_delay());
    assert_eq!(ledger.time_until_due(ready, Real(120)), Nanos(50));
    assert_eq!(ledger.time_until_due(ready, Real(170)), Nanos(0));
}

#[test]
fn waits_that_are_the_target_overlap_without_adding_up() {
    let ledger = ledger();
    ledger.begin(HALF, Real(0));
    let first = ledger.begin_wait(Nanos(0), Real(0)).unwrap();
    assert_eq!(ledger.global_delay(Real(40)), Nanos(20), "D grows during the wait");
    let second = ledger.begin_wait(ledger.global_delay(Real(40)), Real(40)).unwrap();
    assert_eq!(ledger.end_wait(first, Real(100)), Nanos(50));
    assert_eq!(ledger.global_delay(Real(100)), Nanos(50));
    assert_eq!(ledger.end_wait(second, Real(140)), Nanos(50));
    assert_eq!(ledger.global_delay(Real(140)), Nanos(70));
    assert_eq!(ledger.global_delay(Real(500)), Nanos(70), "nothing waits, nothing grows");
}

#[test]
fn a_wait_whose_end_is_noticed_late_counts_until_it_ended() {
    let ledger = ledger();
    let a = ledger.open(Real(0)).unwrap();
    ledger.begin(HALF, Real(0));
    let wait = ledger.begin_wait(Nanos(0), Real(0)).unwrap();
    assert_eq!(ledger.lag(a, Real(160)), Nanos(80), "nobody knows yet");
    ledger.took(a, Nanos(80), Real(240));
    assert_eq!(ledger.end_wait(wait, Real(100)), Nanos(50));
    assert_eq!(ledger.global_delay(Real(260)), Nanos(50));
    assert_eq!(ledger.lag(a, Real(260)), Nanos(-30), "who has paid for more has credit");
    let early = ledger.begin_wait(Nanos(50), Real(300)).unwrap();
    assert_eq!(ledger.end_wait(early, Real(290)), Nanos(0), "no wait ends before it begins");
    assert_eq!(ledger.global_delay(Real(310)), Nanos(50));
}

#[test]
fn without_a_speedup_nothing_grows() {
    let ledger = ledger();
    let a = ledger.open(Real(0)).unwrap();
    ledger.begin(Speedup::ZERO, Real(0));
    ledger.enter(a, Real(0));
    ledger.exit(a, Real(100), Nanos(100));
    assert!(ledger.begin_wait(Nanos(0), Real(100)).is_none());
    assert_eq!(ledger.global_delay(Real(200)), Nanos(0));
}

#[test]
fn nothing_is_credited_past_the_end_of_the_experiment() {
    let ledger = ledger();
    let a = ledger.open(Real(0)).unwrap();
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    let wait = ledger.begin_wait(Nanos(0), Real(0)).unwrap();
    assert_eq!(ledger.end(Real(100)), Nanos(50));
    assert_eq!(ledger.global_delay(Real(900)), Nanos(50));
    ledger.exit(a, Real(900), Nanos(900));
    assert_eq!(ledger.end_wait(wait, Real(900)), Nanos(50));
    assert_eq!(ledger.global_delay(Real(900)), Nanos(50));
    assert_eq!(ledger.lag(a, Real(900)), Nanos(0));
}

#[test]
fn nothing_is_credited_while_the_program_is_not_known_to_run() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.known_until(Real(100));
    ledger.enter(a, Real(0));
    let wait = ledger.begin_wait(Nanos(0), Real(0)).unwrap();
    assert_eq!(ledger.lag(b, Real(80)), Nanos(40));
    assert_eq!(ledger.lag(b, Real(5000)), Nanos(50), "it was stopped at 100 at the latest");
    // Who looks first after the stop ends the experiment, and only then moves the limit on.
    assert_eq!(ledger.end(Real(5000)), Nanos(50));
    ledger.known_until(Real(5100));
    ledger.exit(a, Real(5050), Nanos(5050));
    assert_eq!(ledger.end_wait(wait, Real(5050)), Nanos(50));
    assert_eq!(ledger.end(Real(6000)), Nanos(50), "ended once");
    assert_eq!(ledger.global_delay(Real(6000)), Nanos(50));
}

#[test]
fn a_child_of_fork_owes_nothing_and_leaves_everything() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    drop(ledger.begin_wait(Nanos(0), Real(0)).unwrap());
    ledger.enter(b, Real(50));
    ledger.exit(b, Real(100), Nanos(50));
    ledger.reset_after_fork();
    assert_eq!(ledger.global_delay(Real(900)), Nanos(25), "nothing grows");
    assert_eq!((ledger.lag(a, Real(900)), ledger.lag(b, Real(900))), (Nanos(0), Nanos(0)));
    ledger.exit(a, Real(900), Nanos(900));
    ledger.enter(a, Real(900));
    assert_eq!(ledger.global_delay(Real(1000)), Nanos(25));
}

#[test]
fn a_new_experiment_forgives_and_a_stay_across_experiments_counts_for_neither() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    ledger.end(Real(100));
    assert_eq!(ledger.lag(b, Real(150)), Nanos(50));
    ledger.begin(HALF, Real(200));
    assert_eq!(ledger.lag(b, Real(200)), Nanos(0));
    assert_eq!(ledger.global_delay(Real(300)), Nanos(50), "a entered before this experiment began");
    ledger.exit(a, Real(400), Nanos(400));
    assert_eq!(ledger.global_delay(Real(400)), Nanos(50));
    let idle_connection = Parked { at: Virtual(0), taken: Nanos(0) };
    let ready = idle_connection.woken_outside(Real(500), ledger.forgiven_delay());
    assert_eq!(ledger.time_until_due(ready, Real(500)), Nanos(0));
}

#[test]
fn lagging_thread_is_named_unless_inside_the_target() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    a.set_runs_as(7);
    b.set_runs_as(8);
    ledger.enter(a, Real(0));
    assert_eq!(ledger.lagging(Nanos(40), Real(100)).collect::<Vec<_>>(), [8]);
    assert_eq!(ledger.lagging(Nanos(60), Real(100)).count(), 0);
    b.set_runs_as(0);
    assert_eq!(ledger.lagging(Nanos(40), Real(100)).count(), 0);
}

#[test]
fn a_thread_that_runs_a_task_goes_on_at_the_later_virtual_time() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.enter(a, Real(0));
    ledger.exit(a, Real(100), Nanos(100));
    ledger.took(b, Nanos(50), Real(150));
    ledger.join(b, Virtual(90), Real(150));
    assert_eq!(ledger.lag(b, Real(150)), Nanos(0), "the task was ready in the past");
    ledger.join(b, Virtual(110), Real(150));
    assert_eq!(ledger.lag(b, Real(150)), Nanos(10), "the task is ahead by ten");
}

#[test]
fn samples_inside_the_target_credit_from_another_thread() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.credit(a, Nanos(100));
    assert_eq!(ledger.global_delay(Real(0)), Nanos(0), "no experiment");
    ledger.begin(HALF, Real(0));
    ledger.credit(a, Nanos(100));
    ledger.took(b, Nanos(30), Real(100));
    assert_eq!((ledger.lag(a, Real(100)), ledger.lag(b, Real(100))), (Nanos(0), Nanos(20)));
    ledger.credit(a, Nanos(100));
    assert_eq!(ledger.lag(b, Real(100)), Nanos(70), "what b took stays taken");
    ledger.end(Real(200));
    ledger.begin(HALF, Real(200));
    ledger.credit(b, Nanos(100));
    assert_eq!(
        ledger.global_delay(Real(200)),
        Nanos(150),
        "b's old debt is forgiven, not caught up"
    );
}

#[test]
fn debt_includes_expected_time_until_it_is_settled() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    ledger.begin(HALF, Real(0));
    ledger.expect(a, Nanos(60), Real(0), Real(100));
    assert_eq!(ledger.lag(b, Real(50)), Nanos(15), "a half of 60 % of it");
    assert_eq!(ledger.lag(b, Real(500)), Nanos(30), "nothing is expected of later");
    ledger.settle(a, Nanos(40), Real(80));
    assert_eq!(ledger.global_delay(Real(90)), Nanos(20));
    assert_eq!(ledger.lag(a, Real(90)), Nanos(0));

    ledger.expect(a, Nanos(0), Real(100), Real(200));
    assert!(ledger.is_at_rest());
    ledger.settle(a, Nanos(10), Real(150));
    assert_eq!(ledger.global_delay(Real(150)), Nanos(25), "it was inside all the same");

    ledger.expect(a, Nanos(100), Real(200), Real(300));
    ledger.settle(a, Nanos(100), Real(260));
    assert_eq!(ledger.global_delay(Real(260)), Nanos(55), "no longer than it ran");
}

#[test]
fn expectation_of_an_earlier_experiment_is_not_counted() {
    let ledger = ledger();
    let a = ledger.open(Real(0)).unwrap();
    ledger.begin(HALF, Real(0));
    ledger.expect(a, Nanos(100), Real(0), Real(100));
    ledger.end(Real(40));
    assert_eq!(ledger.global_delay(Real(90)), Nanos(20));
    ledger.begin(HALF, Real(100));
    ledger.settle(a, Nanos(90), Real(110));
    assert_eq!(ledger.global_delay(Real(110)), Nanos(20));
    assert!(ledger.is_at_rest());
}

#[test]
fn stale_expectation_does_not_keep_a_thread_from_entering() {
    let ledger = ledger();
    let a = ledger.open(Real(0)).unwrap();
    ledger.begin(HALF, Real(0));
    ledger.expect(a, Nanos(100), Real(0), Real(100));
    ledger.end(Real(40));
    ledger.begin(HALF, Real(100));
    let before = ledger.global_delay(Real(110));
    ledger.enter(a, Real(110));
    assert_eq!(ledger.global_delay(Real(150)) - before, Nanos(20));
    ledger.exit(a, Real(150), Nanos(40));
    assert_eq!(ledger.global_delay(Real(150)) - before, Nanos(20));
    assert!(ledger.is_at_rest());
}

#[test]
fn lagging_thread_only_expected_inside_the_target_is_named() {
    let ledger = ledger();
    let (a, b) = (ledger.open(Real(0)).unwrap(), ledger.open(Real(0)).unwrap());
    a.set_runs_as(7);
    ledger.begin(HALF, Real(0));
    ledger.enter(b, Real(0));
    ledger.expect(a, Nanos(10), Real(0), Real(100));
    assert_eq!(ledger.lagging(Nanos(10), Real(100)).collect::<Vec<_>>(), [7]);
}

#[test]
fn a_closed_account_is_reused_and_leaves_the_target() {
    let ledger = ledger();
    ledger.begin(HALF, Real(0));
    let a = ledger.open(Real(0)).unwrap();
    ledger.enter(a, Real(0));
    ledger.close(a, Real(100));
    let b = ledger.open(Real(100)).unwrap();
    assert!(std::ptr::eq(a, b));
    assert_eq!(ledger.lag(b, Real(100)), Nanos(0));
    assert_eq!(ledger.global_delay(Real(200)), Nanos(50));
}

#[test]
fn accounts_run_out_without_harm() {
    let ledger = ledger();
    for _ in 0..ACCOUNTS {
        assert!(ledger.open(Real(0)).is_some());
    }
    assert!(ledger.open(Real(0)).is_none());
}

#[test]
fn readers_never_see_a_torn_account() {
    use std::sync::atomic::AtomicBool;
    let ledger = ledger();
    let done = AtomicBool::new(false);
    ledger.begin(HALF, Real(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let account = ledger.open(Real(0)).unwrap();
            for t in 1..200_000 {
                ledger.enter(account, Real(t * 10));
                ledger.exit(account, Real(t * 10 + 4), Nanos(4));
            }
            done.store(true, SeqCst);
        });
        while !done.load(SeqCst) {
            // D never exceeds what the thread can have saved at the latest instant it may be at.
            assert!(ledger.global_delay(Real(0)).0 <= 2 * 200_000);
        }
    });
    assert_eq!(ledger.global_delay(Real(i64::MAX / 4)), Nanos(2 * 199_999));
}
