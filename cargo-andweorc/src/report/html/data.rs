//! Data that the page shows, as its script reads it.

use super::cpu::{Cpu, cpu};
use super::dead_end::{DeadEnd, dead_end};
use super::events::{Events, events};
use super::joint::{Joint, joint};
use super::polls::{Edges, LongPolls, Polls, edges, long_polls, polls};
use super::requests::{Requests, page_requests};
use crate::flame::{StackLabel, flame};
use crate::report::place;
use crate::web::{Snippet, Sources};
use andweorc_profile::estimate::{
    self, AllocationLine, AllocationSummary, Analysis, Comparison, Judged, Metric, PointSummary,
    Ranking, TargetSummary, Verdict, WaitSummary,
};
use andweorc_profile::plain;
use andweorc_profile::report::{
    Advice, advice, allocation_label, cpu_share, fills_time, load_warning, notes, real_ns,
    service_notes,
};
use andweorc_profile::{ExampleState, ExperimentRecord, PointKind, Run, TargetKind, TargetRecord};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ptr;

/// So many lines that allocate are told: those after them are small.
const ALLOCATING_LINES: usize = 20;

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Page<'a> {
    program: Cow<'a, str>,
    host: Cow<'a, str>,
    cores: usize,
    started_ms: u64,
    real_ms: u64,
    runs: usize,
    points: Vec<Point<'a>>,
    ranked_by: Ranking,
    targets: Vec<Target<'a>>,
    /// The services that were profiled together, if several were.
    joint: Option<Joint>,
    experiments: Vec<Experiment<'a>>,
    waits: Vec<Wait>,
    polls: Vec<Polls>,
    /// Polls of kinds beyond those that are told apart.
    polls_merged: u64,
    long_polls: Option<LongPolls>,
    edges: Option<Edges>,
    advice: Vec<Advice>,
    allocations: Vec<Allocations>,
    allocation_lines: Vec<AllocatingLine>,
    /// Samples of allocations that are in none of these lines, or in one around theirs.
    allocations_lost: u64,
    events: Option<Events>,
    wall: Option<Wall<'a>>,
    cpu: Option<Cpu<'a>>,
    requests: Option<Requests<'a>>,
    notes: Vec<String>,
    /// Warning to know before the throughput is read.
    warning: Option<String>,
    /// Why there is nothing to show, and what to do, when there is nothing.
    dead_end: Option<DeadEnd>,
}

#[derive(Debug, Serialize)]
struct Point<'a> {
    name: Cow<'a, str>,
    /// The name, with the kind and the place where other points have the same.
    label: String,
    kind: PointKind,
    place: Option<String>,
    /// By metric, in the order of [`Metric::ALL`]; none where nothing has it.
    views: [Option<View>; Metric::ALL.len()],
}

/// How targets stand by a metric of a point.
#[derive(Debug, Serialize)]
struct View {
    /// Whether verdicts by this metric mean something under the load.
    judged: bool,
    /// Its value in the baselines: per s, or ms.
    now: Option<f64>,
    /// The targets that have an effect on it, the surest gain first.
    ranking: Vec<Standing>,
}

/// A target and its verdict.
#[derive(Debug, Serialize)]
struct Standing {
    target: usize,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Debug, Serialize)]
struct Target<'a> {
    kind: TargetKind,
    name: Cow<'a, str>,
    place: Option<String>,
    share: Option<f64>,
    wall_share: Option<f64>,
    /// The reason why the shares say nothing, if they don't.
    fills_time: Option<String>,
    effects: Vec<Effect>,
    impacts: Vec<Impact>,
    source: Option<Snippet>,
    /// The address of its place in the editor.
    editor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Wait {
    #[serde(flatten)]
    summary: WaitSummary,
    /// The address of its place in the editor.
    editor: Option<String>,
}

/// Allocations of one target.
#[derive(Debug, Serialize)]
struct Allocations {
    #[serde(flatten)]
    summary: AllocationSummary,
    label: String,
    place: Option<String>,
    /// The address of its place in the editor.
    editor: Option<String>,
}

/// Allocations of one line.
#[derive(Debug, Serialize)]
struct AllocatingLine {
    #[serde(flatten)]
    summary: AllocationLine,
    place: Option<String>,
    /// The address of its place in the editor.
    editor: Option<String>,
}

/// Where wall time went.
#[derive(Debug, Serialize)]
struct Wall<'a> {
    real_ms: u64,
    /// Names of the states, in the order of [`Stack::states`].
    states: [&'static str; ExampleState::ALL.len()],
    /// Each after the one around it.
    stacks: Vec<Stack<'a>>,
    /// Sentences on what was not recorded, or not told apart.
    losses: Vec<String>,
}

/// A stack, without those inside of it.
#[derive(Debug, Serialize)]
struct Stack<'a> {
    #[serde(flatten)]
    label: StackLabel<'a>,
    /// Indices of the targets that were tested of it: itself, and its wait.
    targets: Vec<usize>,
    count: u64,
    /// Its own time in ns.
    states: [u64; ExampleState::ALL.len()],
    /// Time of its waits for other tasks by who ended them, ns.
    wakers: Vec<(Cow<'a, str>, u64)>,
}

/// An effect on the point with this index.
#[derive(Debug, Serialize)]
struct Effect {
    point: usize,
    metric: Metric,
    speedup: f64,
    pct: f64,
    low: Option<f64>,
    high: Option<f64>,
    n: usize,
}

#[derive(Debug, Serialize)]
struct Impact {
    point: usize,
    metric: Metric,
    slope: f64,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Experiment<'a> {
    run: usize,
    seq: u32,
    /// Kind of thing that the experiment is held on.
    what: What,
    /// Index of the target; none in a baseline, in a probe, and for a target that nothing is known
    /// of.
    target: Option<usize>,
    speedup: f64,
    start_ms: u64,
    real_ms: u64,
    delay_ms: f64,
    discarded: Option<Cow<'a, str>>,
    /// For each point the throughput per s, and mean, p50, p90 and p99 in ms.
    values: Vec<[Option<f64>; Metric::ALL.len()]>,
    /// Indices of the baselines that it is compared to.
    baselines: Vec<usize>,
}

/// Kind of thing that an experiment is held on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Target,
    Baseline,
    /// The program as a whole, to see whether the load waits for it.
    Probe,
}

/// Makes the data that the page of these runs shows.
pub(super) fn page<'a>(runs: &'a [Run], analysis: &'a Analysis, sources: &mut Sources) -> Page<'a> {
    let header = runs.first().map(|run| &run.header);
    let points = &analysis.points;
    let began = header.map_or(0, |header| header.start_unix_ms);
    Page {
        program: header.map_or("".into(), |header| plain::name(&header.program)),
        host: header.map_or("".into(), |header| plain::name(&header.host)),
        cores: header.map_or(0, |header| header.cores),
        started_ms: began,
        real_ms: runs.iter().map(real_ns).sum::<u64>() / 1_000_000,
        runs: runs.len(),
        targets: analysis.targets.iter().map(|it| target(it, sources, began)).collect(),
        joint: joint(analysis),
        experiments: experiments(runs, analysis),
        waits: analysis.waits.iter().map(|it| wait(it, sources)).collect(),
        polls: polls(analysis, sources),
        polls_merged: runs.iter().flat_map(|run| &run.polls).map(|it| it.merged).sum(),
        long_polls: long_polls(analysis, sources),
        edges: edges(analysis, sources),
        advice: advice(runs, analysis),
        allocations: analysis.allocations.iter().map(|it| allocations(it, sources)).collect(),
        allocation_lines: analysis
            .allocation_lines
            .iter()
            .take(ALLOCATING_LINES)
            .map(|it| allocating_line(it, sources))
            .collect(),
        allocations_lost: runs
            .iter()
            .flat_map(|run| &run.allocation_stacks)
            .fold(0, |sum: u64, it| sum.saturating_add(it.lost).saturating_add(it.merged)),
        events: events(analysis, sources),
        wall: wall(runs, analysis),
        cpu: cpu(runs, analysis, |target| tested(analysis, target)),
        requests: page_requests(runs, analysis),
        ranked_by: analysis.ranked_by,
        notes: notes(runs)
            .iter()
            .chain(&service_notes(analysis))
            .map(|note| plain::sentence(note).into_owned())
            .collect(),
        warning: load_warning(analysis),
        dead_end: dead_end(runs, analysis),
        points: points
            .iter()
            .enumerate()
            .map(|(index, point)| Point {
                name: plain::name(&point.name),
                label: point_label(points, point),
                kind: point.kind,
                place: shown_place(&point.name, point.file.as_deref(), point.line),
                views: Metric::ALL.map(|metric| view(runs, analysis, index, metric)),
            })
            .collect(),
    }
}

fn point_label(points: &[PointSummary], point: &PointSummary) -> String {
    let kind = match point.kind {
        PointKind::Progress => "progress",
        PointKind::Latency => "latency",
    };
    let name = plain::name(&point.name);
    if points.iter().filter(|other| other.name == point.name).count() < 2 {
        return name.into_owned();
    }
    match shown_place(&point.name, point.file.as_deref(), point.line) {
        Some(place) => format!("{name} ({kind}, {place})"),
        None => format!("{name} ({kind})"),
    }
}

/// The [place] as the page shows it.
pub(crate) fn shown_place(name: &str, file: Option<&str>, line: Option<u32>) -> Option<String> {
    place(name, file, line).map(|place| plain::name(&place).into_owned())
}

/// How targets stand by this metric of the point with this index.
fn view(runs: &[Run], analysis: &Analysis, point_index: usize, metric: Metric) -> Option<View> {
    let ranking = analysis.judged_by(Ranking::new(point_index, metric));
    let standing = |one: Judged| Standing { target: one.target, verdict: one.verdict };
    (!ranking.is_empty()).then(|| View {
        judged: analysis.can_judge(metric),
        now: now(runs, &analysis.points[point_index], metric),
        ranking: ranking.into_iter().map(standing).collect(),
    })
}

/// The mean of a metric of a point over the baselines that were not discarded: per s, or ms.
fn now(runs: &[Run], point: &PointSummary, metric: Metric) -> Option<f64> {
    let mut values = Vec::new();
    for run in runs {
        let baselines =
            run.experiments.iter().filter(|one| one.target.is_none() && one.discarded.is_none());
        values.extend(baselines.filter_map(|one| value(run, point, metric, one)));
    }
    (!values.is_empty()).then(|| short(values.iter().sum::<f64>() / values.len() as f64))
}

/// The metric of a point in an experiment of a run: per s, or ms.
fn value(run: &Run, point: &PointSummary, metric: Metric, one: &ExperimentRecord) -> Option<f64> {
    let id = run.points.iter().find(|record| point.is(record))?.id;
    // Latencies are in ns.
    let unit = if metric == Metric::Throughput { 1.0 } else { 1e6 };
    Some(metric.of(one, id)? / unit)
}

/// Where wall time went, if that was recorded.
fn wall<'a>(runs: &'a [Run], analysis: &Analysis) -> Option<Wall<'a>> {
    let flame = flame(runs);
    let losses = flame.losses();
    let waker = |(by, ns): (Option<&'a TargetRecord>, u64)| {
        (by.map_or("not known".into(), |by| plain::name(&by.name)), ns)
    };
    let stacks = flame.frames.into_iter().map(|frame| Stack {
        label: StackLabel::of(frame.parent, frame.target),
        targets: frame.target.map_or(Vec::new(), |target| tested(analysis, target)),
        count: frame.count,
        states: frame.states,
        wakers: frame.wakers.into_iter().map(waker).collect(),
    });
    let stacks: Vec<_> = stacks.collect();
    (!stacks.is_empty()).then(|| Wall {
        real_ms: flame.real_ns / 1_000_000,
        states: ExampleState::ALL.map(ExampleState::words),
        stacks,
        losses,
    })
}

/// Indices of the targets that were tested of what a stack is of: itself, and its wait.
fn tested(analysis: &Analysis, stack: &TargetRecord) -> Vec<usize> {
    let place = (&stack.name, &stack.file, stack.line);
    let is = |target: &TargetSummary| {
        (target.kind == stack.kind || target.kind == TargetKind::Wait)
            && (&target.name, &target.file, target.line) == place
    };
    let indexed = analysis.targets.iter().enumerate();
    indexed.filter(|(_, target)| is(target)).map(|(index, _)| index).collect()
}

fn wait(wait: &WaitSummary, sources: &Sources) -> Wait {
    let at = wait.file.as_deref().zip(wait.line);
    let mut summary = wait.clone();
    summary.name = plain::name(&wait.name).into_owned();
    summary.file = wait.file.as_deref().map(|file| plain::name(file).into_owned());
    Wait { summary, editor: at.and_then(|(file, line)| sources.address(file, line)) }
}

fn allocations(of: &AllocationSummary, sources: &Sources) -> Allocations {
    let at = of.file.as_deref().zip(of.line);
    let mut summary = of.clone();
    summary.name = plain::name(&of.name).into_owned();
    summary.file = of.file.as_deref().map(|file| plain::name(file).into_owned());
    for thread in &mut summary.threads {
        thread.name = plain::name(&thread.name).into_owned();
    }
    Allocations {
        summary,
        label: allocation_label(of),
        place: shown_place(&of.name, of.file.as_deref(), of.line),
        editor: at.and_then(|(file, line)| sources.address(file, line)),
    }
}

fn allocating_line(of: &AllocationLine, sources: &Sources) -> AllocatingLine {
    let at = of.file.as_deref().zip(of.line);
    let mut summary = of.clone();
    summary.function = plain::name(&of.function).into_owned();
    summary.file = of.file.as_deref().map(|file| plain::name(file).into_owned());
    AllocatingLine {
        summary,
        place: shown_place(&of.function, of.file.as_deref(), of.line),
        editor: at.and_then(|(file, line)| sources.address(file, line)),
    }
}

fn target<'a>(target: &'a TargetSummary, sources: &mut Sources, began: u64) -> Target<'a> {
    let effects = target.effects.iter().map(|one| Effect {
        point: one.point_index,
        metric: one.metric,
        speedup: one.speedup,
        pct: one.effect_pct,
        low: one.ci_low,
        high: one.ci_high,
        n: one.n,
    });
    let impacts = target.impacts.iter().map(|one| Impact {
        point: one.point_index,
        metric: one.metric,
        slope: one.slope,
        low: one.ci_low,
        high: one.ci_high,
    });
    let at = target.file.as_deref().zip(target.line);
    Target {
        kind: target.kind,
        name: plain::name(&target.name),
        place: shown_place(&target.name, target.file.as_deref(), target.line),
        share: cpu_share(target),
        wall_share: target.wall_share,
        fills_time: fills_time(target),
        effects: effects.collect(),
        impacts: impacts.collect(),
        source: at.and_then(|(file, line)| sources.snippet(file, line, began)),
        editor: at.and_then(|(file, line)| sources.address(file, line)),
    }
}

/// The experiments of all runs, and their baselines.
fn experiments<'a>(runs: &'a [Run], analysis: &Analysis) -> Vec<Experiment<'a>> {
    let mut all: Vec<Experiment<'a>> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let first = all.len();
        let index_of: HashMap<*const ExperimentRecord, usize> = run
            .experiments
            .iter()
            .enumerate()
            .map(|(i, one)| (ptr::from_ref(one), first + i))
            .collect();
        all.extend(run.experiments.iter().map(|one| experiment(i, run, one, analysis)));
        for Comparison { experiment, baselines, .. } in estimate::comparisons(run) {
            let indices = baselines.into_iter().map(|one| index_of[&ptr::from_ref(one)]);
            all[index_of[&ptr::from_ref(experiment)]].baselines = indices.collect();
        }
    }
    all
}

fn experiment<'a>(
    index: usize,
    run: &Run,
    record: &'a ExperimentRecord,
    analysis: &Analysis,
) -> Experiment<'a> {
    let target = run.targets.iter().find(|target| Some(target.id) == record.target);
    let values = |point: &PointSummary| {
        Metric::ALL.map(|metric| value(run, point, metric, record).map(short))
    };
    Experiment {
        run: index,
        seq: record.seq,
        what: match target {
            Some(target) if target.kind == TargetKind::Probe => What::Probe,
            _ if record.target.is_some() => What::Target,
            _ => What::Baseline,
        },
        target: target.and_then(|one| analysis.targets.iter().position(|target| target.is(one))),
        speedup: record.speedup,
        start_ms: record.start_ns / 1_000_000,
        real_ms: record.real_ns / 1_000_000,
        delay_ms: short(record.delay_ns as f64 / 1e6),
        discarded: record.discarded.as_deref().map(plain::sentence),
        values: analysis.points.iter().map(values).collect(),
        baselines: Vec::new(),
    }
}

/// Five significant digits: more is noise, and makes the page large.
fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().expect("a number as it was written")
}
