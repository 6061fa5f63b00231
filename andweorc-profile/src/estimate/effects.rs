//! Effects and impacts of a target, from its observations in all runs.
//!
//! The effect at each speedup is known from the experiments at that speedup alone, and how much
//! these scatter from all. A curve that is made monotone, as most are, would be narrower by little,
//! and its intervals would hold the truth too seldom where a part that gets faster is contended by
//! little, so that no test tells that its curve falls again.

use crate::estimate::metric::Metric;
use crate::estimate::observation::Observation;
use crate::estimate::percent;
use crate::estimate::runs::{self, Combined, Said};
use crate::estimate::scatter::{self, Cell, Scatter, Variance};
use crate::estimate::summary::{Effect, Impact, PointSummary};
use crate::stats;

/// CPU time that each hit took more at this speedup than in the baselines, as a logarithm.
pub(crate) fn overhead(cpu: &[Observation], speedup: f64) -> Option<f64> {
    has(cpu, speedup).then(|| Cell::of(cpu, speedup).log)
}

/// Cost of experiments to the program, in the units of an effect or a slope.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// The measured value is worse by this, since processors are known to be short.
    lost: f64,
    /// The measured value is worse by this too, as far as they are shorter than is known.
    perhaps: f64,
}

impl Cost {
    /// Of so much overhead, where processors are what the program lacks by this part. Less CPU time
    /// than in the baselines says nothing.
    fn of(overhead: f64, shortage: f64) -> Cost {
        let overhead = overhead.max(0.0);
        Cost { lost: shortage * overhead, perhaps: (1.0 - shortage) * overhead }
    }

    /// Returns what was measured without what is known to be lost.
    fn add_back(self, metric: Metric, measured: f64) -> f64 {
        if metric.less_is_better() { measured - self.lost } else { measured + self.lost }
    }

    /// The ends of an interval around a corrected value that reaches `half` to both sides by how
    /// repeats scatter, and farther by what is not known of the cost.
    fn interval(self, metric: Metric, value: f64, half: f64) -> [f64; 2] {
        let (worse, better) = (half.hypot(self.lost), half.hypot(self.perhaps));
        if metric.less_is_better() {
            [value - better, value + worse]
        } else {
            [value - worse, value + better]
        }
    }
}

/// The metric of a point that something has an effect on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct On<'a> {
    /// Index of the point among those of the analysis.
    pub(crate) point_index: usize,
    pub(crate) point: &'a PointSummary,
    pub(crate) metric: Metric,
    /// How far processors are what the program [lacks](crate::estimate::shortage), from 0 to 1.
    pub(crate) shortage: f64,
}

/// The effect at each speedup, in rising order. `cpu` are the observations of the CPU time per hit
/// in the same experiments, where that was measured.
///
/// Experiments cost the program CPU time of its own: threads sleep and wake more often. The faster
/// program would not have that cost, so where processors are what it lacks the effect is better
/// than the experiments show, by up to this cost. As far as baselines tell that it
/// [lacks](crate::estimate::shortage) them the effect is corrected, as the GUM asks for
/// (JCGM 100:2008, 3.2.4). Both what is added and what may be missing still are systematic
/// uncertainties, each on its side of the interval, and added in quadrature (5.1.2).
pub(crate) fn effects(
    data: &[Observation],
    scatter: &Scatter,
    on: On<'_>,
    cpu: &[Observation],
) -> Vec<Effect> {
    let at = |speedup: f64| {
        let of_runs = said(data, scatter, speedup);
        let together = runs::combine(&of_runs);
        let cell = Cell::of(data, speedup);
        let overhead = overhead(cpu, speedup);
        let cost = Cost::of(overhead.unwrap_or(0.0), on.shortage);
        let measured = together.map_or(cell.log, |it| it.value);
        let log = cost.add_back(on.metric, measured);
        let half = together.map(|it| it.half());
        let within_reach = |log, interval| match on.metric {
            Metric::Throughput => within_reach(log, interval, cell.reach),
            _ => (log, interval),
        };
        let repeats = half.map(|half| [log - half, log + half]);
        let (_, repeats) = within_reach(log, repeats);
        let p_value = together.map_or(1.0, |it| Combined { value: log, ..it }.p_value());
        let whole = half.map(|half| cost.interval(on.metric, log, half));
        let (log, interval) = within_reach(log, whole);
        Effect {
            value: None,
            point: on.point.name.clone(),
            point_index: on.point_index,
            metric: on.metric,
            speedup,
            effect_pct: percent(log),
            ci_low: interval.map(|[low, _]| percent(low)),
            ci_high: interval.map(|[_, high]| percent(high)),
            repeats: repeats.map(|ends| ends.map(percent)),
            overhead_pct: overhead.map(percent),
            n: cell.n,
            runs: scatter::by_run(data).filter(|run| has(run, speedup)).count(),
            tau: together.and_then(|it| it.tau).map(|tau| tau * points(log)),
            runs_differ: runs::differ(&of_runs),
            df: together.map_or(f64::INFINITY, |it| it.df),
            p_value,
        }
    };
    scatter::speedups(data).into_iter().map(at).collect()
}

/// A throughput moves by no more than so many times what all else was delayed by.
///
/// A rise is by no more than once that: delays make nothing faster, so that the program does no
/// more in real time than without them. Processors that sleep less beside the target, and
/// contention that delays relieve, bend that a little; and when it falls by twice that, each delay
/// would have cost as much again.
const REACH: f64 = 2.0;

/// The part of an interval, all in logarithms, that a throughput can reach: so a few experiments
/// tell of a target that hardly ever runs. Where the estimate itself is out of reach, all that can
/// be reached is returned, since what remains of the interval would look surer than it is. An
/// interval that lies outside as a whole says that something else is at work, and stays as it is.
fn within_reach(log: f64, interval: Option<[f64; 2]>, reach: f64) -> (f64, Option<[f64; 2]>) {
    let reach = REACH * reach;
    let Some([low, high]) = interval.filter(|[low, high]| *low < reach && *high > -reach) else {
        return (log, interval);
    };
    if log.abs() > reach {
        return (log.clamp(-reach, reach), Some([-reach, reach]));
    }
    (log, Some([low.max(-reach), high.min(reach)]))
}

/// The runs that are odd in the effect at this speedup, among so many targets.
pub(crate) fn odd_runs(
    data: &[Observation],
    scatter: &Scatter,
    speedup: f64,
    targets: usize,
) -> Vec<usize> {
    runs::odd(&said(data, scatter, speedup), targets)
}

/// The effect at this speedup as each run tells it; nothing where no scatter is known.
fn said(data: &[Observation], scatter: &Scatter, speedup: f64) -> Vec<Said> {
    let of_run = |run: &[Observation]| {
        let cell = has(run, speedup).then(|| Cell::of(run, speedup))?;
        let variance = scatter.of_target(run)?;
        let of_one = cell.error(variance).powi(2);
        Some(Said { run: run[0].run, value: cell.log, variance: Variance { of_one, ..variance } })
    };
    scatter::by_run(data).filter_map(of_run).collect()
}

/// Whether any of these experiments is at this speedup.
fn has(observations: &[Observation], speedup: f64) -> bool {
    observations.iter().any(|one| one.speedup == speedup)
}

/// How many points a logarithm of 1 is about this effect.
fn points(log: f64) -> f64 {
    100.0 * log.exp()
}

/// The slope of the effects over the speedup. `cpu` is as in [`effects`].
pub(crate) fn impact(
    data: &[Observation],
    scatter: &Scatter,
    on: On<'_>,
    cpu: &[Observation],
) -> Impact {
    let line = |run: &[Observation]| {
        let slope = slope(run);
        // Least squares: each experiment moves the slope by what it is off, times its leverage.
        let moved =
            |one: &Observation| one.n as f64 * (one.speedup * points(one.log_ratio)).powi(2);
        let of_one = scatter.of_target(run).map(|variance| Variance {
            of_one: variance.of_one * run.iter().map(moved).sum::<f64>() / leverage(run).powi(2),
            ..variance
        });
        Some(Said { run: run[0].run, value: slope, variance: of_one? })
    };
    let together = runs::combine(&scatter::by_run(data).filter_map(line).collect::<Vec<_>>());
    let cost = Cost::of(slope_of_overhead(data, cpu), on.shortage);
    let slope = cost.add_back(on.metric, together.map_or_else(|| slope(data), |it| it.value));
    let ends = together.map(|it| cost.interval(on.metric, slope, it.half()));
    let weighted = |one: &Observation| (one.datum(), one.n as f64);
    Impact {
        point: on.point.name.clone(),
        point_index: on.point_index,
        metric: on.metric,
        slope,
        ci_low: ends.map(|[low, _]| low),
        ci_high: ends.map(|[_, high]| high),
        r2: stats::r2_through_origin(&data.iter().map(weighted).collect::<Vec<_>>(), slope),
        std_error: together.map(|it| it.error),
        p_value: together.map_or(1.0, |it| Combined { value: slope, ..it }.p_value()),
        n: data.iter().map(|one| one.n).sum(),
    }
}

/// The slope of the regression through the origin. Zero when all speedups are.
fn slope(run: &[Observation]) -> f64 {
    let product = |one: &Observation| {
        let (speedup, effect) = one.datum();
        one.n as f64 * speedup * effect
    };
    let leverage = leverage(run);
    if leverage == 0.0 { 0.0 } else { run.iter().map(product).sum::<f64>() / leverage }
}

/// By how many points the overhead of these experiments moves their slope.
fn slope_of_overhead(data: &[Observation], cpu: &[Observation]) -> f64 {
    let moved = |one: &Observation| {
        let overhead = overhead(cpu, one.speedup).unwrap_or(0.0).max(0.0);
        one.n as f64 * one.speedup * points(one.log_ratio) * overhead
    };
    let leverage = leverage(data);
    if leverage == 0.0 { 0.0 } else { data.iter().map(moved).sum::<f64>() / leverage }
}

/// The sum of squares of the speedups.
fn leverage(run: &[Observation]) -> f64 {
    run.iter().map(|one| one.n as f64 * one.speedup.powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::estimate::Verdict;
    use crate::estimate::analyse;
    use crate::estimate::tests::{closed, push};

    #[test]
    fn a_throughput_moves_by_no_more_than_twice_the_delay() {
        let wide = Some([-0.3, 0.2]);
        assert_eq!(within_reach(-0.05, wide, 0.01), (-0.02, Some([-0.02, 0.02])));
        assert_eq!(within_reach(0.1, Some([0.05, 0.15]), 0.06), (0.1, Some([0.05, 0.12])));
        assert_eq!(within_reach(0.1, Some([0.05, 0.15]), 0.01), (0.1, Some([0.05, 0.15])));
        // No sliver such as [-0.06, -0.055].
        assert_eq!(within_reach(-0.1, Some([-0.14, -0.055]), 0.03), (-0.06, Some([-0.06, 0.06])));
        assert_eq!(within_reach(0.1, None, 0.01), (0.1, None));
    }

    /// A run in which a target changes the throughput by `change` %, and each hit takes `more` %
    /// more CPU time in its experiments.
    fn costly(change: u64, more: u64) -> Run {
        let mut run = closed();
        push(&mut run, None, 0.0, 10_000, 1_000);
        for off in [0, 10, 20] {
            push(&mut run, Some(1), 0.5, 100 * (100 + change) + off, 1_000);
            push(&mut run, None, 0.0, 10_000 + off, 1_000);
        }
        for one in &mut run.experiments {
            let of_each = if one.target.is_some() { 100 + more } else { 100 };
            one.cpu_ns = Some(of_each * one.points[0].count);
        }
        run
    }

    #[test]
    fn overhead_widens_an_interval_on_its_better_side() {
        let effect_of = |run: &Run, metric| {
            let analysis = analyse(std::slice::from_ref(run));
            let point = analysis.targets[0].ranking_effect().unwrap().point_index;
            analysis.targets[0].effect_at(point, metric, 0.5).unwrap().clone()
        };
        let [plain, costly] = [0, 10].map(|more| effect_of(&costly(20, more), Metric::Throughput));
        assert_eq!((costly.effect_pct, costly.ci_low), (plain.effect_pct, plain.ci_low));
        assert!((costly.overhead_pct.unwrap() - 10.0).abs() < 0.1, "{costly:?}");
        assert_eq!(costly.repeats, plain.repeats);
        // 1.2 * 1.1
        assert!((costly.ci_high.unwrap() - 32.0).abs() < 1.0, "{costly:?}");
        let of_latency = |overhead| Cost::of(overhead, 0.0).interval(Metric::P99, 0.0, 0.03);
        assert_eq!(of_latency(0.04), [-0.05, 0.03]);
        assert_eq!(of_latency(-0.04), [-0.03, 0.03]);
    }

    /// Moves the run to one processor, which is busy for this part of the time, %.
    fn busy(run: Run, percent: u64) -> Run {
        let mut run = run;
        run.header.cores = 1;
        // Its target has half of the CPU time.
        run.samples[0].targets[0].busy_ns = run.samples[0].cpu_ns / 2;
        // Each baseline uses 100 ns for each hit, of a second.
        let used = 100 * 10_000;
        for one in &mut run.experiments {
            one.cpu_ns = one.cpu_ns.map(|cpu_ns| cpu_ns * 1_000_000_000 / used * percent / 100);
        }
        run
    }

    #[test]
    fn overhead_is_added_back_where_processors_are_short() {
        let effect_of = |metric, percent| {
            let analysis = analyse(&[busy(costly(22, 10), percent)]);
            let point = analysis.targets[0].ranking_effect().unwrap().point_index;
            analysis.targets[0].effect_at(point, metric, 0.5).unwrap().clone()
        };
        let [idle, half, full] = [0, 50, 100].map(|it| effect_of(Metric::Throughput, it));
        assert!((idle.effect_pct - 22.0).abs() < 0.2, "{idle:?}");
        // 1.22, times the root of 1.1, and the root of that.
        assert!((full.effect_pct - 27.95).abs() < 0.3, "{full:?}");
        assert!((half.effect_pct - 24.94).abs() < 0.3, "{half:?}");
        for one in [half, full] {
            // From what was measured to 1.22 times 1.1.
            assert!(one.ci_low.unwrap() < 22.3 && one.ci_high.unwrap() > 33.5, "{one:?}");
        }
        // A latency falls by as much.
        let latency = effect_of(Metric::Mean, 100);
        assert!((latency.effect_pct + 4.65).abs() < 0.1, "{latency:?}");
    }

    #[test]
    fn a_verdict_of_nothing_is_by_what_repeats_say() {
        let verdict = |run: Run| analyse(&[run]).targets[0].verdict;
        assert_eq!(verdict(costly(0, 10)), Verdict::Nothing);
        assert_eq!(verdict(costly(20, 10)), Verdict::Matters);
    }

    #[test]
    fn an_impact_is_as_uncertain_as_its_effects() {
        let impact_of = |more| {
            let analysis = analyse(&[costly(20, more)]);
            let of_throughput = |it: &&crate::estimate::Impact| it.metric == Metric::Throughput;
            analysis.targets[0].impacts.iter().find(of_throughput).unwrap().clone()
        };
        let [plain, costly] = [0, 10].map(impact_of);
        assert_eq!((plain.slope, plain.ci_low), (costly.slope, costly.ci_low));
        // A tenth of 120 at a speedup of a half.
        let farther = costly.ci_high.unwrap() - costly.slope;
        assert!((farther - 23.0).abs() < 2.0, "{costly:?}");
    }

    #[test]
    fn a_target_that_hardly_ever_runs_is_nothing_although_the_program_scatters() {
        let mut run = closed();
        push(&mut run, None, 0.0, 10_000, 1_000);
        for count in [9_700, 10_300, 9_900] {
            // Of the second 4 ms are delay.
            push(&mut run, Some(1), 0.01, count, 1_000);
            push(&mut run, None, 0.0, 10_100, 1_000);
        }
        let target = &analyse(&[run]).targets[0];
        assert_eq!(target.verdict, Verdict::Nothing, "{:?}", target.ranking_effect());
    }
}
