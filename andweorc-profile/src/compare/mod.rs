//! Changes between two versions, A and B, each known from the runs of one or more profiles.
//!
//! - The **outcome** is what the service does when nothing is sped up: the metric of a point in the
//!   baselines. Each kept baseline is an observation, each run a cluster of them (see
//!   `clusters`); the change is the mean of B's runs over that of A's, in logarithms.
//! - The **impact** of a target is the slope of its effect over the speedup (see
//!   [`crate::estimate`]), one slope a run; its change is B's less A's, in points. Its effect on
//!   what targets are ranked by: the throughput, or under an open load the mean latency
//!   ([`RankedBy`]).
//! - Every change has a 95 % interval and a [`State`]. Of the targets only discoveries at a false
//!   discovery rate of 5 % (Benjamini & Hochberg 1995) are called regressed or improved.
//!
//! Rates of different machines, loads or settings are not comparable, and no statistic can tell:
//! what the headers say about it is in [`Comparison::notes`]. Where the load does not wait for the
//! program, the throughput is the load's: that is said beside it ([`OutcomeChange::note`]).

mod clusters;
mod impact;
mod matching;
mod notes;
mod outcome;
mod ranked;
mod same;
mod state;
#[cfg(test)]
mod tests;

pub use impact::{Impact, Place, Presence, TargetChange};
pub use outcome::{OutcomeChange, narrowest};
pub use ranked::RankedBy;
pub use same::SameTargets;
pub use state::State;

use crate::estimate::{Load, Metric, PointSummary, load::load_by};
use crate::{PointRecord, Run};
use serde::Serialize;

/// From which change on one counts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Change of the throughput, %.
    pub throughput: f64,
    /// Change of a 99th percentile, %.
    pub p99: f64,
    /// Change of an impact, points.
    pub impact: f64,
}

impl Default for Limits {
    /// 5 %, 10 % and 10 points.
    fn default() -> Limits {
        Limits { throughput: 5.0, p99: 10.0, impact: 10.0 }
    }
}

/// Result of a comparison of B with A.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The throughput of the most important point, and the p99 of the most important latency point.
    pub outcomes: Vec<OutcomeChange>,
    /// Each target of A or B that was tested in one of them: those that regressed first, then
    /// improved, then the rest, larger changes before smaller ones.
    pub targets: Vec<TargetChange>,
    /// How A and B were loaded, where it was probed.
    pub load: [Option<Load>; 2],
    /// Point and metric that the impacts are on, in A as in B.
    pub ranked_by: RankedBy,
    /// Reasons why A and B are less comparable.
    pub notes: Vec<String>,
}

/// Compares B with A. `None` when they have no point in common, so that there is nothing to
/// compare.
pub fn compare(a: &[Run], b: &[Run], limits: &Limits) -> Option<Comparison> {
    let point = common_point(a, b, |_| true)?;
    let latency = common_point(a, b, |point| point.kind == crate::PointKind::Latency);
    let load = [a, b].map(|side| load_of(side, point));
    let mut outcomes: Vec<OutcomeChange> =
        outcome::throughput(a, b, point, limits.throughput).into_iter().collect();
    outcomes.extend(latency.and_then(|point| outcome::p99(a, b, point, limits.p99)));
    let (ranking_point, metric) = ranked::ranking(a, b, point, latency, load);
    let ranked_by = RankedBy { point: ranking_point.name.clone(), metric };
    for one in outcomes.iter_mut().filter(|one| one.metric == Metric::Throughput) {
        one.note = outcome::kept_up(load, metric);
    }
    Some(Comparison {
        outcomes,
        targets: impact::changes(a, b, (ranking_point, metric), limits.impact),
        load,
        ranked_by,
        notes: notes::notes(a, b),
    })
}

/// The most important point of A that B has too.
fn common_point<'a>(
    a: &'a [Run],
    b: &[Run],
    wanted: impl Fn(&PointRecord) -> bool,
) -> Option<&'a PointRecord> {
    let points = a.iter().flat_map(|run| &run.points).filter(|point| wanted(point));
    points
        .filter(|point| b.iter().any(|run| same_point(run, point).is_some()))
        .min_by_key(|point| point.rank)
}

/// How a side was loaded, by what this point did meanwhile.
fn load_of(side: &[Run], point: &PointRecord) -> Option<Load> {
    let record = side.iter().find_map(|run| same_point(run, point))?;
    load_by(side, &PointSummary::from(record))
}

/// The point of a run that is this point: of the same name, and of the same kind if there is one.
fn same_point<'a>(run: &'a Run, point: &PointRecord) -> Option<&'a PointRecord> {
    let namesakes = || run.points.iter().filter(|one| one.name == point.name);
    namesakes().find(|one| one.kind == point.kind).or_else(|| namesakes().next())
}
