//! A thread of which everything is known: when it ran, and when it did not.

use super::*;
use crate::time::Speedup;

/// A thread that runs and sleeps as told.
#[derive(Default)]
struct Machine {
    now: Real,
    cpu: Nanos,
    /// How often the CPU clock was read.
    readings: u32,
}

impl Machine {
    fn runs(&mut self, time: Nanos) {
        self.sleeps(time);
        self.cpu += time;
    }

    fn sleeps(&mut self, time: Nanos) {
        self.now = self.now + time;
    }

    /// Reads the clocks, which takes the time that it does.
    fn clocks(&mut self) -> (Real, Nanos) {
        self.readings += 1;
        self.runs(Nanos(700));
        let cpu = self.cpu;
        self.runs(Nanos(700));
        (self.now, cpu)
    }

    fn begin(&mut self, ran: &OnCpu) {
        ran.begin_by(self.now, || self.clocks());
    }

    fn end(&mut self, ran: &OnCpu) -> Nanos {
        ran.end_by(self.now, || self.clocks())
    }
}

const MICRO: Nanos = Nanos::from_micros(1);

/// Within `percent` of what it should be.
#[track_caller]
fn near(said: Nanos, truly: Nanos, percent: i64) {
    let off = (said - truly).0.abs() * 100;
    assert!(off <= truly.0 * percent, "{said} instead of {truly}");
}

#[test]
fn short_stretches_and_gaps_do_without_the_cpu_clock() {
    let (mut machine, ran) = (Machine::default(), OnCpu::new());
    let (mut said, mut truly) = (Nanos::ZERO, Nanos::ZERO);
    while machine.now < Real(100_000_000) {
        machine.begin(&ran);
        machine.runs(MICRO);
        said += machine.end(&ran);
        truly += MICRO;
        machine.runs(Nanos(1_700));
    }
    near(said, truly, 1);
    assert!((90..=101).contains(&machine.readings), "once in a millisecond: {}", machine.readings);
}

#[test]
fn a_preempted_stretch_ran_for_as_long_as_it_did() {
    let (mut machine, ran) = (Machine::default(), OnCpu::new());
    machine.begin(&ran);
    for preempted in [100, 4_000, 51] {
        for _ in 0..10 {
            machine.runs(MICRO);
            assert_eq!(machine.end(&ran), MICRO);
        }
        machine.runs(MICRO);
        machine.sleeps(Nanos::from_micros(preempted));
        near(machine.end(&ran), Nanos(1_700), 50);
    }
    // In a gap as well.
    machine.runs(MICRO);
    machine.sleeps(Nanos::from_millis(4));
    machine.begin(&ran);
    machine.runs(MICRO);
    assert_eq!(machine.end(&ran), MICRO);
    // And when a gap hides how long the stretch was.
    machine.runs(Nanos::from_millis(1));
    machine.begin(&ran);
    machine.runs(MICRO);
    machine.sleeps(Nanos::from_millis(1));
    near(machine.end(&ran), Nanos(1_700), 50);
}

#[test]
fn stretch_is_shortened_by_what_earlier_ones_overstated() {
    let (mut machine, ran) = (Machine::default(), OnCpu::new());
    machine.begin(&ran);
    let (mut said, mut truly) = (Nanos::ZERO, Nanos::ZERO);
    for _ in 0..10_000 {
        machine.runs(Nanos(10_000));
        // Too short to be told from work.
        machine.sleeps(Nanos(20_000));
        said += machine.end(&ran);
        truly += Nanos(10_000);
    }
    let off = said - truly;
    assert!(off.0.abs() < SERVES.0 + truly.0 / 50, "{said} instead of {truly}");
    // Also by sleep that only the end of a gap tells of.
    let ran = OnCpu::new();
    machine.begin(&ran);
    machine.sleeps(Nanos(40_000));
    assert_eq!(machine.end(&ran), Nanos(40_000));
    machine.sleeps(Nanos::from_millis(3));
    machine.begin(&ran);
    machine.runs(Nanos(30_000));
    assert_eq!(machine.end(&ran), Nanos::ZERO);
    machine.runs(Nanos(30_000));
    near(machine.end(&ran), Nanos(21_000), 10);
}

#[test]
fn contexts_are_credited_with_their_shares_of_the_cpu_time() {
    const SHARES: [u32; 3] = [0, 300_000, 900_000];
    let mut random = fastrand::Rng::with_seed(11);
    let (mut machine, ran) = (Machine::default(), OnCpu::new());
    let (mut said, mut truly) = ([Nanos::ZERO; 3], [Nanos::ZERO; 3]);
    machine.begin(&ran);
    for _ in 0..200_000 {
        let context = random.usize(..3);
        let share = Speedup::from_ppm(SHARES[context]);
        let before = machine.cpu;
        // Each context has visits of its own length; some are interrupted.
        machine.runs(Nanos(random.i64(200..20_000 * (context as i64 + 1))));
        match random.u32(..1_000) {
            0..5 => machine.sleeps(Nanos(random.i64(100_000..5_000_000))),
            5..30 => machine.sleeps(Nanos(random.i64(1_000..30_000))),
            _ => {}
        }
        if share == Speedup::ZERO {
            if !ran.pass(machine.now) {
                machine.begin(&ran);
            }
        } else {
            said[context] += share.of(machine.end(&ran));
        }
        truly[context] += share.of(machine.cpu - before);
    }
    assert_eq!(said[0], Nanos::ZERO);
    near(said[1], truly[1], 2);
    near(said[2], truly[2], 2);
}

#[test]
fn the_sum_does_not_drift() {
    let mut random = fastrand::Rng::with_seed(12);
    let (mut machine, ran) = (Machine::default(), OnCpu::new());
    machine.begin(&ran);
    let (mut said, began) = (Nanos::ZERO, machine.cpu);
    for round in 0..1_000_000 {
        machine.runs(Nanos(random.i64(10..60_000)));
        if random.u32(..20) == 0 {
            machine.sleeps(Nanos(random.i64(1_000..2_000_000)));
        }
        said += machine.end(&ran);
        let off = said - (machine.cpu - began);
        assert!(off.0.abs() <= 2 * SERVES.0, "by {off} in round {round}");
    }
}
