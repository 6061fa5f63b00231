//! Effects and impacts of a target, from its observations in all runs.
//!
//! The effect at each speedup is known from the experiments at that speedup alone, and how much
//! these scatter from all. A curve that is made monotone, as most are, would be narrower by little,
//! and its intervals would hold the truth too seldom where a part that gets faster is contended by
//! little, so that no test tells that its curve falls again.

use crate::estimate::percent;
use crate::estimate::runs::{self, Said};
use crate::estimate::scatter::{self, Cell, Scatter, Variance};
use crate::estimate::series::Observation;
use crate::estimate::summary::{Effect, Impact, Metric, PointSummary};
use crate::stats;

/// The metric of a point that something has an effect on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct On<'a> {
    /// Index of the point among those of the analysis.
    pub(crate) point_index: usize,
    pub(crate) point: &'a PointSummary,
    pub(crate) metric: Metric,
}

/// The effect at each speedup, in rising order.
pub(crate) fn effects(data: &[Observation], scatter: &Scatter, on: On<'_>) -> Vec<Effect> {
    let at = |speedup: f64| {
        let of_runs = said(data, scatter, speedup);
        let together = runs::combine(&of_runs);
        let cell = Cell::of(data, speedup);
        let log = together.map_or(cell.log, |it| it.value);
        let half = together.map(|it| it.half());
        let interval = half.map(|half| [log - half, log + half]);
        let (log, interval) = match on.metric {
            Metric::Throughput => within_reach(log, interval, cell.reach),
            _ => (log, interval),
        };
        Effect {
            value: None,
            point: on.point.name.clone(),
            point_index: on.point_index,
            metric: on.metric,
            speedup,
            effect_pct: percent(log),
            ci_low: interval.map(|[low, _]| percent(low)),
            ci_high: interval.map(|[_, high]| percent(high)),
            n: cell.n,
            runs: scatter::by_run(data).filter(|run| has(run, speedup)).count(),
            tau: together.and_then(|it| it.tau).map(|tau| tau * points(log)),
            runs_differ: runs::differ(&of_runs),
            df: together.map_or(f64::INFINITY, |it| it.df),
            p_value: together.map_or(1.0, |it| it.p_value()),
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

/// The slope of the effects over the speedup.
pub(crate) fn impact(data: &[Observation], scatter: &Scatter, on: On<'_>) -> Impact {
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
    let slope = together.map_or_else(|| slope(data), |it| it.value);
    let half = together.map(|it| it.half());
    let weighted = |one: &Observation| (one.datum(), one.n as f64);
    Impact {
        point: on.point.name.clone(),
        point_index: on.point_index,
        metric: on.metric,
        slope,
        ci_low: half.map(|half| slope - half),
        ci_high: half.map(|half| slope + half),
        r2: stats::r2_through_origin(&data.iter().map(weighted).collect::<Vec<_>>(), slope),
        p_value: together.map_or(1.0, |it| it.p_value()),
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

/// The sum of squares of the speedups.
fn leverage(run: &[Observation]) -> f64 {
    run.iter().map(|one| one.n as f64 * one.speedup.powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
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
