//! Whether intervals hold what they should, and verdicts are right as often: simulated runs whose
//! truth is known.

mod forecast;
mod runs;

use super::*;
use crate::estimate::tests::{PROBE, push, run_with_probe};
use crate::{PointKind, TargetKind, TargetRecord};
use fastrand::Rng;

/// A machine on which a run is simulated.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Standard deviation of a stretch's logarithm.
    noise: f64,
    /// Standard deviation of the step by which the logarithm drifts for good in each stretch.
    drift: f64,
    /// How often a stretch is hit by something else, and loses a tenth.
    hit: f64,
}

impl Machine {
    /// Appends a stretch on a target at a speedup, with this effect as a logarithm.
    fn stretch(
        self,
        run: &mut Run,
        (target, speedup, effect): (Option<u32>, f64, f64),
        level: &mut f64,
        random: &mut Rng,
    ) {
        let hit = if random.f64() < self.hit { -0.1 } else { 0.0 };
        *level += self.drift * normal(random);
        let log = *level + self.noise * normal(random) + hit + effect;
        push(run, target, speedup, (1e6 * log.exp()) as u64, 1_000);
        run.experiments.last_mut().unwrap().points[0].latency.clear();
    }
}

const QUIET: Machine = Machine { noise: 0.01, drift: 0.0, hit: 0.0 };

/// Effects of the targets at a speedup of one half, %.
const EFFECTS: [f64; 6] = [0.0, 0.0, 0.0, 3.0, 20.0, -8.0];

fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// A run with `n` experiments on each target at each of two speedups, in random order.
fn simulated(machine: Machine, targets: usize, n: usize, random: &mut Rng) -> Run {
    let curves = EFFECTS.map(|effect| linear((effect / 100.0).ln_1p()));
    simulated_with(machine, &curves[..targets], [n, n], random)
}

/// The speedups of a simulated run.
const SPEEDUPS: [f64; 2] = [0.25, 0.5];

/// The effects of a target at both speedups, as logarithms.
type Curve = [f64; 2];

/// In proportion to the speedup, up to this.
fn linear(effect: f64) -> Curve {
    [effect / 2.0, effect]
}

/// Likewise of targets with these effects, with so many experiments at each speedup.
fn simulated_with(machine: Machine, curves: &[Curve], n: [usize; 2], random: &mut Rng) -> Run {
    let targets = curves.len();
    let mut run = run_with_probe();
    // By throughput alone, whatever the probes say.
    run.points[0].kind = PointKind::Progress;
    run.targets.retain(|target| target.kind == TargetKind::Probe);
    for id in 0..targets as u32 {
        run.targets.push(TargetRecord {
            id: 100 + id,
            kind: TargetKind::Span,
            name: format!("part {id}"),
            file: None,
            line: None,
        });
    }
    let mut level = 0.0;
    let mut stretch = |run: &mut Run, target: Option<u32>, speedup: f64, effect: f64| {
        machine.stretch(run, (target, speedup, effect), &mut level, random);
    };
    stretch(&mut run, None, 0.0, 0.0);
    for _ in 0..2 {
        stretch(&mut run, Some(PROBE), 0.15, 0.0);
        stretch(&mut run, None, 0.0, 0.0);
    }
    for round in 0..n[0].max(n[1]) {
        let mut cells: Vec<(usize, usize)> =
            (0..targets).flat_map(|target| [(target, 0), (target, 1)]).collect();
        cells.retain(|&(_, at)| round < n[at]);
        Rng::with_seed(run.experiments.len() as u64 ^ 7).shuffle(&mut cells);
        for (target, at) in cells {
            let id = 100 + target as u32;
            stretch(&mut run, Some(id), SPEEDUPS[at], curves[target][at]);
            stretch(&mut run, None, 0.0, 0.0);
        }
    }
    run
}

/// How often what was counted was so.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    yes: usize,
    all: usize,
}

impl Share {
    fn add(&mut self, yes: bool) {
        self.yes += usize::from(yes);
        self.all += 1;
    }

    /// Nothing of nothing.
    fn value(self) -> f64 {
        self.yes as f64 / self.all.max(1) as f64
    }
}

/// Of many simulated runs.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    covered: Share,
    /// Of what changes nothing, how much is said to matter or to hurt.
    false_matters: Share,
    /// Of what changes 3 % or more, how much is said to change nothing.
    false_nothing: Share,
}

impl Told {
    /// Counts what an analysis says of targets with these effects at a speedup of one half, %.
    fn take(&mut self, analysis: &Analysis, effects: &[f64]) {
        for target in &analysis.targets {
            let truth = effects[target.name["part ".len()..].parse::<usize>().unwrap()];
            for effect in &target.effects {
                let truth = percent((truth / 100.0).ln_1p() * effect.speedup / 0.5);
                let (low, high) = (effect.ci_low.unwrap(), effect.ci_high.unwrap());
                self.covered.add((low..=high).contains(&truth));
            }
            let stands_out = matches!(target.verdict, Verdict::Matters | Verdict::Hurts);
            if truth == 0.0 {
                self.false_matters.add(stands_out);
            } else {
                self.false_nothing.add(target.verdict == Verdict::Nothing);
            }
        }
    }
}

fn told(machine: Machine, targets: usize, n: usize, runs: u64) -> Told {
    let mut told = Told::default();
    for seed in 0..runs {
        let mut random = Rng::with_seed(1_000 * n as u64 + seed);
        let run = simulated(machine, targets, n, &mut random);
        told.take(&analyse_ranking(&[run]), &EFFECTS);
    }
    told
}

#[test]
fn intervals_cover_the_truth_and_verdicts_are_seldom_wrong() {
    let machines = [
        QUIET,
        Machine { noise: 0.03, ..QUIET },
        Machine { drift: 0.01, ..QUIET },
        Machine { hit: 0.04, ..QUIET },
    ];
    for machine in machines {
        for targets in [1, 3, 6] {
            for n in [2, 3, 6, 20] {
                let runs = 2_400 / (targets * n.min(6)) as u64;
                let told = told(machine, targets, n, runs);
                let [covered, matters, nothing] =
                    [told.covered, told.false_matters, told.false_nothing].map(Share::value);
                // Seeds are fixed; of so many runs a share is known to a point or two.
                assert!(
                    (0.93..=0.97).contains(&covered) && matters <= 0.06 && nothing <= 0.05,
                    "{machine:?} {targets} targets, n = {n}: covered {covered:.3}, false matters {matters:.3}, false nothing {nothing:.3}"
                );
            }
        }
    }
}

/// Curves that a model of a target's effects would have to fit: in proportion, saturating, flat,
/// falling, contended, and contended by so little that it is hardly seen.
const CURVES: [Curve; 6] =
    [[0.09, 0.18], [0.15, 0.18], [0.0, 0.0], [-0.03, -0.06], [0.03, -0.05], [0.015, 0.0]];

#[test]
fn intervals_hold_curves_of_any_shape_where_a_speedup_has_fewer_experiments() {
    for machine in [QUIET, Machine { drift: 0.01, ..QUIET }, Machine { hit: 0.04, ..QUIET }] {
        let mut by_curve = [Share::default(); CURVES.len()];
        for n in [[1, 2], [2, 2], [2, 3], [3, 6], [1, 20]] {
            let mut by_n = Share::default();
            for seed in 0..250 {
                let mut random = Rng::with_seed(seed);
                let run = simulated_with(machine, &CURVES, n, &mut random);
                for target in &analyse_ranking(&[run]).targets {
                    let curve = target.name["part ".len()..].parse::<usize>().unwrap();
                    for (effect, log) in target.effects.iter().zip(CURVES[curve]) {
                        let ends = effect.ci_low.unwrap()..=effect.ci_high.unwrap();
                        let covered = ends.contains(&percent(log));
                        by_curve[curve].add(covered);
                        by_n.add(covered);
                    }
                }
            }
            let covered = by_n.value();
            assert!((0.93..=0.97).contains(&covered), "{machine:?}, n = {n:?}: {covered:.3}");
        }
        for (curve, covered) in CURVES.iter().zip(by_curve.map(Share::value)) {
            assert!((0.93..=0.97).contains(&covered), "{machine:?}, {curve:?}: {covered:.3}");
        }
    }
}
