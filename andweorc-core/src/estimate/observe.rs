//! One observation: an experiment against its neighbouring baselines.

use crate::estimate::percent;
use crate::estimate::summary::{Metric, PointSummary, TargetSummary};
use crate::profile::{ExperimentRecord, Run};

/// An experiment on a target with what it is compared to.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison<'a> {
    /// The experiment; it is not spoiled.
    pub experiment: &'a ExperimentRecord,
    /// The nearest unspoiled baselines before and after it: at most two.
    pub baselines: Vec<&'a ExperimentRecord>,
}

/// All experiments of a run that can be used, in their order.
pub fn comparisons(run: &Run) -> Vec<Comparison<'_>> {
    let usable: Vec<&ExperimentRecord> =
        run.experiments.iter().filter(|experiment| experiment.spoiled.is_none()).collect();
    let is_baseline = |one: &&&ExperimentRecord| one.target.is_none();
    let mut all = Vec::new();
    for (i, &experiment) in usable.iter().enumerate().filter(|(_, one)| one.target.is_some()) {
        let before = usable[..i].iter().rev().find(is_baseline);
        let after = usable[i..].iter().find(is_baseline);
        let baselines = before.into_iter().chain(after).copied().collect();
        all.push(Comparison { experiment, baselines });
    }
    all
}

/// An experiment on a target, by one metric of one point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    /// The speedup, a fraction.
    pub(crate) speedup: f64,
    /// Logarithm of its metric over the mean of the neighbouring baselines' metrics.
    pub(crate) log_ratio: f64,
    /// Real seconds that it took, with its share of the baselines.
    pub(crate) seconds: f64,
}

impl Observation {
    /// As a datum of the impact's regression: speedup, effect in %.
    pub(crate) fn datum(&self) -> (f64, f64) {
        (self.speedup, percent(self.log_ratio))
    }
}

/// All observations of a target by one metric of one point.
pub(crate) fn observations(
    runs: &[Run],
    target: &TargetSummary,
    point: &PointSummary,
    metric: Metric,
) -> Vec<Observation> {
    let mut all = Vec::new();
    for run in runs {
        let Some(target) = run.targets.iter().find(|record| target.is(record)) else { continue };
        let Some(point) = run.points.iter().find(|record| point.is(record)) else { continue };
        let value = |experiment: &ExperimentRecord| {
            metric.of(experiment, point.id).filter(|value| *value > 0.0 && value.is_finite())
        };
        for Comparison { experiment, baselines } in comparisons(run) {
            if experiment.target != Some(target.id) {
                continue;
            }
            let baselines: Vec<f64> = baselines.into_iter().filter_map(value).collect();
            let (Some(measured), false) = (value(experiment), baselines.is_empty()) else {
                continue;
            };
            all.push(Observation {
                speedup: experiment.speedup,
                log_ratio: (measured / crate::stats::mean(&baselines)).ln(),
                seconds: 2.0 * experiment.real_ns as f64 / 1e9,
            });
        }
    }
    all
}
