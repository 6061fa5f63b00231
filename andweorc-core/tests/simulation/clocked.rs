//! Programs that live by their own clock: right where it is virtual, wrong where it is real.

use crate::measure::{Comparison, Errors, Truth};
use crate::percent;
use crate::program::*;
use crate::rules::{Clock, Rules, SHIPPED};

const REAL_CLOCK: Rules =
    Rules { name: "the program's clock is real", clock: Clock::Real, ..SHIPPED };

const MILLISECOND: i64 = 1_000_000;

fn errors(program: &Program, rules: Rules) -> Errors {
    let truth = Truth::of(program, &[30, 70].map(percent), rules).unwrap();
    let all = truth.compare(rules, |_| true).unwrap();
    for Comparison { case, predicted, truth, .. } in &all {
        let (what, rules) = (format!("{} {}", case.target, case.speedup), rules.name);
        println!("{:<28} {what:<16} {predicted:>7.2} true {truth:>7.2} {rules}", program.name);
    }
    Errors::of(all.iter().map(Comparison::error))
}

/// Right with a virtual clock, within so many points, and wrong with a real one by as many at
/// least.
fn is_right(program: Program, within: f64, wrong_by: f64) {
    let program = program.targets(&[Target::Span("use"), Target::Span("other")]);
    let shipped = errors(&program, SHIPPED);
    assert!(shipped.worst < within, "{}: {shipped:?}", program.name);
    let real = errors(&program, REAL_CLOCK);
    assert!(real.worst > wrong_by, "{}: {real:?}", program.name);
}

/// Five workers behind a bucket of eight permits each 2 ms, and a task that nobody waits for.
fn bucket(name: Tag, work: f64) -> Program {
    let mut p = Program::new(name, 3);
    let permits = p.semaphore(8);
    let fill = [Op::Interval(2 * MILLISECOND, Missed::Burst), Op::Fill(permits, 8)];
    p.tasks("bucket", 1, &fill);
    p.tasks("worker", 5, &[Op::Acquire(permits, 1), span("use", work), Op::Progress]);
    p.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);
    p
}

#[test]
fn a_rate_limit_holds_in_virtual_time() {
    is_right(bucket("a bucket at its limit", 300.0), 0.5, 20.0);
    is_right(bucket("a bucket below its limit", 1000.0), 1.0, 20.0);
}

#[test]
fn an_interval_ticks_in_virtual_time_however_it_treats_missed_ticks() {
    let ticks = [
        ("ticks in a burst", Missed::Burst),
        ("ticks with a delay", Missed::Delay),
        ("ticks that are skipped", Missed::Skip),
    ];
    for (name, missed) in ticks {
        let mut p = Program::new(name, 2);
        let work = [
            Op::Interval(2 * MILLISECOND, missed),
            span("use", 600.0),
            wait("disk", 300.0),
            Op::Progress,
        ];
        p.tasks("ticking", 2, &work);
        p.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);
        is_right(p, 0.5, 10.0);
    }
}

#[test]
fn a_timeout_that_guards_work_strikes_in_virtual_time() {
    let mut p = Program::new("a tight timeout", 2);
    let (requests, answers) = (p.channel(4), p.channel(4));
    p.tasks("server", 1, &[Op::Recv(requests), span("use", 600.0), Op::Send(answers)]);
    let branches = vec![
        (Branch::Timer(800_000), vec![cpu(500.0), Op::Recv(answers)]),
        (Branch::Recv(answers), Vec::new()),
    ];
    let ops = [Op::Send(requests), Op::Select(branches), cpu(100.0), Op::Progress];
    p.tasks("client", 1, &ops);
    p.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);
    is_right(p, 1.0, 20.0);
}

#[test]
fn a_timer_is_stretched_once() {
    let mut p = Program::new("sleeps between work", 2);
    p.tasks("worker", 3, &[span("use", 300.0), Op::Timer(MILLISECOND), Op::Progress]);
    p.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);
    let p = p.targets(&[Target::Span("use"), Target::Span("other")]);
    for rules in [SHIPPED, REAL_CLOCK] {
        let errors = errors(&p, rules);
        assert!(errors.worst < 0.5, "{}: {errors:?}", rules.name);
    }
}
