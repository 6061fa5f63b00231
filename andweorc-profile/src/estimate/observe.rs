//! Experiments and what they are compared with: their neighbouring baselines.

use crate::estimate::metric::Metric;
use crate::estimate::observation::Observation;
use crate::estimate::scatter::Variance;
use crate::estimate::series::Series;
use crate::estimate::summary::{Identity, PointSummary, TargetSummary};
use crate::estimate::tally::Tally;
use crate::{ExperimentRecord, PointKind, Run, TargetKind};
use std::borrow::Cow;
use std::collections::HashMap;

/// An experiment on a target with what it is compared to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison<'a> {
    /// The experiment; it is not discarded.
    pub experiment: &'a ExperimentRecord,
    /// The nearest kept baselines before and after it: at most two.
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

/// A usable experiment and its nearest baselines, as indices of the run's experiments.
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
    let usable = |(_, experiment): &(usize, &ExperimentRecord)| experiment.discarded.is_none();
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

/// A run's experiments by what they are about, so that a program of ten thousand call sites is read
/// once and not once for each of them.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    tally: Cow<'a, Tally>,
    targets: HashMap<Identity<'a, TargetKind>, u32>,
    /// Ids of the points that are asked for, where the run has them.
    points: Vec<Option<u32>>,
}

impl<'a> Rows<'a> {
    /// Tallies the experiments of `run`, of these points only, with up to `most` observations of a
    /// target at one speedup.
    pub(crate) fn of(run: &'a Run, points: &[PointSummary], most: usize) -> Rows<'a> {
        let ids = point_ids(run, points);
        let tally = Tally::of(run, ids.iter().flatten().copied(), most);
        Rows { tally: Cow::Owned(tally), targets: target_ids(run), points: ids }
    }

    /// Makes rows of experiments that have been tallied. `run` tells what they are about.
    pub(crate) fn tallied(run: &'a Run, tally: &'a Tally, points: &[PointSummary]) -> Rows<'a> {
        let tally = Cow::Borrowed(tally);
        Rows { tally, targets: target_ids(run), points: point_ids(run, points) }
    }

    /// How many there are.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// A metric of the point with this index among those asked for, if the run has the point and it
    /// did anything.
    fn series(&self, point: usize, metric: Metric) -> Option<&Series> {
        self.points.get(point).copied().flatten().and_then(|id| self.tally.series(id, metric))
    }

    /// Whether any experiment has this metric of the point.
    pub(crate) fn has(&self, point: usize, metric: Metric) -> bool {
        self.series(point, metric).is_some_and(|series| !series.is_empty())
    }

    /// How much baselines scatter by this metric of this point.
    pub(crate) fn of_baselines(&self, point: usize, metric: Metric) -> Option<Variance> {
        self.series(point, metric).map(Series::of_baselines)
    }

    /// The sum of this metric of this point over baselines, and over how many.
    pub(crate) fn of_all_baselines(&self, point: usize, metric: Metric) -> (f64, usize) {
        self.series(point, metric).map_or((0.0, 0), Series::of_all_baselines)
    }

    /// All observations of a target by this metric of this point.
    pub(crate) fn observations(
        &self,
        target: &TargetSummary,
        point: usize,
        metric: Metric,
    ) -> impl Iterator<Item = Observation> + '_ {
        self.observations_in(self.series(point, metric), target)
    }

    /// All observations of a target by the CPU time per hit of this point, where it was measured.
    pub(crate) fn cpu_observations(
        &self,
        target: &TargetSummary,
        point: usize,
    ) -> impl Iterator<Item = Observation> + '_ {
        let id = self.points.get(point).copied().flatten();
        self.observations_in(id.and_then(|id| self.tally.cpu(id)), target)
    }

    /// Whether the CPU time of a sampled target goes with time; `None` where that is not known.
    pub(crate) fn fills_time(&self, target: &TargetSummary) -> Option<bool> {
        self.tally.sampled().fills_time(*self.targets.get(&target.identity())?)
    }

    fn observations_in<'b>(
        &self,
        series: Option<&'b Series>,
        target: &TargetSummary,
    ) -> impl Iterator<Item = Observation> + use<'b> {
        let series = series.zip(self.targets.get(&target.identity()).copied());
        series.into_iter().flat_map(|(series, id)| series.observations(id))
    }
}

fn target_ids(run: &Run) -> HashMap<Identity<'_, TargetKind>, u32> {
    let mut ids = HashMap::with_capacity(run.targets.len());
    for record in &run.targets {
        ids.entry(record.identity()).or_insert(record.id);
    }
    ids
}

/// The ids that these points have in the run, of the first record of each.
fn point_ids(run: &Run, points: &[PointSummary]) -> Vec<Option<u32>> {
    let mut wanted: HashMap<Identity<'_, PointKind>, usize> = HashMap::new();
    for (index, point) in points.iter().enumerate() {
        wanted.entry(point.identity()).or_insert(index);
    }
    let mut ids = vec![None; points.len()];
    for record in &run.points {
        if let Some(index) = wanted.remove(&record.identity()) {
            ids[index] = Some(record.id);
        }
    }
    ids
}
