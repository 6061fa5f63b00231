//! The impact of each target, before and after.

use crate::compare::clusters::{self, Cluster, Interval, Spread};
use crate::compare::matching::{Pair, pairs};
use crate::compare::same_point;
use crate::compare::state::{Evidence, Question, State};
use crate::estimate::observe::Rows;
use crate::estimate::{Metric, PointSummary, TargetSummary, seen};
use crate::stats;
use crate::{PointRecord, Run, TargetKind};
use serde::Serialize;

/// Assumed standard deviation between the slopes of two runs of one build, points.
const DRIFT: f64 = 5.0;

/// From this standard deviation of a slope between runs on, or of an effect inside them, a target
/// is erratic, points.
const ERRATIC: f64 = 20.0;

/// False discovery rate of the states.
const FALSE_DISCOVERIES: f64 = 0.05;

/// A target in A, in B or in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TargetChange {
    /// Its kind.
    pub kind: TargetKind,
    /// Its name in B, or in A when it is gone.
    pub name: String,
    /// Where it is known.
    pub presence: Presence,
    /// Where it is in A.
    pub place_a: Option<Place>,
    /// Where it is in B.
    pub place_b: Option<Place>,
    /// Its share of the program's CPU time in A, 0 to 1, where it was measured.
    pub share_a: Option<f64>,
    /// Its share in B.
    pub share_b: Option<f64>,
    /// Its impact in A, on what targets are [ranked by](super::RankedBy); `None` when it was not
    /// tested there.
    pub impact_a: Option<Impact>,
    /// Its impact in B.
    pub impact_b: Option<Impact>,
    /// Change of the impact, points; `None` unless it was tested in both.
    pub change: Option<f64>,
    /// Lower end of its 95 % interval, points.
    pub ci_low: Option<f64>,
    /// Upper end of its 95 % interval, points.
    pub ci_high: Option<f64>,
    /// Judgement of the change: regressed when the target, made faster, would bring more than
    /// before (a higher throughput, or a lower latency), since it then holds the service back more.
    /// `None` for a target that is new or gone.
    pub state: Option<State>,
}

/// Where a target is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Presence {
    /// In both.
    Both,
    /// In both, in different files.
    Moved,
    /// In B only.
    New,
    /// In A only.
    Gone,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, where known.
    pub line: Option<u32>,
}

/// An impact: change in % for a speedup of 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Impact {
    /// The slope.
    pub slope: f64,
    /// Lower end of its 95 % interval; `None` with one experiment.
    pub ci_low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub ci_high: Option<f64>,
    /// Number of experiments.
    pub n: usize,
}

/// All targets that were tested in one of the two, in the order of [`super::Comparison::targets`].
pub(crate) fn changes(
    a: &[Run],
    b: &[Run],
    (point, metric): (&PointRecord, Metric),
    limit: f64,
) -> Vec<TargetChange> {
    let (targets_a, targets_b) = (parts(a), parts(b));
    let (rows_a, rows_b) = (rows(a, point), rows(b, point));
    let mut found: Vec<(TargetChange, Option<Found>)> = pairs(&targets_a, &targets_b)
        .into_iter()
        .filter_map(|pair| {
            let of_a = pair.a.map(|i| (&targets_a[i], Side::of(&rows_a, metric, &targets_a[i])));
            let of_b = pair.b.map(|i| (&targets_b[i], Side::of(&rows_b, metric, &targets_b[i])));
            change(pair, of_a, of_b)
        })
        .collect();
    let p_values: Vec<f64> =
        found.iter().filter_map(|(_, found)| Some(found.as_ref()?.interval.p_value)).collect();
    let mut discovered = stats::discoveries(&p_values, FALSE_DISCOVERIES).into_iter();
    // What brings more when it is faster is worse: of a latency that is the lower slope.
    let question = Question { limit, more_is_worse: !metric.less_is_better(), erratic: ERRATIC };
    for (target, found) in &mut found {
        let Some(found) = found else { continue };
        let (low, high) = found.interval.ends(|points| points);
        (target.ci_low, target.ci_high) = (Some(low), Some(high));
        let evidence = Evidence {
            scatter: found.scatter,
            single_run: found.single_run,
            discovered: discovered.next().expect("one for each"),
        };
        target.state = Some(question.answer(found.interval.value, low, high, evidence));
    }
    let mut all: Vec<TargetChange> = found.into_iter().map(|(target, _)| target).collect();
    all.sort_by(|one, other| order(one).cmp(&order(other)).then(size(other).total_cmp(&size(one))));
    all
}

/// The targets that are parts of the program: probes are not.
pub(super) fn parts(runs: &[Run]) -> Vec<TargetSummary> {
    let mut targets = seen::targets(runs);
    targets.retain(|target| target.kind != TargetKind::Probe);
    targets
}

/// The difference of an impact, and how far it can be trusted.
struct Found {
    interval: Interval,
    scatter: f64,
    single_run: bool,
}

type Known<'a> = Option<(&'a TargetSummary, Side)>;

/// `None` when it was tested in neither.
fn change(pair: Pair, a: Known<'_>, b: Known<'_>) -> Option<(TargetChange, Option<Found>)> {
    let none = Side::default();
    let side_a = a.as_ref().map_or(&none, |(_, side)| side);
    let side_b = b.as_ref().map_or(&none, |(_, side)| side);
    if side_a.data.is_empty() && side_b.data.is_empty() {
        return None;
    }
    let (runs_a, runs_b, scatter) = clusters_of(side_a, side_b);
    let spread = Spread::of(&runs_a, &runs_b, DRIFT);
    let found = spread.and_then(|spread| {
        Some(Found {
            interval: spread.difference(&runs_a, &runs_b)?,
            scatter,
            single_run: runs_a.len().min(runs_b.len()) == 1,
        })
    });
    let impact = |runs: &[Cluster], side: &Side| {
        let interval = spread.and_then(|spread| spread.mean(runs)).map(|it| it.ends(|x| x));
        (!runs.is_empty()).then(|| Impact {
            slope: clusters::mean(runs),
            ci_low: interval.map(|(low, _)| low),
            ci_high: interval.map(|(_, high)| high),
            n: side.data.iter().map(Vec::len).sum(),
        })
    };
    let (impact_a, impact_b) = (impact(&runs_a, side_a), impact(&runs_b, side_b));
    let either = b.as_ref().or(a.as_ref()).map(|(target, _)| *target)?;
    let of = |side: &Known<'_>| side.as_ref().map(|(target, _)| *target).cloned();
    let (target_a, target_b) = (of(&a), of(&b));
    let presence = match (pair.a, pair.b) {
        (Some(_), None) => Presence::Gone,
        (None, _) => Presence::New,
        (Some(_), Some(_)) if pair.moved => Presence::Moved,
        (Some(_), Some(_)) => Presence::Both,
    };
    let in_both = matches!(presence, Presence::Both | Presence::Moved);
    let change = TargetChange {
        kind: either.kind,
        name: either.name.clone(),
        presence,
        place_a: target_a.as_ref().and_then(place),
        place_b: target_b.as_ref().and_then(place),
        share_a: target_a.and_then(|target| target.share),
        share_b: target_b.and_then(|target| target.share),
        impact_a,
        impact_b,
        change: impact_a.zip(impact_b).map(|(a, b)| b.slope - a.slope),
        ci_low: None,
        ci_high: None,
        state: in_both.then_some(State::Inconclusive),
    };
    Some((change, found))
}

fn place(target: &TargetSummary) -> Option<Place> {
    target.file.clone().map(|file| Place { file, line: target.line })
}

/// Speedups and effects of a target, a run at a time; runs without any are left out.
#[derive(Default)]
struct Side {
    data: Vec<Vec<(f64, f64)>>,
}

/// The rows of each run that has the point: all of them, since the variance is pooled over runs.
fn rows<'a>(runs: &'a [Run], point: &PointRecord) -> Vec<Rows<'a>> {
    let of = |run| {
        let point = PointSummary::from(same_point(run, point)?);
        Some(Rows::of(run, &[point], usize::MAX))
    };
    runs.iter().filter_map(of).collect()
}

/// Whether any run has this metric of the point.
pub(crate) fn measured(runs: &[Run], point: &PointRecord, metric: Metric) -> bool {
    rows(runs, point).iter().any(|rows| rows.has(0, metric))
}

impl Side {
    fn of(runs: &[Rows<'_>], metric: Metric, target: &TargetSummary) -> Side {
        let data = runs.iter().filter_map(|rows| {
            // A slope through the origin needs a speedup, and a profile can be written by anyone.
            let usable = |(speedup, effect): &(f64, f64)| {
                *speedup > 0.0 && *speedup <= 1.0 && effect.is_finite()
            };
            let found = rows.observations(target, 0, metric);
            let data: Vec<_> = found.map(|one| one.datum()).filter(usable).collect();
            (!data.is_empty()).then_some(data)
        });
        Side { data: data.collect() }
    }
}

/// The slopes of both sides' runs, with the scatter of what they come from.
///
/// A run tests a target a few times only, so the variance of an effect is pooled over all runs.
fn clusters_of(a: &Side, b: &Side) -> (Vec<Cluster>, Vec<Cluster>, f64) {
    let (mut squares, mut df) = (0.0, 0.0);
    for data in a.data.iter().chain(&b.data) {
        let slope = stats::slope_through_origin(data);
        squares += data.iter().map(|(x, y)| (y - slope * x).powi(2)).sum::<f64>();
        df += data.len() as f64 - 1.0;
    }
    let variance = (df > 0.0).then(|| squares / df);
    let clusters = |side: &Side| -> Vec<Cluster> {
        let of = |data: &Vec<(f64, f64)>| Cluster {
            value: stats::slope_through_origin(data),
            variance: variance
                .map(|variance| variance / data.iter().map(|(x, _)| x * x).sum::<f64>()),
        };
        side.data.iter().map(of).collect()
    };
    let (of_a, of_b) = (clusters(a), clusters(b));
    let scatter =
        variance.unwrap_or(0.0).sqrt().max(clusters::between(&of_a)).max(clusters::between(&of_b));
    (of_a, of_b, scatter)
}

/// Regressed first, what is gone last.
fn order(target: &TargetChange) -> u8 {
    match (target.presence, target.state) {
        (Presence::New, _) => 2,
        (Presence::Gone, _) => 6,
        (_, Some(State::Regressed)) => 0,
        (_, Some(State::Improved)) => 1,
        (_, Some(State::Erratic { .. })) => 3,
        (_, Some(State::Inconclusive) | None) => 4,
        (_, Some(State::Unchanged { .. })) => 5,
    }
}

fn size(target: &TargetChange) -> f64 {
    let either = target.impact_b.or(target.impact_a).map(|impact| impact.slope);
    target.change.or(either).map_or(0.0, f64::abs)
}
