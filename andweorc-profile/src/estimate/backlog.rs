//! Queues that grow, since more comes than is done.
//!
//! Of what goes in and does not come out again ever more is open. So a point of which ever more is
//! open has a program that cannot keep up with its load: it has more to do than it can, whatever
//! the load waits for.

use super::{Metric, PointSummary};
use crate::stats::mean;
use crate::{PointKind, Run};

/// Fewer baselines do not tell a trend.
const LEAST_BASELINES: usize = 9;

/// By so much more is open in each third of the baselines than in the one before.
const RISE: f64 = 1.3;

/// Part of the baselines that have a higher latency than the one before. Some have a lower one: an
/// experiment before them has made the program faster, in virtual time. What is open goes up and
/// down with the throughput of each.
const RISING: f64 = 0.7;

/// Growth is more than chance from here on, as a multiple of how far the sum of as many random
/// arrivals and ends goes (a standard deviation). A queue that is just kept up with wanders so far.
const SURE: f64 = 4.0;

/// Throughput and latency of a point in one baseline, or on average in some.
pub(crate) struct Level {
    at_ns: f64,
    pub(crate) per_second: f64,
    pub(crate) latency_ns: f64,
}

impl Level {
    /// How many are open at a time, by Little's law.
    pub(crate) fn open(&self) -> f64 {
        self.per_second * self.latency_ns / 1e9
    }
}

/// A point of which ever more is open in the baselines of each run.
pub(crate) struct Growth<'a> {
    pub(crate) point: &'a PointSummary,
    /// Its index among the points.
    pub(crate) index: usize,
    /// In the first and in the last third of the baselines of the last run.
    pub(crate) from: Level,
    pub(crate) to: Level,
}

/// The levels of a point in the baselines of a run, in their order.
fn levels(run: &Run, point: &PointSummary) -> Vec<Level> {
    let Some(record) = run.points.iter().find(|record| point.is(record)) else { return Vec::new() };
    let baselines =
        run.experiments.iter().filter(|one| one.target.is_none() && one.discarded.is_none());
    baselines
        .filter_map(|one| {
            Some(Level {
                at_ns: one.start_ns as f64,
                per_second: Metric::Throughput.of(one, record.id)?,
                latency_ns: Metric::Mean.of(one, record.id)?,
            })
        })
        .collect()
}

/// The mean of some levels.
fn mean_of(levels: &[Level]) -> Level {
    let of = |part: fn(&Level) -> f64| mean(&levels.iter().map(part).collect::<Vec<_>>());
    Level {
        at_ns: of(|level| level.at_ns),
        per_second: of(|level| level.per_second),
        latency_ns: of(|level| level.latency_ns),
    }
}

/// The first and the last third, if ever more is open.
fn growth(levels: &[Level]) -> Option<(Level, Level)> {
    if levels.len() < LEAST_BASELINES {
        return None;
    }
    let third = levels.len() / 3;
    let [first, middle, last] =
        [&levels[..third], &levels[third..2 * third], &levels[levels.len() - third..]].map(mean_of);
    let steps = levels.windows(2);
    let rising = steps.clone().filter(|pair| pair[1].latency_ns > pair[0].latency_ns).count();
    let seconds = (last.at_ns - first.at_ns) / 1e9;
    let chance = (2.0 * last.per_second * seconds.max(0.0)).sqrt();
    let grows = middle.open() >= RISE * first.open()
        && last.open() >= RISE * middle.open()
        && rising as f64 >= RISING * steps.len() as f64
        && last.open() - first.open() > SURE * chance;
    grows.then_some((first, last))
}

/// The first of these points of which ever more is open in the baselines of all runs.
pub(crate) fn growing_point<'a>(runs: &[Run], points: &'a [PointSummary]) -> Option<Growth<'a>> {
    let points = points.iter().enumerate().filter(|(_, point)| point.kind == PointKind::Latency);
    let of_all = |(index, point)| {
        let all: Option<Vec<_>> = runs.iter().map(|run| growth(&levels(run, point))).collect();
        let (from, to) = all?.pop()?;
        Some(Growth { point, index, from, to })
    };
    points.filter_map(of_all).next()
}
