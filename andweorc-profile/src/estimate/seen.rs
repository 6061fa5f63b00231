//! Points and targets that the runs know of, told apart by kind, name and place.

use crate::estimate::metric::Metric;
use crate::estimate::observe::Rows;
use crate::estimate::summary::{Identity, PointSummary, TargetSummary};
use crate::estimate::tally::Tally;
use crate::estimate::verdict::Verdict;
use crate::{Run, TargetKind, TargetRecord};
use std::collections::{HashMap, HashSet};

/// The points of all runs, by rank.
pub(crate) fn points(runs: &[Run]) -> Vec<PointSummary> {
    let mut seen = HashSet::new();
    let records = runs.iter().flat_map(|run| &run.points);
    records.filter(|record| seen.insert(record.identity())).map(PointSummary::from).collect()
}

/// The targets of all runs, with their shares and nothing else yet.
pub(crate) fn targets(runs: &[Run]) -> Vec<TargetSummary> {
    some_targets(runs, |_| true)
}

/// The targets that experiments were held on in any of the runs.
pub(crate) fn tested_targets(runs: &[Run], rows: &[Rows<'_>]) -> Vec<TargetSummary> {
    let mut tested = HashSet::new();
    for (run, rows) in runs.iter().zip(rows) {
        let held = rows.tally().held();
        let records = run.targets.iter().filter(|record| held.contains_key(&record.id));
        tested.extend(records.map(TargetRecord::identity));
    }
    some_targets(runs, |target| tested.contains(target))
}

fn some_targets(
    runs: &[Run],
    wanted: impl Fn(&Identity<'_, TargetKind>) -> bool,
) -> Vec<TargetSummary> {
    let mut indices: HashMap<Identity<'_, TargetKind>, usize> = HashMap::new();
    let mut all: Vec<TargetSummary> = Vec::new();
    for record in runs.iter().flat_map(|run| &run.targets) {
        let identity = record.identity();
        if wanted(&identity) {
            indices.entry(identity).or_insert_with(|| {
                all.push(nothing_known(record));
                all.len() - 1
            });
        }
    }
    share(runs, &indices, &mut all);
    all
}

fn nothing_known(record: &TargetRecord) -> TargetSummary {
    TargetSummary {
        kind: record.kind,
        name: record.name.clone(),
        file: record.file.clone(),
        line: record.line,
        share: None,
        wall_share: None,
        fills_time: false,
        effects: Vec::new(),
        impacts: Vec::new(),
        odd_runs: Vec::new(),
        ranked_by: Metric::Throughput,
        verdict: Verdict::Inconclusive { more_seconds: None },
        seconds: 0.0,
    }
}

/// The shares of the CPU time and of the wall time.
fn share(
    runs: &[Run],
    indices: &HashMap<Identity<'_, TargetKind>, usize>,
    all: &mut [TargetSummary],
) {
    let (mut busy, mut cpu, mut real) = (vec![0_u64; all.len()], 0, 0);
    for run in runs {
        let mut seen = HashSet::new();
        let ids: HashMap<u32, usize> = run
            .targets
            .iter()
            .filter_map(|record| Some((record.id, *indices.get(&record.identity())?)))
            .filter(|(_, index)| seen.insert(*index))
            .collect();
        for samples in &run.samples {
            for time in &samples.targets {
                if let Some(&index) = ids.get(&time.target) {
                    busy[index] += time.busy_ns;
                }
            }
            cpu += samples.cpu_ns;
            real += samples.real_ns;
        }
    }
    let of = |busy: u64, whole: u64| (whole > 0).then(|| busy as f64 / whole as f64);
    for (target, busy) in all.iter_mut().zip(busy) {
        // Who waits uses no CPU. And who is preempted inside a target is inside it for longer than
        // it runs.
        let share = of(busy, cpu).filter(|_| target.kind != TargetKind::Wait);
        target.share = share.map(|share| share.min(1.0));
        target.wall_share = of(busy, real);
        // The time of another service's target is in that one's profile.
        if target.kind == TargetKind::Remote {
            (target.share, target.wall_share) = (None, None);
        }
    }
}

/// How many processors the program used in the stretches of which that is known.
pub(crate) fn cores_used(runs: &[Run]) -> Option<f64> {
    let samples = || runs.iter().flat_map(|run| &run.samples);
    let real: u64 = samples().map(|samples| samples.real_ns).sum();
    let cpu: u64 = samples().map(|samples| samples.cpu_ns).sum();
    (real > 0).then(|| cpu as f64 / real as f64)
}

/// How many of its processors other processes used in the stretches of which that is known.
pub(crate) fn cores_used_by_others(runs: &[Run]) -> Option<f64> {
    let samples = runs.iter().flat_map(|run| &run.samples);
    let told = samples.filter_map(|samples| Some((samples.real_ns, samples.others_ns?)));
    let (real, others) = told.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (real > 0).then(|| others as f64 / real as f64)
}

/// How many experiments a run held on targets: baselines and probes have none.
pub(crate) fn experiments_on_targets(run: &Run, tally: &Tally) -> usize {
    let mut held = tally.held().clone();
    let parts = run.targets.iter().filter(|record| record.kind != TargetKind::Probe);
    parts.filter_map(|record| held.remove(&record.id)).sum()
}
