//! Clocks of tasks on ledgers of their own: nothing here is of the process.

use super::*;
use crate::ledger::Ledger;
use crate::time::{Nanos, Real, Speedup, Virtual};
use crate::wait::Cause;

const US: fn(i64) -> Nanos = Nanos::from_micros;

/// The instant so many us after the tests begin.
fn at(us: i64) -> Real {
    Real(1_000_000) + US(us)
}

/// A ledger on which D has grown by 100 us, at 200 us, while the experiment goes on.
fn delayed() -> Ledger {
    let ledger = Ledger::new();
    ledger.begin(Speedup::new(0.5).unwrap(), at(0));
    let account = ledger.open(at(0)).unwrap();
    ledger.enter(account, at(0));
    ledger.exit(account, at(200), US(200));
    assert_eq!(ledger.global_delay(at(200)), US(100));
    ledger
}

/// A task that parked at 0, having taken nothing.
fn parked(model: Model<'_>) -> TaskClock {
    let clock = TaskClock::new(Nanos::ZERO, Virtual::NEVER);
    clock.parks(model, at(0), Nanos::ZERO, WaitHint::External);
    clock
}

fn external(came: i64) -> WakeSource {
    WakeSource::External { came: at(came), by: Cause::Outside }
}

/// The virtual time of who took nothing.
fn undelayed(us: i64) -> Virtual {
    at(us).less(Nanos::ZERO)
}

#[test]
fn wake_from_outside_is_held_for_what_d_grew() {
    let ledger = delayed();
    let model = Model::shipped(&ledger);
    let clock = parked(model);
    // V is 100 us at 200 us.
    assert_eq!(clock.woken(model, external(200), at(200)), Effect::Hold(undelayed(200)));
    assert!(clock.hold(undelayed(200), false) && !clock.hold(undelayed(200), false));
    let released = clock.released(model, at(300)).unwrap();
    let by = Cause::Outside;
    assert_eq!(released, Released { due: undelayed(200), by, again: None });
    assert_eq!(clock.take_ready(model, undelayed(0)), undelayed(200));
    assert_eq!(clock.released(model, at(300)), None, "it is held no more");
}

#[test]
fn hold_released_early_is_not_held_once_more() {
    let ledger = delayed();
    let model = Model::shipped(&ledger);
    let clock = parked(model);
    clock.woken(model, external(200), at(200));
    clock.hold(undelayed(200), false);
    // By more than what is held: its worker takes as long to get going.
    assert_eq!(clock.released(model, at(250)).unwrap().again, None);
}

#[test]
fn hold_is_raised_once_by_what_comes_meanwhile() {
    let ledger = delayed();
    for (raised_holds, again) in [(true, Some(undelayed(290))), (false, None)] {
        let model = Model { rules: Rules { raised_holds, ..Rules::SHIPPED }, ledger: &ledger };
        let clock = parked(model);
        clock.woken(model, external(200), at(200));
        clock.hold(undelayed(200), false);
        clock.woken(model, external(290), at(290));
        assert_eq!(clock.released(model, at(300)).unwrap().again, again);
        clock.hold(undelayed(290), true);
        clock.woken(model, external(380), at(380));
        assert_eq!(clock.released(model, at(390)).unwrap().again, None, "who is held for ever?");
    }
}

#[test]
fn source_of_a_wake_says_when_the_task_is_ready() {
    let ledger = delayed();
    let model = Model::shipped(&ledger);
    let v = ledger.virtual_now(at(200));
    let task = |at| WakeSource::Task { at, by: Cause::Task };
    let (parks, waker) = (undelayed(0), undelayed(150));
    for (source, ready, woken) in [
        (task(waker), waker, (at(200), Cause::Task)),
        (task(Virtual(0)), parks, (at(200), Cause::Task)),
        (WakeSource::Timer, v, (at(200), Cause::Timer)),
        (WakeSource::Loopback, v, (at(200), Cause::Task)),
        (WakeSource::Runtime, parks, (Real(0), Cause::Task)),
    ] {
        let clock = parked(model);
        assert!(matches!(clock.woken(model, source, at(200)), Effect::PassOn(_)), "{source:?}");
        assert_eq!(clock.take_woken(), Some(woken), "{source:?}");
        assert_eq!(clock.take_ready(model, parks), ready, "{source:?}");
        assert_eq!(clock.take_ready(model, parks), Virtual::NEVER, "it is taken");
    }
}

#[test]
fn short_poll_that_began_no_wait_leaves_those_that_go_on() {
    let ledger = delayed();
    let since = |ongoing_waits, lasted, began_wait| {
        let model = Model { rules: Rules { ongoing_waits, ..Rules::SHIPPED }, ledger: &ledger };
        let (clock, mut parking) = (parked(model), Parking::born(undelayed(0)));
        let begun = clock.poll_begun(US(100), true);
        let (now, hint) = (at(300), WaitHint::External);
        let ended = PollEnded { at: now.less(US(100)), lasted, began_wait, hint };
        clock.poll_ended(model, begun, &mut parking, ended, now);
        assert_eq!(parking.at, now.less(US(100)));
        (parking.since, clock.local_delay())
    };
    // Its wait goes on with the delay that it had taken as that began.
    assert_eq!(since(true, US(5), false), (at(200), US(0)));
    for (ongoing_waits, lasted, began_wait) in
        [(false, 5, false), (true, 50, false), (true, 5, true)]
    {
        assert_eq!(since(ongoing_waits, US(lasted), began_wait), (at(300), US(100)));
    }
}

#[test]
fn poll_without_a_wake_of_its_own_leaves_the_clock() {
    let ledger = delayed();
    let model = Model::shipped(&ledger);
    let clock = parked(model);
    let mut parking = Parking { at: undelayed(0), since: at(0) };
    let begun = clock.poll_begun(US(100), false);
    let (at_end, hint) = (undelayed(250), WaitHint::External);
    let ended = PollEnded { at: at_end, lasted: US(50), began_wait: true, hint };
    clock.poll_ended(model, begun, &mut parking, ended, at(250));
    assert_eq!(parking, Parking { at: undelayed(0), since: at(0) });
    assert_eq!(clock.local_delay(), Nanos::ZERO);
}

#[test]
fn without_task_clocks_nothing_is_held() {
    let ledger = delayed();
    let model = Model { rules: Rules { task_clocks: false, ..Rules::SHIPPED }, ledger: &ledger };
    let clock = parked(model);
    assert!(matches!(clock.woken(model, external(200), at(200)), Effect::PassOn(_)));
    let account = ledger.open(at(200)).unwrap();
    let before = ledger.local_delay(account, at(200));
    model.join(account, undelayed(200), at(200));
    assert_eq!(ledger.local_delay(account, at(200)), before);
    assert!(model.is_caught_up(before, undelayed(0), at(200)));
}
