//! Queues that grow, since more comes than is done.

use super::{Advice, Pattern, called, change};
use crate::estimate::{Analysis, Effect, Metric, PointSummary, Ranking, TargetSummary};
use crate::report::words::{digits, time};
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
struct Level {
    at_ns: f64,
    per_second: f64,
    latency_ns: f64,
}

impl Level {
    /// How many are open at a time, by Little's law.
    fn open(&self) -> f64 {
        self.per_second * self.latency_ns / 1e9
    }
}

/// A target brings throughput if one as good by chance is rarer than this among those tested.
const BY_CHANCE: f64 = 0.05;

/// A point of which ever more is open in the baselines of each run.
struct Growth<'a> {
    point: &'a PointSummary,
    /// Its index in the analysis.
    index: usize,
    /// In the first and in the last third of the baselines of the last run.
    from: Level,
    to: Level,
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

/// The first point of which ever more is open in the baselines of all runs.
fn growing_point<'a>(runs: &[Run], analysis: &'a Analysis) -> Option<Growth<'a>> {
    let all = analysis.points.iter().enumerate();
    let points = all.filter(|(_, point)| point.kind == PointKind::Latency);
    let of_all = |(index, point)| {
        let all: Option<Vec<_>> = runs.iter().map(|run| growth(&levels(run, point))).collect();
        let (from, to) = all?.pop()?;
        Some(Growth { point, index, from, to })
    };
    points.filter_map(of_all).next()
}

/// The target that surely brings the most throughput at a point. Where a queue grows the program is
/// what holds it up, whatever the probes say of the load; and latency tells of what was before.
fn keeps_up(analysis: &Analysis, point: usize) -> Option<(&TargetSummary, &Effect)> {
    let tested = analysis.targets.len() as f64;
    let by = Ranking::new(point, Metric::Throughput);
    let effects = analysis.targets.iter().filter_map(|it| Some((it, it.effect_on(by)?)));
    let low = |effect: &Effect| effect.ci_low.unwrap_or(f64::NEG_INFINITY);
    effects
        .filter(|(_, effect)| low(effect) > 0.0 && effect.p_value * tested <= BY_CHANCE)
        .max_by(|(_, a), (_, b)| low(a).total_cmp(&low(b)))
}

/// A queue that grows, and the target that would let the program keep up. Where none is known to,
/// and targets are ranked by latency, the verdicts on them are wrong.
pub(super) fn growing(runs: &[Run], analysis: &Analysis) -> Option<Advice> {
    let Growth { point, index, from, to } = growing_point(runs, analysis)?;
    let experiments = match keeps_up(analysis, index) {
        Some((target, effect)) => format!(
            "{:.0} % faster `{}` brings {}: make it faster, or let several tasks do it.",
            100.0 * effect.speedup,
            called(target),
            change(effect),
        ),
        None if analysis.ranked_by.metric.less_is_better() => {
            "Targets are ranked by latency, which tells how long the queue was before and not what \
             an experiment changed: do not rely on these verdicts."
                .to_owned()
        }
        None => return None,
    };
    let text = format!(
        "Ever more of it is open, {} at first and {} at last, and its latency has risen from {} to \
         {}, while {} a second end: more comes than is done, and a queue takes it all. {experiments} \
         Bound the queue, so that who sends waits before memory ends.",
        digits(from.open()),
        digits(to.open()),
        time(from.latency_ns),
        time(to.latency_ns),
        digits(to.per_second),
    );
    let target = format!("point:{}", point.name);
    Some(Advice { pattern: Pattern::UnboundedBacklog, target, text })
}
