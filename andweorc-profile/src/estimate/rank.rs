//! Point and metric that targets are ranked and judged by.
//!
//! The throughput of the first point, if its load waits for it. A program that keeps up with a load
//! that comes at its own pace does all of it however fast it is, so that its throughput can't rise;
//! and where some clients wait and others do not, or the load is not known, nobody can say what the
//! throughput of an experiment means. The latency means the same under any load, and is ranked by
//! where a latency point is.
//!
//! It is the **mean** latency. Of all latency metrics its interval is the narrowest, so that a run
//! of the same length settles more targets: every unit of work counts in it, in the p99 of an
//! experiment a hundredth of them. It adds up (what a target takes off each unit is taken off the
//! mean, while a quantile may be another unit's afterwards), and it does not step from value to
//! value of a histogram. What p50 and p99 would do is told beside it.

use crate::PointKind;
use crate::estimate::load::Load;
use crate::estimate::metric::{Metric, Ranking};
use crate::estimate::observe::Rows;
use crate::estimate::summary::PointSummary;

/// The first point with latencies, where targets can be ranked by one.
pub(crate) fn latency_point(points: &[PointSummary]) -> Option<usize> {
    points.iter().position(|point| point.kind == PointKind::Latency)
}

/// Chooses what to rank by under this load. `growing` is the point of which ever more is open:
/// its latency tells how long the queue was before, and its throughput what the program can do.
/// `rows` know the points by the same indices.
pub(crate) fn ranking(
    load: Option<Load>,
    growing: Option<usize>,
    points: &[PointSummary],
    rows: &[Rows<'_>],
) -> Ranking {
    if let Some(point_index) = growing {
        return Ranking { point_index, metric: Metric::Throughput };
    }
    let measured = |index: &usize| rows.iter().any(|run| run.has(*index, Metric::Mean));
    let latency = match load {
        Some(Load::Closed) => None,
        Some(Load::Open) => latency_point(points),
        // A part of the work has its own latency, of which it is all: only that of the first point
        // is that of the whole.
        Some(Load::Mixed) | None => latency_point(points).filter(|index| *index == 0),
    }
    .filter(measured);
    latency
        .map_or_else(Ranking::default, |point_index| Ranking { point_index, metric: Metric::Mean })
}
