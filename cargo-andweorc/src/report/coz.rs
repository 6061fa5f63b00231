//! The experiments in the format of coz, for coz's own viewer (<https://plasma-umass.org/coz/>).
//!
//! One line a record, cells separated by tabs, `key=value` after the first. What the viewer wants
//! of it:
//!
//! - It compares what has the same `selected`, and takes the experiments with `speedup=0` among
//!   them for the baseline. Each of our experiments is therefore preceded by the baselines that it
//!   is compared to, written as if they were its target's. A baseline between two experiments on
//!   one target is written twice, and counts twice, as in our own estimates.
//! - It adds up `delta` and `duration` and divides, so a point that did nothing in an experiment is
//!   written with `delta=0`.
//! - Durations are virtual: coz takes the delays out before it writes.
//! - A latency is computed by Little's law from `difference`, the mean number of units in flight,
//!   and the rate of arrivals. The viewer reads whole numbers and shows relative changes, so
//!   `difference` is in **millionths** of a unit: 1.5 in flight would be 1. It draws a fall in
//!   latency as a negative change.
//! - `selected-samples` is always 0, since targets are timed; the viewer does not read it.
//! - It shows names from their last `/` on that tells them apart, so that places come first:
//!   `src/shop.rs:12 span stock`.
//! - Names are escaped and cut as in any other report, so that none has a tab or a line's end.
//! - A point's name stands for one kind of measurement; the latencies of `checkout` are those of
//!   `checkout (latency)`.

use crate::report::place;
use andweorc_profile::estimate::{self, Comparison, Metric};
use andweorc_profile::plain;
use andweorc_profile::{ExperimentRecord, PointRecord, Run, TargetKind, TargetRecord};

/// The profile, as coz would have written it.
pub(super) fn coz(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        line(
            &mut out,
            &["startup", &format!("time={}", u128::from(run.header.start_unix_ms) * 1_000_000)],
        );
        let target = |id: u32| run.targets.iter().find(|target| target.id == id);
        for Comparison { experiment, baselines, .. } in estimate::comparisons(run) {
            let Some(target) = experiment.target.and_then(target) else { continue };
            if target.kind == TargetKind::Probe {
                // No part of the program.
                continue;
            }
            for one in baselines.into_iter().chain([experiment]) {
                write_experiment(&mut out, runs, run, target, one);
            }
        }
        for target in &run.targets {
            let count = count(run, target);
            if count > 0 {
                let location = format!("location={}", selected(target));
                line(&mut out, &["samples", &location, &format!("count={count}")]);
            }
        }
        let time = format!("time={}", andweorc_profile::report::real_ns(run));
        line(&mut out, &["runtime", &time]);
    }
    out
}

/// An experiment, or one of its baselines, and what each point did in it.
fn write_experiment(
    out: &mut String,
    runs: &[Run],
    run: &Run,
    target: &TargetRecord,
    experiment: &ExperimentRecord,
) {
    let virtual_ns = experiment.real_ns.saturating_sub(experiment.delay_ns);
    line(
        out,
        &[
            "experiment",
            &format!("selected={}", selected(target)),
            &format!("speedup={}", experiment.speedup),
            &format!("duration={virtual_ns}"),
            "selected-samples=0",
        ],
    );
    for point in &run.points {
        let name = point_name(runs, point);
        let hits = experiment.points.iter().find(|hits| hits.point == point.id);
        let count = hits.map_or(0, |hits| hits.count);
        line(out, &["throughput-point", &format!("name={name}"), &format!("delta={count}")]);
        if let Some(mean_ns) = Metric::Mean.of(experiment, point.id).filter(|_| virtual_ns > 0) {
            let in_flight = mean_ns * count as f64 / virtual_ns as f64;
            line(
                out,
                &[
                    "latency-point",
                    &format!("name={name} (latency)"),
                    &format!("arrivals={count}"),
                    &format!("departures={count}"),
                    &format!("difference={:.0}", in_flight * 1e6),
                ],
            );
        }
    }
}

fn line(out: &mut String, cells: &[&str]) {
    out.push_str(&cells.join("\t"));
    out.push('\n');
}

/// A target's name, alike in all runs.
fn selected(target: &TargetRecord) -> String {
    if target.kind == TargetKind::Line {
        // `src/shop.rs:12`, as coz itself writes it.
        return plain::name(&target.name).into_owned();
    }
    let what = format!("{} {}", target.kind, plain::name(&target.name));
    match place(&target.name, target.file.as_deref(), target.line) {
        Some(place) => format!("{} {what}", plain::name(&place)),
        None => what,
    }
}

/// A point's name, with its place where another point has the same.
fn point_name(runs: &[Run], point: &PointRecord) -> String {
    let key = |one: &PointRecord| (one.kind, one.file.clone(), one.line);
    let same = |one: &&PointRecord| one.name == point.name && key(one) != key(point);
    let ambiguous = runs.iter().flat_map(|run| &run.points).any(|one| same(&one));
    let name = plain::name(&point.name);
    match place(&point.name, point.file.as_deref(), point.line).filter(|_| ambiguous) {
        Some(place) => format!("{} {name}", plain::name(&place)),
        None => name.into_owned(),
    }
}

/// How often a target was entered or sampled.
fn count(run: &Run, target: &TargetRecord) -> u64 {
    let times = run.samples.iter().flat_map(|samples| &samples.targets);
    times.filter(|time| time.target == target.id).map(|time| time.count).sum()
}
