//! Point and metric that the impacts of two sides are on.

use crate::compare::impact;
use crate::estimate::{Load, Metric};
use crate::{PointRecord, Run};
use serde::Serialize;

/// Point and metric that the impacts are on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RankedBy {
    /// Name of the point.
    pub point: String,
    /// The throughput, or the mean latency under a load that does not wait, or not all of it.
    pub metric: Metric,
}

/// Returns the point and metric to rank by, as [a report ranks](crate::estimate::Ranking): the
/// throughput of `point`, unless not all of a side's load waits, which bounds its throughput. Then
/// it is the mean latency of `latency`, if both sides have it: also for a side that did not keep
/// up, since impacts on different metrics can't be compared.
pub(crate) fn ranking<'a>(
    a: &[Run],
    b: &[Run],
    point: &'a PointRecord,
    latency: Option<&'a PointRecord>,
    load: [Option<Load>; 2],
) -> (&'a PointRecord, Metric) {
    let measured = |point: &&PointRecord| {
        [a, b].iter().all(|side| impact::measured(side, point, Metric::Mean))
    };
    let (open, mixed) = (load.contains(&Some(Load::Open)), load.contains(&Some(Load::Mixed)));
    // A part of the work has its own latency, of which it is all: only that of the first point is
    // that of the whole.
    let is_whole = |latency: &&PointRecord| latency.identity() == point.identity();
    let latency = latency.filter(|it| open || (mixed && is_whole(it))).filter(measured);
    latency.map_or((point, Metric::Throughput), |latency| (latency, Metric::Mean))
}
