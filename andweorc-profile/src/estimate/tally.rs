//! The part of a run's experiments that the estimates need, in memory that does not grow with their
//! number.
//!
//! Experiments come in their order, and are forgotten when they have been compared with their
//! neighbouring baselines: what is kept is an observation of each metric of each point that is
//! asked for. Of a target at one speedup there are at most so many observations ([`MOST`]): before
//! there are more, each two neighbours become one of twice the experiments. All experiments weigh
//! alike, so that effects and slopes are as they would be; intervals are by how much what is left
//! scatters, and as wide but for the luck of the draw.

use crate::estimate::fills::Sampled;
use crate::estimate::metric::Metric;
use crate::estimate::series::Series;
use crate::{ExperimentRecord, Run};
use std::collections::{HashMap, HashSet};

/// Observations of a target at one speedup.
pub(crate) const MOST: usize = 64;

/// A run's experiments.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    most: usize,
    /// Ids of the points that are asked for.
    points: HashSet<u32>,
    /// Of those that did anything, by all metrics.
    series: HashMap<u32, [Series; Metric::ALL.len()]>,
    /// CPU time per hit of each, where it was measured.
    cpu: HashMap<u32, Series>,
    sampled: Sampled,
    /// Experiments by target.
    held: HashMap<u32, usize>,
    baselines: usize,
    /// CPU time and real time of the baselines in which the former was measured, ns.
    used: [u64; 2],
    discarded: usize,
}

impl Tally {
    /// Of no experiment yet; with up to `most` observations of a target at one speedup.
    pub(crate) fn new(most: usize) -> Tally {
        Tally {
            most,
            points: HashSet::new(),
            series: HashMap::new(),
            cpu: HashMap::new(),
            sampled: Sampled::default(),
            held: HashMap::new(),
            baselines: 0,
            used: [0; 2],
            discarded: 0,
        }
    }

    /// Of all experiments of a run, and these points.
    pub(crate) fn of(run: &Run, points: impl IntoIterator<Item = u32>, most: usize) -> Tally {
        let mut tally = Tally::new(most);
        tally.points.extend(points);
        run.experiments.iter().for_each(|experiment| tally.push(experiment));
        tally
    }

    /// Asks for a point, which no experiment has had yet.
    pub(crate) fn ask_for(&mut self, point: u32) {
        self.points.insert(point);
    }

    /// How many points are asked for.
    pub(crate) fn asked_for(&self) -> usize {
        self.points.len()
    }

    /// The next experiment.
    pub(crate) fn push(&mut self, experiment: &ExperimentRecord) {
        match experiment.target {
            Some(target) => *self.held.entry(target).or_default() += 1,
            None => {
                self.baselines += 1;
                let cpu_ns = experiment.cpu_ns.filter(|_| experiment.discarded.is_none());
                if let Some(cpu_ns) = cpu_ns {
                    self.used[0] += cpu_ns;
                    self.used[1] += experiment.real_ns;
                }
            }
        }
        self.discarded += usize::from(experiment.discarded.is_some());
        let mut did = HashMap::new();
        for count in experiment.points.iter().filter(|it| self.points.contains(&it.point)) {
            // Only the first of a point counts.
            did.entry(count.point).or_insert(count);
            self.series.entry(count.point).or_default();
        }
        for (point, series) in &mut self.series {
            let count = did.get(point);
            for (series, metric) in series.iter_mut().zip(Metric::ALL) {
                let value = count.and_then(|count| metric.of_count(experiment, count));
                series.push(experiment, value, self.most);
            }
            if let Some(cpu_ns) = experiment.cpu_ns {
                let of_each = count.map(|count| cpu_ns as f64 / count.count as f64);
                self.cpu.entry(*point).or_default().push(experiment, of_each, self.most);
            }
        }
        self.sampled.push(experiment, &did, self.most);
    }

    /// The CPU time of sampled targets in their own experiments.
    pub(crate) fn sampled(&self) -> &Sampled {
        &self.sampled
    }

    /// CPU time per hit of the point with this id, if it did anything and that was measured.
    pub(crate) fn cpu(&self, point: u32) -> Option<&Series> {
        self.cpu.get(&point)
    }

    /// A metric of the point with this id, if it did anything.
    pub(crate) fn series(&self, point: u32, metric: Metric) -> Option<&Series> {
        let at = Metric::ALL.iter().position(|it| *it == metric)?;
        self.series.get(&point).map(|series| &series[at])
    }

    /// Experiments on each target that was tested, by its id.
    pub(crate) fn held(&self) -> &HashMap<u32, usize> {
        &self.held
    }

    /// Baselines held.
    pub(crate) fn baselines(&self) -> usize {
        self.baselines
    }

    /// How many processors the program used in baselines; `None` where that was not measured.
    pub(crate) fn cores_used(&self) -> Option<f64> {
        let [cpu_ns, real_ns] = self.used;
        (real_ns > 0).then(|| cpu_ns as f64 / real_ns as f64)
    }

    /// Experiments and baselines that were discarded.
    pub(crate) fn discarded_ones(&self) -> usize {
        self.discarded
    }

    /// Experiments and baselines.
    pub(crate) fn all(&self) -> usize {
        self.held.values().sum::<usize>() + self.baselines
    }
}
