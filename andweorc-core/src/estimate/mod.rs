//! Estimates: from raw rows to effects, impacts, verdicts and a ranking.
//!
//! Everything is computed from the rows of a profile, so that an estimate can be repeated and checked.
//!
//! - An **effect** compares an experiment with the mean of its neighbouring baselines, the nearest unspoiled ones before and
//!   after it, so that drift cancels; it is the mean over the experiments of one (target, speedup) of the logarithm of that ratio, in %. The
//!   logarithm makes +x and -x symmetric. Every metric is taken an experiment at a time, latencies from its histogram in virtual
//!   time, so that both sides of a comparison come from samples of one size and share the bias of a small one.
//! - An **impact** is the slope of the effect over the speedup: the regression through the origin of all experiments on a
//!   target, which weights each speedup by its experiments. In % for a speedup of 1: a slope of 40 means +10 % at 25 %.
//! - **Intervals** are 95 %, from a bootstrap over experiments (`stats::standard_error`). Two experiments that share a baseline are
//!   correlated by at most a quarter of their variance; the plan's random order makes two of one target neighbours seldom.
//! - **Many targets**: which of them have an impact at all is decided by Benjamini & Hochberg (1995) at 5 %.
//! - **Ranking** is by the lower end of the impact's interval on the throughput of the first point.

pub(crate) mod load;
pub(crate) mod observe;
pub(crate) mod summary;
mod waits;

pub use load::Load;
pub use observe::{Comparison, comparisons};
pub use summary::{Effect, Impact, Metric, PointSummary, TargetSummary, Verdict};
pub use waits::WaitSummary;

use crate::profile::{Run, TargetKind};
use crate::stats;
use observe::{Observation, observations};
use summary::{impact_of, verdict_of};

/// What is known from some runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// The points, the one ranked by first.
    pub points: Vec<PointSummary>,
    /// The targets that were experimented on, in the order of the ranking.
    pub targets: Vec<TargetSummary>,
    /// What tasks and spans waited for, the longest in all first.
    pub waits: Vec<WaitSummary>,
    /// How the program is loaded, where it was probed.
    pub load: Option<Load>,
    /// Experiments held on targets, without baselines and probes.
    pub experiments: usize,
    /// Baselines held.
    pub baselines: usize,
    /// Experiments and baselines left out because they were spoiled.
    pub spoiled: usize,
}

/// False discovery rate of the verdicts.
const FALSE_DISCOVERIES: f64 = 0.05;

/// Analyses all metrics of all points.
pub fn analyse(runs: &[Run]) -> Analysis {
    analyse_points(runs, usize::MAX, &Metric::ALL)
}

/// Analyses only what the ranking needs: the throughput of the first point. Cheap enough to repeat after each experiment.
pub fn analyse_ranking(runs: &[Run]) -> Analysis {
    analyse_points(runs, 1, &[Metric::Throughput])
}

fn analyse_points(runs: &[Run], most_points: usize, metrics: &[Metric]) -> Analysis {
    let mut points = summary::points(runs);
    points.truncate(most_points);
    let mut targets = summary::targets(runs);
    for target in &mut targets {
        for (index, point) in points.iter().enumerate() {
            for &metric in metrics {
                let data = observations(runs, target, point, metric);
                if data.is_empty() {
                    continue;
                }
                if target.impacts.is_empty() {
                    target.seconds = data.iter().map(|one| one.seconds).sum();
                }
                target.effects.extend(effects(&data, index, point, metric));
                target.impacts.extend(impact_of(&data, index, point, metric));
            }
        }
    }
    targets.retain(|target| !target.effects.is_empty() && target.kind != TargetKind::Probe);
    let load = points.first().and_then(|point| load::load(runs, point));
    let p_values: Vec<f64> =
        targets.iter().map(|target| target.ranking_impact().map_or(1.0, |i| i.p_value)).collect();
    let found = stats::discoveries(&p_values, FALSE_DISCOVERIES);
    for (target, found) in targets.iter_mut().zip(found) {
        target.verdict = verdict_of(target, found);
    }
    targets.sort_by(|a, b| b.rank_key().total_cmp(&a.rank_key()));
    let all = || runs.iter().flat_map(|run| &run.experiments);
    Analysis {
        points,
        targets,
        waits: waits::waits(runs),
        load,
        baselines: all().filter(|experiment| experiment.target.is_none()).count(),
        experiments: runs.iter().map(summary::experiments_on_targets).sum(),
        spoiled: all().filter(|experiment| experiment.spoiled.is_some()).count(),
    }
}

/// The effect at each speedup, in rising order.
fn effects<'a>(
    data: &'a [Observation],
    point_index: usize,
    point: &'a PointSummary,
    metric: Metric,
) -> impl Iterator<Item = Effect> + 'a {
    let mut speedups: Vec<f64> = data.iter().map(|one| one.speedup).collect();
    speedups.sort_by(f64::total_cmp);
    speedups.dedup();
    speedups.into_iter().map(move |speedup| {
        let logs: Vec<f64> =
            data.iter().filter(|one| one.speedup == speedup).map(|one| one.log_ratio).collect();
        let log = stats::mean(&logs);
        let half = stats::standard_error(&logs, stats::mean)
            .map(|error| error * stats::t_quantile(logs.len() as f64 - 1.0));
        Effect {
            point: point.name.clone(),
            point_index,
            metric,
            speedup,
            effect_pct: percent(log),
            ci_low: half.map(|half| percent(log - half)),
            ci_high: half.map(|half| percent(log + half)),
            n: logs.len(),
        }
    })
}

/// A logarithm of a ratio as a change in %.
pub(crate) fn percent(log_ratio: f64) -> f64 {
    log_ratio.exp_m1() * 100.0
}

#[cfg(test)]
pub(crate) mod tests;
