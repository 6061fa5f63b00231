//! Metrics of a point, their values without delays, and the one that targets are ranked by.

use crate::{ExperimentRecord, PointCount};
use serde::Serialize;
use std::fmt;

/// Quantity of a point that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Metric {
    /// Hits per virtual second.
    Throughput,
    /// Mean latency in virtual time.
    Mean,
    /// Median latency in virtual time.
    P50,
    /// 90th percentile of the latency in virtual time.
    P90,
    /// 99th percentile of the latency in virtual time.
    P99,
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 5] =
        [Metric::Throughput, Metric::Mean, Metric::P50, Metric::P90, Metric::P99];

    /// The metric of a point, by its id in the run, in an experiment: per second or in ns. `None`
    /// when the point did nothing, or has no latencies.
    pub fn of(self, experiment: &ExperimentRecord, point: u32) -> Option<f64> {
        let count = experiment.points.iter().find(|count| count.point == point)?;
        self.of_count(experiment, count)
    }

    /// The metric of a point by its `count` in that experiment, as [`of`](Metric::of) has it.
    pub(crate) fn of_count(self, experiment: &ExperimentRecord, count: &PointCount) -> Option<f64> {
        let latency = &count.latency;
        let total: u64 = latency.iter().map(|&(_, n)| n).sum();
        let quantile = |q: f64| {
            let rank = (q * total as f64).ceil().max(1.0) as u64;
            let mut seen = 0;
            latency.iter().find(|&&(_, n)| {
                seen += n;
                seen >= rank
            })
        };
        match self {
            Metric::Throughput => {
                let virtual_ns = experiment.real_ns.checked_sub(experiment.delay_ns)?;
                (virtual_ns > 0).then(|| count.count as f64 * 1e9 / virtual_ns as f64)
            }
            Metric::Mean if total > 0 => {
                Some(latency.iter().map(|&(v, n)| v as f64 * n as f64).sum::<f64>() / total as f64)
            }
            Metric::Mean => None,
            Metric::P50 => quantile(0.5).map(|&(value, _)| value as f64),
            Metric::P90 => quantile(0.9).map(|&(value, _)| value as f64),
            Metric::P99 => quantile(0.99).map(|&(value, _)| value as f64),
        }
    }

    /// Whether less of it is better: true of latencies.
    pub fn less_is_better(self) -> bool {
        self != Metric::Throughput
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metric::Throughput => "throughput",
            Metric::Mean => "mean",
            Metric::P50 => "p50",
            Metric::P90 => "p90",
            Metric::P99 => "p99",
        })
    }
}

/// The metrics of a point in baselines. `None` where no baseline tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Now {
    /// Hits per second.
    pub throughput: Option<f64>,
    /// Mean latency, ns.
    pub mean: Option<f64>,
    /// Median latency, ns.
    pub p50: Option<f64>,
    /// 90th percentile of the latency, ns.
    pub p90: Option<f64>,
    /// 99th percentile of the latency, ns.
    pub p99: Option<f64>,
}

impl Now {
    /// One of the metrics: per second, or in ns.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Throughput => self.throughput,
            Metric::Mean => self.mean,
            Metric::P50 => self.p50,
            Metric::P90 => self.p90,
            Metric::P99 => self.p99,
        }
    }
}

/// Point and metric that targets are ranked and judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Ranking {
    /// Index of the point among those of the analysis.
    pub point_index: usize,
    /// The metric: the throughput, or under a load that is not known to be closed the mean latency.
    pub metric: Metric,
}

impl Ranking {
    /// A ranking by the point of this index, and this metric.
    pub fn new(point_index: usize, metric: Metric) -> Ranking {
        Ranking { point_index, metric }
    }
}

impl Default for Ranking {
    fn default() -> Ranking {
        Ranking { point_index: 0, metric: Metric::Throughput }
    }
}
