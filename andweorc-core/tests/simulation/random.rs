//! Programs that nobody thought of: random ones, which shrink when they are predicted wrongly.

use crate::measure::{Comparison, Errors, Truth};
use crate::percent;
use crate::program::*;
use crate::rules::SHIPPED;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;

/// The farthest that a prediction may be off, in points.
const MOST: f64 = 3.0;

/// How many are tried.
const CASES: u32 = 100;

/// Step of a request.
#[derive(Clone, Debug)]
enum Step {
    Cpu(f64),
    Wait(f64),
    Locked(f64),
    LockedWait(f64),
    Limited(f64),
    Reading(f64),
    Writing(f64),
    Call,
    Blocking,
    Children(u8),
    Sometimes(f64, f64),
}

/// A service: clients with a request loop, beside a pipeline that may be fed by them.
#[derive(Clone, Debug)]
struct Service {
    workers: usize,
    local: Option<(bool, bool)>,
    clients: usize,
    think: Option<f64>,
    steps: Vec<Step>,
    stages: Vec<f64>,
    capacity: u32,
    background: Option<(f64, f64)>,
    target: usize,
    percent: u32,
}

fn time() -> impl Strategy<Value = f64> {
    (10u32..500).prop_map(f64::from)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => time().prop_map(Step::Cpu),
        3 => time().prop_map(Step::Wait),
        1 => time().prop_map(Step::Locked),
        1 => time().prop_map(Step::LockedWait),
        1 => time().prop_map(Step::Limited),
        1 => time().prop_map(Step::Reading),
        1 => time().prop_map(Step::Writing),
        1 => Just(Step::Call),
        1 => Just(Step::Blocking),
        1 => (1u8..4).prop_map(Step::Children),
        1 => (time(), time()).prop_map(|(wait, cpu)| Step::Sometimes(wait, cpu)),
    ]
}

fn service() -> impl Strategy<Value = Service> {
    let shape = (1usize..6, proptest::option::of((any::<bool>(), any::<bool>())), 1usize..9);
    let load = (proptest::option::of(time()), proptest::collection::vec(step(), 1..6));
    let rest = (
        proptest::collection::vec(time(), 0..4),
        1u32..12,
        proptest::option::of((time(), time())),
        any::<usize>(),
        1u32..10,
    );
    (shape, load, rest).prop_map(|(shape, load, rest)| {
        let ((workers, local, clients), (think, steps)) = (shape, load);
        let (stages, capacity, background, target, percent) = rest;
        let percent = percent * 10;
        #[rustfmt::skip]
        let service = Service {
            workers, local, clients, think, steps, stages, capacity, background, target, percent,
        };
        service
    })
}

/// The name of the n-th step, as a span or a wait.
fn name(n: usize) -> Tag {
    ["step 0", "step 1", "step 2", "step 3", "step 4", "step 5"][n]
}

impl Service {
    fn program(&self) -> Program {
        let mut p = Program::new("random", self.workers).units(600).seeds(3);
        if let Some((lifo_slot, stealing)) = self.local {
            p = p.local_queues(lifo_slot, stealing);
        }
        let (lock, permits, shared) = (p.semaphore(1), p.semaphore(2), p.semaphore(READERS));
        let mailbox = p.channel(4);
        let mut targets = vec![Target::Task("client")];
        let mut ops: Vec<Op> = self.think.map(|us| wait("think", us)).into_iter().collect();
        ops.push(cpu(15.0));
        for (n, step) in self.steps.iter().enumerate() {
            targets.push(Target::Span(name(n)));
            let busy = |us: f64| [span(name(n), us)];
            match *step {
                Step::Cpu(us) => ops.extend(busy(us)),
                Step::Wait(us) => {
                    targets.pop();
                    targets.push(Target::Wait(name(n)));
                    ops.push(wait(name(n), us));
                }
                Step::Locked(us) => ops.extend(holding(lock, 1, &busy(us))),
                Step::LockedWait(us) => {
                    ops.extend(holding(lock, 1, &[span(name(n), 20.0), wait("disk", us)]));
                }
                Step::Limited(us) => {
                    ops.extend(holding(permits, 1, &[span(name(n), 30.0), wait("db", us)]));
                }
                Step::Reading(us) => ops.extend(holding(shared, 1, &busy(us))),
                Step::Writing(us) => ops.extend(holding(shared, READERS, &busy(us))),
                Step::Call => {
                    targets.pop();
                    targets.push(Target::Task("actor"));
                    ops.push(Op::Call(mailbox));
                }
                Step::Blocking => {
                    let kind = p.kind("blocking", &[span(name(n), 120.0), wait("read", 80.0)]);
                    ops.extend([Op::SpawnBlocking(kind), Op::Join]);
                }
                Step::Children(count) => {
                    let kind = p.kind("child", &[span(name(n), 50.0), wait("part", 120.0)]);
                    ops.extend(vec![Op::Spawn(kind); count.into()]);
                    ops.extend(vec![Op::Join; count.into()]);
                }
                Step::Sometimes(us, busy_us) => {
                    ops.push(Op::OneIn(3, vec![wait("miss", us), span(name(n), busy_us)]));
                }
            }
        }
        p.tasks("actor", 1, &[Op::Recv(mailbox), cpu(40.0), Op::Reply]);
        let stages = ["stage 0", "stage 1", "stage 2"];
        let channels: Vec<usize> = self.stages.iter().map(|_| p.channel(self.capacity)).collect();
        ops.push(channels.first().map_or(Op::Progress, |&first| Op::Send(first)));
        p.tasks("client", self.clients, &ops);
        for (n, &us) in self.stages.iter().enumerate() {
            let out = channels.get(n + 1).map_or(Op::Progress, |&next| Op::Send(next));
            p.tasks(stages[n], 1, &[Op::Recv(channels[n]), cpu(us), out]);
            targets.push(Target::Task(stages[n]));
        }
        if let Some((busy, pause)) = self.background {
            p.tasks("background", 1, &[span("background", busy), wait("pause", pause)]);
            targets.push(Target::Span("background"));
        }
        let target = targets[self.target % targets.len()];
        p.targets(&[target])
    }

    fn compare(&self) -> Comparison {
        let program = self.program();
        let speedups = [percent(self.percent)];
        let truth = Truth::of(&program, &speedups, SHIPPED).unwrap();
        truth.compare(SHIPPED, |_| true).unwrap().remove(0)
    }
}

/// Each is predicted within 3 points. None gets stuck and D never goes back, which the simulation
/// sees to.
#[test]
fn random_programs_are_predicted_too() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let off = RefCell::new(Vec::new());
    let verdict = TestRunner::new_with_rng(config, rng).run(&service(), |service| {
        let comparison = service.compare();
        off.borrow_mut().push(comparison.error());
        prop_assert!(comparison.error() <= MOST, "{comparison:?}");
        Ok(())
    });
    verdict.unwrap_or_else(|error| panic!("{error}"));
    let Errors { cases, mean, p95, worst } = Errors::of(off.into_inner());
    println!("random programs={cases} mean={mean:.2} p95={p95:.2} worst={worst:.2}");
}
