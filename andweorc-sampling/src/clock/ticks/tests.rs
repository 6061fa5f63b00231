use super::*;
use std::thread;
use std::time::Duration;

/// Of a counter of 2 GHz.
const HALF: u64 = 1 << 31;

const MS: i64 = 1_000_000;

/// A machine whose counter runs at 2 GHz.
struct Machine {
    now: Reading,
}

impl Machine {
    fn new() -> Machine {
        Machine { now: Reading { ticks: 7_000_000_000, real: Real(5_000 * MS) } }
    }

    /// Passes time, of which the counter sees `ppm` millionths more.
    fn pass(&mut self, ns: i64, ppm: i64) -> Reading {
        self.now.real = self.now.real + Nanos(ns);
        self.now.ticks = self.now.ticks.wrapping_add((2 * (ns + ns * ppm / 1_000_000)) as u64);
        self.now
    }

    /// Measures until an answer comes.
    fn measured(&mut self, rate: &mut Rate, ppm: i64) -> u64 {
        loop {
            let now = self.pass(MS, ppm);
            if let Some((tick, next)) = rate.measure(now) {
                self.pass((next - self.now.real).0, ppm);
                return tick;
            }
        }
    }
}

#[test]
fn a_rate_is_believed_when_measured_twice_alike() {
    let (mut machine, mut rate) = (Machine::new(), Rate { from: None, tick: NO_TICK });
    assert_eq!(machine.measured(&mut rate, 0), NO_TICK, "begins");
    assert_eq!(machine.measured(&mut rate, 0), NO_TICK, "once");
    assert_eq!(machine.measured(&mut rate, 0), HALF);
    machine.measured(&mut rate, 400);
    let slewed = HALF - machine.measured(&mut rate, 400);
    assert!((HALF / 3000..HALF / 2000).contains(&slewed), "a clock that is slewed is followed");
}

#[test]
fn a_suspended_machine_is_measured_anew() {
    let (mut machine, mut rate) = (Machine::new(), Rate { from: None, tick: NO_TICK });
    while machine.measured(&mut rate, 0) == NO_TICK {}
    // The counter goes on for two seconds in which CLOCK_MONOTONIC stands still.
    machine.now.ticks += 4_000_000_000;
    assert_eq!(machine.measured(&mut rate, 0), NO_TICK);
    assert_eq!(machine.measured(&mut rate, 0), NO_TICK, "the last one was wrong");
    assert_eq!(machine.measured(&mut rate, 0), HALF);
    // One whose counter begins anew, and one whose counter stands still.
    machine.now.ticks = 12;
    assert_eq!(machine.measured(&mut rate, 0), NO_TICK);
    while machine.measured(&mut rate, 0) == NO_TICK {}
    machine.measured(&mut rate, -1_000_000);
    assert_eq!(machine.measured(&mut rate, -1_000_000), NO_TICK);
}

#[test]
fn an_anchor_serves_for_a_while_and_not_when_the_counter_jumps() {
    let (mut machine, anchor) = (Machine::new(), Anchor::new());
    assert_eq!(anchor.at(machine.now.ticks), None, "there is none");
    let begin = anchor.renew(machine.now, HALF);
    assert_eq!(begin, machine.now.real);
    let later = machine.pass(MS - 1, 0);
    assert_eq!(anchor.at(later.ticks), Some(later.real));
    assert_eq!(anchor.at(machine.pass(1, 0).ticks), None, "served");
    assert_eq!(anchor.at(1), None, "the counter went back");
    let now = machine.pass(50 * MS, 0);
    assert_eq!(anchor.renew(now, NO_TICK), now.real);
    assert_eq!(anchor.at(now.ticks + 1), None, "the rate is not known");
}

#[test]
fn time_neither_goes_back_nor_drifts_away() {
    for ppm in [-400, 0, 3, 400] {
        let (mut machine, anchor) = (Machine::new(), Anchor::new());
        let mut last = anchor.renew(machine.now, HALF);
        for _ in 0..1_000_000 {
            let now = machine.pass(73, ppm);
            let told = anchor.at(now.ticks).unwrap_or_else(|| anchor.renew(now, HALF));
            assert!(told >= last, "went back by {}", last - told);
            last = told;
            let off = (told - now.real).max(now.real - told);
            assert!(off < Nanos::from_micros(1), "{off} off at {ppm} ppm");
        }
    }
}

#[test]
fn a_clock_that_is_far_ahead_goes_back_to_what_is_right() {
    let (mut machine, anchor) = (Machine::new(), Anchor::new());
    // It took the counter for three times as slow as it is.
    anchor.renew(machine.now, 3 * HALF);
    let now = machine.pass(MS / 2, 0);
    assert_eq!(anchor.at(now.ticks), None);
    assert_eq!(anchor.renew(now, HALF), now.real);
}

#[test]
fn a_signal_handler_leaves_the_anchor_as_it_was() {
    let first = Machine::new().now;
    let own = || ANCHOR.with(|anchor| (anchor.ticks.get(), anchor.real.get(), anchor.tick.get()));
    ANCHOR.with(|anchor| anchor.renew(first, HALF));
    let before = own();
    in_signal_handler(|| {
        now();
    });
    assert_eq!(own(), before);
}

#[test]
fn follows_the_kernels_clock_and_never_goes_back() {
    start();
    let check = || {
        let mut last = now();
        let end = monotonic() + Nanos::from_millis(100);
        while monotonic() < end {
            let before = monotonic();
            let fast = now();
            let after = monotonic();
            assert!(fast >= last);
            last = fast;
            // A thread that was interrupted in between says nothing.
            if after - before < Nanos::from_micros(5) {
                let off = (before - fast).max(fast - after);
                assert!(off < Nanos::from_micros(3), "{off} off");
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(check);
        scope.spawn(check);
    });
    thread::sleep(Duration::from_millis(5));
    check();
}
