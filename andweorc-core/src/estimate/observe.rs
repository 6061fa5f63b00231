//! One observation: an experiment against its neighbouring baselines.

use crate::estimate::percent;
use crate::estimate::summary::{Metric, PointSummary, TargetSummary};
use crate::profile::{ExperimentRecord, PointCount, PointKind, Run, TargetKind};
use std::collections::HashMap;

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
    let record = |index: usize| &run.experiments[index];
    let compared = |trial: Trial| Comparison {
        experiment: record(trial.experiment),
        baselines: trial.baselines().map(record).collect(),
    };
    trials(run).into_iter().map(compared).collect()
}

/// The same as indices of the run's experiments.
#[derive(Clone, Copy, Debug)]
struct Trial {
    experiment: usize,
    before: Option<usize>,
    after: Option<usize>,
}

impl Trial {
    fn baselines(&self) -> impl Iterator<Item = usize> {
        self.before.into_iter().chain(self.after)
    }
}

/// All experiments of a run that can be used, in their order.
fn trials(run: &Run) -> Vec<Trial> {
    let mut all: Vec<Trial> = Vec::new();
    let mut before = None;
    let mut without_after = 0;
    let usable = |(_, experiment): &(usize, &ExperimentRecord)| experiment.spoiled.is_none();
    for (index, experiment) in run.experiments.iter().enumerate().filter(usable) {
        if experiment.target.is_some() {
            all.push(Trial { experiment: index, before, after: None });
        } else {
            all[without_after..].iter_mut().for_each(|trial| trial.after = Some(index));
            without_after = all.len();
            before = Some(index);
        }
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

/// What makes a target or a point of kind `K` the same in two runs: kind, name, file, line.
pub(crate) type Identity<'a, K> = (K, &'a str, Option<&'a str>, Option<u32>);

/// The rows of a run by what they are about, so that a program of ten thousand call sites is read once and not once for each of them.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    run: &'a Run,
    ids: HashMap<Identity<'a, TargetKind>, u32>,
    trials: HashMap<u32, Vec<Trial>>,
    /// What each of the points asked for did: index of the experiment, count.
    counts: Vec<Vec<(usize, &'a PointCount)>>,
}

/// A metric of a point in each experiment of a run; empty when the run has no such point.
#[derive(Debug)]
pub(crate) struct Column(Vec<Option<f64>>);

impl<'a> Rows<'a> {
    /// The rows of `run`, of these points only.
    pub(crate) fn of(run: &'a Run, points: &[PointSummary]) -> Rows<'a> {
        let mut by_target: HashMap<u32, Vec<Trial>> = HashMap::new();
        for trial in trials(run) {
            let target = run.experiments[trial.experiment].target;
            by_target.entry(target.unwrap_or_default()).or_default().push(trial);
        }
        let mut ids = HashMap::with_capacity(run.targets.len());
        for record in &run.targets {
            ids.entry(record.identity()).or_insert(record.id);
        }
        Rows { run, ids, trials: by_target, counts: counts(run, points) }
    }

    /// A metric of the point with this index among those asked for.
    pub(crate) fn column(&self, point: usize, metric: Metric) -> Column {
        let counts = &self.counts[point];
        if counts.is_empty() {
            return Column(Vec::new());
        }
        let mut values = vec![None; self.run.experiments.len()];
        for &(index, count) in counts {
            values[index] = metric
                .of_count(&self.run.experiments[index], count)
                .filter(|value| *value > 0.0 && value.is_finite());
        }
        Column(values)
    }

    /// All observations of a target by this metric.
    pub(crate) fn observations<'b>(
        &'b self,
        target: &TargetSummary,
        column: &'b Column,
    ) -> impl Iterator<Item = Observation> + 'b {
        let id = self.ids.get(&target.identity());
        let trials = id.and_then(|id| self.trials.get(id)).filter(|_| !column.0.is_empty());
        trials.into_iter().flatten().filter_map(|trial| {
            let baselines: Vec<f64> = trial.baselines().filter_map(|i| column.0[i]).collect();
            let measured = column.0[trial.experiment].filter(|_| !baselines.is_empty())?;
            let experiment = &self.run.experiments[trial.experiment];
            Some(Observation {
                speedup: experiment.speedup,
                log_ratio: (measured / crate::stats::mean(&baselines)).ln(),
                seconds: 2.0 * experiment.real_ns as f64 / 1e9,
            })
        })
    }
}

impl Column {
    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

/// What each of these points did.
fn counts<'a>(run: &'a Run, points: &[PointSummary]) -> Vec<Vec<(usize, &'a PointCount)>> {
    let mut wanted: HashMap<Identity<'_, PointKind>, usize> = HashMap::new();
    for (index, point) in points.iter().enumerate() {
        wanted.entry(point.identity()).or_insert(index);
    }
    // By id in this run, of the first record of each identity.
    let mut ids: HashMap<u32, usize> = HashMap::new();
    for record in &run.points {
        if let Some(point) = wanted.remove(&record.identity()) {
            ids.insert(record.id, point);
        }
    }
    let mut all: Vec<Vec<(usize, &PointCount)>> = vec![Vec::new(); points.len()];
    for (index, experiment) in run.experiments.iter().enumerate() {
        for count in &experiment.points {
            let Some(&point) = ids.get(&count.point) else { continue };
            // Only the first of a point counts.
            if all[point].last().is_none_or(|(last, _)| *last != index) {
                all[point].push((index, count));
            }
        }
    }
    all
}
