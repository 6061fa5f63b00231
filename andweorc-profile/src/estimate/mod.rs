//! Estimates: from raw rows to effects, impacts, verdicts and a ranking.
//!
//! Everything is computed from the rows of a profile, so that an estimate can be repeated and
//! checked. The running program does the same as the rows come, and keeps none (`ongoing`).
//!
//! - An **effect** compares an experiment with the mean of its neighbouring baselines, the nearest
//!   kept ones before and after it, so that drift cancels; it is the mean over the experiments
//!   of one (target, speedup) of the logarithm of that ratio, in %. The logarithm makes +x and -x
//!   symmetric. Every metric is taken an experiment at a time, latencies from its histogram in
//!   virtual time, so that both sides of a comparison come from samples of one size and share the
//!   bias of a small one.
//! - An **impact** is the slope of the effect over the speedup: the regression through the origin
//!   of all experiments on a target, which weights each speedup by its experiments. In % for a
//!   speedup of 1: a slope of 40 means +10 % at 25 %.
//! - **Intervals** are 95 %, and Student's, with the variance of one experiment that all targets
//!   and the baselines tell together (`scatter`), so that two experiments are enough for one. Of
//!   very many experiments some are taken together first (`tally`), so that a run may go on for
//!   days.
//! - **Several runs** are as many values, of which each has its own error, and which differ by
//!   something more: random effects (`runs`).
//! - **Verdicts** follow from the interval of the effect at the largest speedup that was tested,
//!   which reports print beside them ([`Verdict`]). Of many targets, which of them have an effect
//!   at all is decided by Benjamini & Hochberg (1995) at 5 %.
//! - **Ranking** is by the lower end of that interval, on the throughput of the first point if its
//!   load is known to be closed; under any other load throughput does not tell, and the mean
//!   latency is ranked by where there is one (`rank`).
//!
//! All of it takes time in proportion to the rows, not to targets times rows, and that of a running
//! program no more after days than after an hour: it is done anew after each experiment.

mod allocation_lines;
pub(crate) mod allocations;
pub(crate) mod backlog;
mod edges;
mod effects;
pub(crate) mod events;
mod fills;
mod forecast;
mod joint;
mod judge;
pub(crate) mod load;
mod metric;
mod now;
mod observation;
pub(crate) mod observe;
mod ongoing;
mod polls;
mod rank;
mod runs;
mod scatter;
pub(crate) mod seen;
mod series;
mod shortage;
pub(crate) mod summary;
pub(crate) mod tally;
mod verdict;
mod waits;

pub use allocation_lines::{AllocationLine, ThreadPart};
pub use allocations::AllocationSummary;
pub use edges::{Edge, EdgeSite, Party};
pub use events::{EventRate, EventSummary, TargetEvent, TargetEventSummary};
pub use joint::{
    Discarded, JointSummary, LatencySplit, ServicePart, ServiceSummary, Split, TimeParts,
};
pub use load::{Load, Probes};
pub use metric::{Metric, Now, Ranking};
pub use observe::{Comparison, comparisons};
pub use ongoing::Ongoing;
pub use polls::{Lengths, LongPollAt, LongPollSummary, LongPolls, PollSummary};
pub use summary::{Effect, Impact, PointSummary, TargetSummary};
pub use verdict::Verdict;
pub use waits::WaitSummary;

use crate::stats;
use crate::{Run, TargetKind};
use judge::{rank_key, verdict_of};
use observation::Observation;
use observe::Rows;
use scatter::Scatter;
use tally::MOST;

/// Results of the analysis of some runs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Analysis {
    /// The points, the one ranked by first.
    pub points: Vec<PointSummary>,
    /// The targets that were experimented on, in the order of the ranking.
    pub targets: Vec<TargetSummary>,
    /// Waits of tasks and spans, the longest in all first.
    pub waits: Vec<WaitSummary>,
    /// Polls by kind of task, the most time first; empty in older profiles.
    pub polls: Vec<PollSummary>,
    /// Long polls; `None` where nobody looked for any.
    pub long_polls: Option<LongPolls>,
    /// Edges from each waiter to its waker, the longest first; empty where wall time was not
    /// recorded.
    pub edges: Vec<Edge>,
    /// Allocations by target, the most bytes first; empty where the program's allocator does not
    /// count them.
    pub allocations: Vec<AllocationSummary>,
    /// Lines that allocate, by samples, the most bytes first; empty where none were taken.
    pub allocation_lines: Vec<AllocationLine>,
    /// Events of the processor by target; `None` where none were counted.
    pub events: Option<EventSummary>,
    /// How the program is loaded, where that is known.
    pub load: Option<Load>,
    /// The outcome of the probes of the load, where there were any.
    pub probes: Option<Probes>,
    /// Point and metric that the targets are ranked and judged by, which follow from the load.
    pub ranked_by: Ranking,
    /// Experiments held on targets, without baselines and probes.
    pub experiments: usize,
    /// Baselines held.
    pub baselines: usize,
    /// Stretches held: experiments, baselines and probes.
    pub stretches: usize,
    /// Stretches left out because they were discarded.
    pub discarded: usize,
    /// How many processors the program used before the first experiment; `None` where that was not
    /// measured.
    pub cores_used: Option<f64>,
    /// How many other processes used meanwhile, of those that the program may use.
    pub cores_used_by_others: Option<f64>,
    /// How far processors are what the program lacks, from 0 to 1, as far as the runs tell. By this
    /// part what experiments cost in CPU time is added back to effects.
    pub shortage: f64,
    /// The services that were profiled together, where the runs are those of their entry; `None` of
    /// runs of one service.
    pub joint: Option<JointSummary>,
}

impl Analysis {
    /// The point that targets are ranked by.
    pub fn ranking_point(&self) -> Option<&PointSummary> {
        self.points.get(self.ranked_by.point_index)
    }

    /// Whether verdicts by this metric mean something under the load: a latency does under any, a
    /// throughput only under one that is known to wait.
    pub fn can_judge(&self, metric: Metric) -> bool {
        can_judge(self.load, metric)
    }

    /// The targets that have an effect on this metric of this point, judged and ranked by it as
    /// [`Analysis::targets`] are by what they are [ranked by](Analysis::ranked_by).
    pub fn judged_by(&self, by: Ranking) -> Vec<Judged> {
        let mut judged = judged(&self.targets, |target| target.effect_on(by), self.load);
        judged.retain(|one| self.targets[one.target].effect_on(by).is_some());
        judged
    }
}

/// A target and its verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Judged {
    /// Its index among the targets of the analysis.
    pub target: usize,
    /// The verdict on it.
    pub verdict: Verdict,
}

/// False discovery rate of the verdicts.
const FALSE_DISCOVERIES: f64 = 0.05;

/// Analyses all metrics of all points.
pub fn analyse(runs: &[Run]) -> Analysis {
    let points = seen::points(runs);
    let rows: Vec<Rows<'_>> = runs.iter().map(|run| Rows::of(run, &points, MOST)).collect();
    analyse_all(runs, points, &rows)
}

/// Analyses all metrics of all these points, by `rows` of all of them.
fn analyse_all(runs: &[Run], points: Vec<PointSummary>, rows: &[Rows<'_>]) -> Analysis {
    let metrics: Vec<(usize, Metric)> =
        (0..points.len()).flat_map(|point| Metric::ALL.map(|metric| (point, metric))).collect();
    Analysis {
        waits: waits::waits(runs),
        polls: polls::polls(runs),
        long_polls: polls::long_polls(runs),
        edges: edges::edges(runs),
        allocations: allocations::allocations(runs),
        allocation_lines: allocation_lines::allocation_lines(runs),
        events: events::events(runs),
        ..analyse_metrics(runs, points, rows, true, |_| metrics)
    }
}

/// Analyses only what the ranking needs: one metric of one point, no impacts, waits and
/// allocations. Cheap enough to repeat after each experiment.
pub fn analyse_ranking(runs: &[Run]) -> Analysis {
    let points = ranking_points(runs);
    let rows: Vec<Rows<'_>> = runs.iter().map(|run| Rows::of(run, &points, MOST)).collect();
    analyse_metrics(runs, points, &rows, false, |by| vec![(by.point_index, by.metric)])
}

/// The points up to those that targets may be ranked by: the first of all, and the first with
/// latencies.
fn ranking_points(runs: &[Run]) -> Vec<PointSummary> {
    let mut points = seen::points(runs);
    points.truncate(1 + rank::latency_point(&points).unwrap_or(0));
    points
}

/// Analyses the metrics that `chosen` names, by index of the point, once it is known what targets
/// are ranked by; with `impacts` these too, which take much longer.
fn analyse_metrics(
    runs: &[Run],
    mut points: Vec<PointSummary>,
    rows: &[Rows<'_>],
    impacts: bool,
    chosen: impl FnOnce(Ranking) -> Vec<(usize, Metric)>,
) -> Analysis {
    now::measure(&mut points, rows);
    let mut targets = seen::tested_targets(runs, rows);
    let probes = load::probes(rows, &points, &targets);
    let growing = backlog::growing_point(runs, &points).map(|growth| growth.index);
    let load = load::load(probes, growing.is_some());
    targets.retain(|target| target.kind != TargetKind::Probe);
    let tested = targets.len();
    let ranked_by = rank::ranking(load, growing, &points, rows);
    // Where the load is known not to wait for the program, throughput is that of the load.
    let waits = matches!(load, None | Some(Load::Closed));
    let by_point = |point| shortage::shortage(runs, rows, &targets, point);
    let shortage = if waits { by_point(ranked_by.point_index) } else { 0.0 };
    let chosen = if points.is_empty() { Vec::new() } else { chosen(ranked_by) };
    for (index, metric) in chosen {
        if !rows.iter().any(|run| run.has(index, metric)) {
            continue;
        }
        let (data, scatter) = scatter_of(rows, &targets, index, metric);
        for (target, data) in targets.iter_mut().zip(data) {
            if data.is_empty() {
                continue;
            }
            if target.effects.is_empty() {
                target.seconds = data.iter().map(|one| one.seconds).sum();
            }
            let on = effects::On { point_index: index, point: &points[index], metric, shortage };
            let cpu = of_runs(rows, |run| run.cpu_observations(target, index));
            let effects = effects::effects(&data, &scatter, on, &cpu);
            if (index, metric) == (ranked_by.point_index, ranked_by.metric)
                && let Some(largest) = effects.last()
            {
                target.odd_runs = effects::odd_runs(&data, &scatter, largest.speedup, tested);
            }
            target.effects.extend(effects);
            if impacts {
                target.impacts.push(effects::impact(&data, &scatter, on, &cpu));
            }
        }
    }
    targets.retain(|target| !target.effects.is_empty());
    now::foresee(&mut targets, &points);
    judge(&mut targets, ranked_by.metric, load);
    targets.iter_mut().for_each(|target| target.fills_time = fills_time(target, rows));
    let held = runs.iter().zip(rows);
    Analysis {
        points,
        targets,
        waits: Vec::new(),
        polls: Vec::new(),
        long_polls: None,
        edges: Vec::new(),
        allocations: Vec::new(),
        allocation_lines: Vec::new(),
        events: None,
        load,
        probes,
        ranked_by,
        baselines: rows.iter().map(|rows| rows.tally().baselines()).sum(),
        experiments: held.map(|(run, rows)| seen::experiments_on_targets(run, rows.tally())).sum(),
        stretches: rows.iter().map(|rows| rows.tally().all()).sum(),
        discarded: rows.iter().map(|rows| rows.tally().discarded_ones()).sum(),
        cores_used: seen::cores_used(runs),
        cores_used_by_others: seen::cores_used_by_others(runs),
        shortage,
        joint: None,
    }
}

/// Whether the CPU time of a target, whose verdict is known, goes with time: so say all runs that
/// can tell.
fn fills_time(target: &TargetSummary, rows: &[Rows<'_>]) -> bool {
    let told: Vec<bool> = rows.iter().filter_map(|run| run.fills_time(target)).collect();
    let is_known_to_change = matches!(target.verdict, Verdict::Matters | Verdict::Hurts);
    !is_known_to_change && !told.is_empty() && told.into_iter().all(|fills| fills)
}

/// Gives all targets their verdicts, and puts them into the order of the ranking.
fn judge(targets: &mut [TargetSummary], metric: Metric, load: Option<Load>) {
    targets.iter_mut().for_each(|target| target.ranked_by = metric);
    for Judged { target, verdict } in judged(targets, TargetSummary::ranking_effect, load) {
        targets[target].verdict = verdict;
    }
    let key = |target: &TargetSummary| rank_key(target.ranking_effect());
    targets.sort_by(|a, b| key(b).total_cmp(&key(a)));
}

/// All targets, judged by one effect each and the surest gain first. What can't be judged is
/// inconclusive, and what has no such effect the last.
fn judged<'a>(
    targets: &'a [TargetSummary],
    effect: impl Fn(&'a TargetSummary) -> Option<&'a Effect>,
    load: Option<Load>,
) -> Vec<Judged> {
    let effects: Vec<Option<&Effect>> = targets.iter().map(effect).collect();
    let p_values: Vec<f64> =
        effects.iter().map(|effect| effect.map_or(1.0, |effect| effect.p_value)).collect();
    let found = stats::discoveries(&p_values, FALSE_DISCOVERIES);
    let verdict = |target: usize| {
        let effect = effects[target].filter(|effect| can_judge(load, effect.metric));
        effect.map_or(Verdict::Inconclusive { more_seconds: None }, |effect| {
            verdict_of(&targets[target], effect, found[target])
        })
    };
    let mut judged: Vec<Judged> =
        (0..targets.len()).map(|target| Judged { target, verdict: verdict(target) }).collect();
    let key = |one: &Judged| rank_key(effects[one.target]);
    judged.sort_by(|a, b| key(b).total_cmp(&key(a)));
    judged
}

fn can_judge(load: Option<Load>, metric: Metric) -> bool {
    metric.less_is_better() || load == Some(Load::Closed)
}

/// The observations of each target by a metric of a point, and how much experiments scatter by it.
fn scatter_of(
    rows: &[Rows<'_>],
    targets: &[TargetSummary],
    point: usize,
    metric: Metric,
) -> (Vec<Vec<Observation>>, Scatter) {
    let data: Vec<Vec<Observation>> =
        targets.iter().map(|target| observations(rows, target, point, metric)).collect();
    let baselines = rows.iter().filter_map(|run| run.of_baselines(point, metric));
    let of_targets = data.iter().flat_map(|data| scatter::by_run(data)).map(scatter::within);
    let scatter = Scatter::of(of_targets.chain(baselines));
    (data, scatter)
}

/// All observations of a target by this metric of the point with this index, of all runs.
fn observations(
    rows: &[Rows<'_>],
    target: &TargetSummary,
    point: usize,
    metric: Metric,
) -> Vec<Observation> {
    of_runs(rows, |run| run.observations(target, point, metric))
}

/// These observations of each run, which say of which they are.
fn of_runs<'a, I: Iterator<Item = Observation>>(
    rows: &'a [Rows<'_>],
    of_run: impl Fn(&'a Rows<'_>) -> I,
) -> Vec<Observation> {
    let numbered = rows.iter().enumerate();
    numbered
        .flat_map(|(run, rows)| of_run(rows).map(move |one| Observation { run, ..one }))
        .collect()
}

/// A logarithm of a ratio as a change in %.
pub(crate) fn percent(log_ratio: f64) -> f64 {
    log_ratio.exp_m1() * 100.0
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
pub(crate) mod tests;
