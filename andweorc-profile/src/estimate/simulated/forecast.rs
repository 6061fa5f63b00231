//! Whether what is said of further seconds comes true.
//!
//! A run goes on as the plan of a real one lets it: each (target, speedup) has its turns first,
//! then the target without a verdict that is forecast to have it soonest, at its largest speedup
//! two turns of three. A forecast is of the seconds of experiments on that target, so it is
//! compared with the median of these until it has a verdict, over several ways in which that same
//! run may go on.

use super::*;
use crate::Record;
use crate::estimate::ongoing::Ongoing;

/// Effects at a speedup of one half, %: most parts change next to nothing.
const PARTS: [f64; 10] = [0.0, 0.1, -0.2, 0.4, 0.0, -0.1, 0.2, 3.0, -4.0, 12.0];

/// So many ways in which a run may go on, and experiments after which it is given up.
const WAYS: u64 = 7;
const GIVEN_UP: usize = 200;

/// A run in which the last record of experiments is what was held last.
struct Going {
    run: Run,
    ongoing: Ongoing,
    level: f64,
}

impl Going {
    fn new(run: Run) -> Going {
        let mut ongoing = Ongoing::new(run.header.clone());
        let targets = run.targets.iter().cloned().map(Record::Target);
        let points = run.points.iter().cloned().map(Record::Point);
        let experiments = run.experiments.iter().cloned().map(Record::Experiment);
        targets.chain(points).chain(experiments).for_each(|record| ongoing.push(record));
        Going { run, ongoing, level: 0.0 }
    }

    /// Holds an experiment, and the baseline after it.
    fn hold(&mut self, machine: Machine, part: usize, at: usize, curve: Curve, random: &mut Rng) {
        let id = Some(100 + part as u32);
        for (target, speedup, effect) in [(id, SPEEDUPS[at], curve[at]), (None, 0.0, 0.0)] {
            machine.stretch(&mut self.run, (target, speedup, effect), &mut self.level, random);
            let held = self.run.experiments.last().unwrap().clone();
            self.ongoing.push(Record::Experiment(held));
        }
    }
}

fn part(target: &TargetSummary) -> usize {
    target.name["part ".len()..].parse().unwrap()
}

/// The next turn of the plan: a target and a speedup, of those without a verdict.
fn next(analysis: &Analysis) -> Option<(usize, usize)> {
    let open = analysis.targets.iter().filter_map(|target| match target.verdict {
        Verdict::Inconclusive { more_seconds } => {
            let n: [usize; 2] = std::array::from_fn(|at| target.effects[at].n);
            Some((more_seconds.unwrap_or(f64::INFINITY), n[0] + n[1], n, part(target)))
        }
        _ => None,
    });
    let (_, _, n, part) = open.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
    Some((part, usize::from(n[1] < 2 * n[0])))
}

/// Seconds of experiments on each target without a verdict until it has one, as this run may go on;
/// infinite where it has none in the end.
fn seconds_until(machine: Machine, curves: &[Curve], run: &Run, way: u64) -> Vec<f64> {
    let mut random = Rng::with_seed(way);
    let mut going = Going::new(run.clone());
    let mut until = vec![f64::INFINITY; curves.len()];
    for _ in 0..GIVEN_UP {
        let analysis = going.ongoing.ranking();
        for target in &analysis.targets {
            if !matches!(target.verdict, Verdict::Inconclusive { .. }) {
                let until = &mut until[part(target)];
                *until = until.min(target.seconds);
            }
        }
        let Some((part, at)) = next(&analysis) else { break };
        going.hold(machine, part, at, curves[part], &mut random);
    }
    until
}

#[test]
fn verdicts_come_when_they_are_forecast() {
    let (mut right, mut made) = (Share::default(), Share::default());
    for noise in [0.006, 0.01, 0.02] {
        let machine = Machine { noise, ..QUIET };
        for seed in 100..121 {
            let mut random = Rng::with_seed(seed);
            let curves: Vec<Curve> =
                (0..3).map(|_| linear((random.choice(PARTS).unwrap() / 100.0).ln_1p())).collect();
            // From when each has had its first turns on.
            let n = [2, 4, 8][seed as usize % 3];
            let run = simulated_with(machine, &curves, [n; 2], &mut random);
            let now = analyse_ranking(std::slice::from_ref(&run));
            let ways: Vec<Vec<f64>> =
                (0..WAYS).map(|way| seconds_until(machine, &curves, &run, way)).collect();
            for target in &now.targets {
                let Verdict::Inconclusive { more_seconds } = target.verdict else { continue };
                made.add(more_seconds.is_some());
                let Some(forecast) = more_seconds else { continue };
                let seconds = |way: &Vec<f64>| way[part(target)] - target.seconds;
                let mut really: Vec<f64> = ways.iter().map(seconds).collect();
                really.sort_by(f64::total_cmp);
                let times = forecast / really[WAYS as usize / 2];
                right.add((0.5..=2.0).contains(&times));
            }
        }
    }
    let of = format!("{right:?} of {made:?}");
    assert!(right.value() >= 0.8 && made.value() >= 0.25, "{of}");
}
