//! What the impacts of two sides are on.

use crate::compare::impact;
use crate::estimate::{Load, Metric};
use crate::profile::{PointRecord, Run};
use serde::Serialize;

/// What the impacts are on: the metric of this point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RankedBy {
    /// Name of the point.
    pub point: String,
    /// The throughput, or the mean latency under a load that does not wait, or not all of it.
    pub metric: Metric,
}

/// As [a report ranks](crate::estimate::Ranking): by the throughput of `point`, unless not all of a side's load waits, which bounds its throughput.
/// Then by the mean latency of `latency`, if both sides have it: also of a side that did not keep up, since impacts on different metrics can't be
/// compared.
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
    let does_not_wait = load.iter().any(|load| matches!(load, Some(Load::Open | Load::Mixed)));
    let latency = latency.filter(|_| does_not_wait).filter(measured);
    latency.map_or((point, Metric::Throughput), |latency| (latency, Metric::Mean))
}
