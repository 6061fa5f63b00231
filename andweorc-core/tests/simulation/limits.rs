//! Programs that are predicted wrongly, each with its cause, and what helps.

use crate::measure::{Comparison, Errors, Truth};
use crate::percent;
use crate::program::*;
use crate::rules::{EVERYTHING_DEFERRED, GoOn, Joined, Parts, Raise, Rules, SHIPPED};
use andweorc_core::time::Speedup;

/// The errors of a program's predictions with these speedups in percent.
fn errors_at(program: &Program, rules: Rules, percents: &[u32]) -> Errors {
    let speedups: Vec<Speedup> = percents.iter().copied().map(percent).collect();
    let truth = Truth::of(program, &speedups, rules).unwrap();
    let all = truth.compare(rules, |_| true).unwrap();
    for Comparison { case, predicted, truth, .. } in &all {
        let what = format!("{} {}", case.target, case.speedup);
        println!("{:<32} {what:<18} predicted {predicted:>7.2} true {truth:>7.2}", program.name);
    }
    Errors::of(all.iter().map(Comparison::error))
}

fn errors(program: &Program, rules: Rules) -> Errors {
    errors_at(program, rules, &[30, 70])
}

/// Adds a task that nothing waits for, so that the truth of making it faster is 0.
fn beside_another(mut p: Program) -> Program {
    p.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);
    p.targets(&[Target::Span("use"), Target::Span("other")])
}

/// Three tasks that ask for two things at once.
fn asking(name: Tag, ask: impl Fn(&mut Program, [External; 2]) -> Vec<Op>) -> Program {
    let mut p = Program::new(name, 2);
    let mut ops = ask(&mut p, [external("short", 500.0), external("long", 1000.0)]);
    ops.extend([span("use", 100.0), Op::Progress]);
    p.tasks("asker", 3, &ops);
    beside_another(p)
}

/// A task has one clock. When the first of two answers comes, it must be known that the second was
/// asked for before (see `joined.rs`), or what D grew until then is lost to it. In tasks of their
/// own each answer has its own clock.
#[test]
fn waits_at_once_in_one_task_share_a_clock() {
    let joined = asking("join! of two waits", |_, both| vec![Op::ExternalAll(both.to_vec())]);
    let joined_rules = Joined { raise: Raise::Never, go_on: GoOn::Never };
    assert!(errors(&joined, Rules { joined: joined_rules, ..SHIPPED }).worst > 10.0);
    assert!(errors(&joined, SHIPPED).worst < 3.0);
    let spawned = asking("two spawned waits", |p, [short, long]| {
        let first = p.kind("first", &[Op::External(short)]);
        let second = p.kind("second", &[Op::External(long)]);
        vec![Op::Spawn(first), Op::Spawn(second), Op::Join, Op::Join]
    });
    assert!(errors(&spawned, SHIPPED).worst < 0.5);
}

/// Futures that are profiled inside a profiled task have clocks of their own, and need two rules
/// for that. What was deferred wakes the task around it at its own virtual time: as a wake from
/// outside it would be deferred once more. And a poll that ends pending, without a wake of the
/// future's own, leaves its clock alone: otherwise it parks anew when its neighbour's answer comes.
#[test]
fn a_profiled_future_inside_a_profiled_task_keeps_its_own_clock() {
    let rules = |keep_clock, wake_as_participant| {
        let parts = Parts { keep_clock, wake_as_participant };
        Rules { parts, ..SHIPPED }
    };
    let one = asking("one profiled wait", |_, [short, _]| vec![Op::ExternalParts(vec![short])]);
    assert!(errors(&one, rules(true, false)).worst > 10.0);
    assert!(errors(&one, rules(false, true)).worst < 0.5);
    let both = asking("join! of profiled waits", |_, both| vec![Op::ExternalParts(both.to_vec())]);
    assert!(errors(&both, rules(true, false)).worst > 5.0);
    assert!(errors(&both, rules(false, true)).worst > 10.0);
    assert!(errors(&both, SHIPPED).worst < 0.5);
}

/// A server outside that is at its limit works on while everybody here pauses: in virtual time it
/// seems to do more than it can. Nobody can know from here that it has a limit. With room it is
/// predicted exactly, and so is what making it faster would bring.
#[test]
fn a_server_outside_seems_to_have_no_limit() {
    let handlers = |name, at_once| {
        let mut p = Program::new(name, 2);
        let db = p.server(at_once);
        let ops = [span("use", 100.0), ask(db, "db", 150.0), cpu(100.0), Op::Progress];
        p.tasks("handler", 6, &ops);
        p
    };
    let full = || handlers("server outside at its limit", 1);
    assert!(errors(&full().targets(&[Target::Span("use")]), SHIPPED).worst > 50.0);
    assert!(errors(&full().targets(&[Target::Wait("db")]), SHIPPED).worst < 0.5);
    let room = handlers("server outside with room", 6);
    let targets = [Target::Span("use"), Target::Wait("db")];
    assert!(errors(&room.targets(&targets), SHIPPED).worst < 0.5);
}

/// Work that comes from outside at times fixed in advance, from clients that wait for nobody, comes
/// faster in virtual time by what D grew. Each wait for it is stretched, but what came meanwhile is
/// there at once. Under such a load throughput can't move, so that the effect on it means nothing.
/// A source that sleeps between is stretched as it should be. (An interval of the program's own
/// goes by its own clock: see `clocked.rs`.)
#[test]
fn work_that_comes_at_fixed_times_seems_to_come_faster() {
    let served = |name, source| {
        let mut p = Program::new(name, 2);
        let queue = p.channel(1000);
        p.tasks("source", 1, &[source, Op::Send(queue)]);
        p.tasks("handler", 1, &[Op::Recv(queue), span("use", 400.0), Op::Progress]);
        beside_another(p)
    };
    let clients = served("clients that wait for nobody", Op::Tick(1_000_000));
    assert!(errors(&clients, SHIPPED).worst > 30.0);
    let sleep = served("a sleep between", wait("sleep", 1000.0));
    assert!(errors(&sleep, SHIPPED).worst < 0.5);
}

/// A timer outside runs out in real time. Its wake is deferred, but if another wake has the task
/// polled before V gets there, the poll finds the timer run out: a timeout that is hardly longer
/// than what it guards strikes too often. One with room is predicted exactly.
#[test]
fn a_tight_timeout_strikes_too_often() {
    let guarded = |name, timeout| {
        let mut p = Program::new(name, 2);
        let (requests, answers) = (p.channel(4), p.channel(4));
        p.tasks("server", 1, &[Op::Recv(requests), span("serve", 600.0), Op::Send(answers)]);
        let branches = vec![
            (
                Branch::External(external("timeout", timeout)),
                vec![span("retry", 500.0), Op::Recv(answers)],
            ),
            (Branch::Recv(answers), Vec::new()),
        ];
        let ops = [Op::Send(requests), Op::Select(branches), span("use", 100.0), Op::Progress];
        p.tasks("client", 1, &ops);
        beside_another(p)
    };
    assert!(errors(&guarded("a tight timeout", 800.0), SHIPPED).worst > 20.0);
    assert!(errors(&guarded("a timeout with room", 3000.0), SHIPPED).worst < 0.5);
}

/// Two tasks that start children on two workers run in step or in turns, and the least shift lets
/// them change over. What is early by less than `Rules::min_hold` is paid by the
/// worker, which is such a shift; with everything deferred the prediction is exact.
#[test]
fn a_program_with_two_ways_to_run_is_moved_by_the_least_pause() {
    let mut p = Program::new("two that spawn 3 and join", 2).seeds(16);
    let part = p.kind("part", &[span("load", 80.0), wait("disk", 300.0), span("sum", 120.0)]);
    let (start, join) = (vec![Op::Spawn(part); 3], vec![Op::Join; 3]);
    let ops = [vec![cpu(50.0)], start, join, vec![cpu(90.0), Op::Progress]].concat();
    p.tasks("root", 2, &ops);
    let p = p.targets(&[Target::Task("root")]);
    assert!(errors_at(&p, SHIPPED, &[90]).worst > 1.0);
    assert!(errors_at(&p, EVERYTHING_DEFERRED, &[90]).worst < 0.1);
}
