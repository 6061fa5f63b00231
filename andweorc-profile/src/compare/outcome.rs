//! The outcome: what the service does in the baselines.

use crate::compare::clusters::{self, Cluster, Spread};
use crate::compare::same_point;
use crate::compare::state::{Evidence, Question, State};
use crate::estimate::{Load, Metric, percent};
use crate::{ExperimentRecord, PointRecord, Run};
use serde::Serialize;

/// Assumed standard deviation between runs of one build, in logarithms (0.02 is about 2 %), and the
/// standard deviation from which on a side is erratic. The tail of a latency drifts more than a
/// rate.
const THROUGHPUT: (f64, f64) = (0.02, 0.15);
const P99: (f64, f64) = (0.05, 0.50);

/// The change of a metric of a point in the baselines.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OutcomeChange {
    /// Name of the point.
    pub point: String,
    /// The metric.
    pub metric: Metric,
    /// Its value in A: per second, or ns.
    pub a: f64,
    /// Its value in B.
    pub b: f64,
    /// The change in %.
    pub change_pct: f64,
    /// Lower end of its 95 % interval, %; `None` when no run has two baselines.
    pub ci_low: Option<f64>,
    /// Upper end of its 95 % interval, %.
    pub ci_high: Option<f64>,
    /// Judgement of the change.
    pub state: State,
    /// The limit that the state was found with, %.
    pub limit_pct: f64,
    /// Runs of A and of B with a baseline in which the point was hit.
    pub runs: [usize; 2],
    /// Their baselines.
    pub baselines: [usize; 2],
    /// Why it does not say what the program is able to, if it does not.
    pub note: Option<String>,
}

/// The change of the throughput; `None` when one side has no baseline to measure it in.
pub(crate) fn throughput(
    a: &[Run],
    b: &[Run],
    point: &PointRecord,
    limit: f64,
) -> Option<OutcomeChange> {
    change(a, b, point, Metric::Throughput, limit, THROUGHPUT)
}

/// Half the width of the narrowest 95 % interval, %, that a change of the metric can have with so
/// many runs of A and of B, if these agree as well as they can: with few of them the assumed drift
/// between runs is most of what is known. Infinite without a run on a side.
pub fn narrowest(metric: Metric, runs: [usize; 2]) -> f64 {
    let (drift, _) = if metric == Metric::Throughput { THROUGHPUT } else { P99 };
    let [a, b] = runs.map(|runs| vec![Cluster { value: 0.0, variance: Some(0.0) }; runs]);
    let difference = Spread::of(&a, &b, drift).and_then(|spread| spread.difference(&a, &b));
    difference.map_or(f64::INFINITY, |difference| percent(difference.half))
}

/// Returns the note on the throughput of sides that did all that was asked of them. `ranked_by` is
/// the metric that the impacts are on.
pub(crate) fn kept_up(load: [Option<Load>; 2], ranked_by: Metric) -> Option<String> {
    let sides = match load.map(|load| load == Some(Load::Open)) {
        [true, true] => "A and B",
        [true, false] => "A",
        [false, true] => "B",
        [false, false] => return None,
    };
    let bounded = if ranked_by == Metric::Throughput {
        "throughput and impacts are"
    } else {
        "the throughput is"
    };
    Some(format!(
        "{sides} kept up with a load that comes at its own pace: {bounded} bounded by the load, not by the program; read the latency, \
         or put a load on it that waits for answers"
    ))
}

/// The change of the 99th percentile of a latency.
pub(crate) fn p99(a: &[Run], b: &[Run], point: &PointRecord, limit: f64) -> Option<OutcomeChange> {
    change(a, b, point, Metric::P99, limit, P99)
}

fn change(
    a: &[Run],
    b: &[Run],
    point: &PointRecord,
    metric: Metric,
    limit: f64,
    (drift, erratic): (f64, f64),
) -> Option<OutcomeChange> {
    let (a, b) = (Side::of(a, point, metric)?, Side::of(b, point, metric)?);
    let interval = Spread::of(&a.runs, &b.runs, drift)
        .and_then(|spread| spread.difference(&a.runs, &b.runs))
        .map(|interval| interval.ends(percent));
    let change_pct = percent(b.log() - a.log());
    let question =
        Question { limit, more_is_worse: metric != Metric::Throughput, erratic: erratic * 100.0 };
    let evidence = Evidence {
        scatter: percent(a.scatter().max(b.scatter())),
        single_run: a.runs.len().min(b.runs.len()) == 1,
        discovered: true,
    };
    Some(OutcomeChange {
        point: point.name.clone(),
        metric,
        a: a.log().exp(),
        b: b.log().exp(),
        change_pct,
        ci_low: interval.map(|(low, _)| low),
        ci_high: interval.map(|(_, high)| high),
        state: interval.map_or(State::Inconclusive, |(low, high)| {
            question.answer(change_pct, low, high, evidence)
        }),
        limit_pct: limit,
        runs: [a.runs.len(), b.runs.len()],
        baselines: [a.residuals.len(), b.residuals.len()],
        note: None,
    })
}

/// The logarithm of a metric in a baseline. Where nothing was done at all the throughput counts as
/// that of half a hit: a service that stalls now and then must not look like one that doesn't.
fn log_value(baseline: &ExperimentRecord, point: u32, metric: Metric) -> Option<f64> {
    let value = metric.of(baseline, point).filter(|value| *value > 0.0);
    let stalled = || (metric == Metric::Throughput).then(|| 0.5e9 / baseline.real_ns as f64);
    value.or_else(stalled).filter(|value| value.is_finite()).map(f64::ln)
}

/// One side's baselines, in logarithms.
struct Side {
    runs: Vec<Cluster>,
    /// Each baseline's distance from the value of its run.
    residuals: Vec<f64>,
}

impl Side {
    fn of(runs: &[Run], point: &PointRecord, metric: Metric) -> Option<Side> {
        let mut side = Side { runs: Vec::new(), residuals: Vec::new() };
        for run in runs {
            let Some(point) = same_point(run, point) else { continue };
            let baselines = run
                .experiments
                .iter()
                .filter(|one| one.target.is_none() && one.discarded.is_none());
            let logs: Vec<f64> =
                baselines.filter_map(|baseline| log_value(baseline, point.id, metric)).collect();
            if let Some(cluster) = Cluster::of(&logs) {
                side.runs.push(cluster);
                side.residuals.extend(logs.iter().map(|log| log - cluster.value));
            }
        }
        (!side.runs.is_empty()).then_some(side)
    }

    fn log(&self) -> f64 {
        clusters::mean(&self.runs)
    }

    /// Standard deviation inside its runs or between them, whichever is larger.
    fn scatter(&self) -> f64 {
        clusters::scatter(&self.residuals).max(clusters::between(&self.runs))
    }
}
