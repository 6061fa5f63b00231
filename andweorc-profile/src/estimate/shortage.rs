//! How far processors are what the program lacks, which tells how far the CPU time that
//! experiments cost lowers its throughput.
//!
//! Where a processor is idle, or a lock or a wait holds the program up, more CPU time a hit is used
//! beside what it waits for. Where processors are what it lacks, it does as much less, and so what
//! experiments cost is to be added back to effects. Three things limit by which part:
//!
//! - **Idle processors.** The part of the time in which all are busy. Of that only a lower bound is
//!   known: one, less the mean number of idle processors. (Of two, half busy each, both may be idle
//!   at once or never.)
//! - **The effects.** Were processors all that it lacks, a target of a third of the CPU time, twice
//!   as fast, would spare a sixth of it, and bring at least as much: throughput times CPU time a
//!   hit stays the same. A target that brings less shows that processors are not all it lacks, and
//!   by the ratio of the two how far they are.
//! - **The part of the CPU time that was tested.** Of the rest the effects tell nothing.
//!
//! An effect that is corrected so is no surer for it: its interval reaches back to what was
//! measured, and on to where all that experiments cost would count.

use super::effects;
use super::metric::Metric;
use super::observe::Rows;
use super::scatter::{self, Cell};
use super::seen;
use super::summary::TargetSummary;
use super::{observations, of_runs};
use crate::Run;
use std::slice;

/// CPU time that a target spares, as a logarithm, from which on its effect tells something.
const LEAST_SPARED: f64 = 0.03;

/// No target, however fast, spares more of the CPU time.
const MOST_SPARED: f64 = 0.99;

/// How far processors are what the program lacks, from 0 to 1, as baselines of these runs and the
/// effects of these targets on the throughput of the point with this index tell it.
pub(crate) fn shortage(
    runs: &[Run],
    rows: &[Rows<'_>],
    targets: &[TargetSummary],
    point: usize,
) -> f64 {
    let (mut short, mut tested) = (all_busy(runs, rows), 0.0);
    if short == 0.0 {
        return short;
    }
    for target in targets {
        let Some(share) = target.share else { continue };
        let data = observations(rows, target, point, Metric::Throughput);
        let cpu = of_runs(rows, |run| run.cpu_observations(target, point));
        for speedup in scatter::speedups(&data) {
            let overhead = effects::overhead(&cpu, speedup).unwrap_or(0.0).max(0.0);
            let spared = -(-(speedup * share).min(MOST_SPARED)).ln_1p() - overhead;
            if spared >= LEAST_SPARED {
                short = short.min(Cell::of(&data, speedup).log / spared);
            }
        }
        tested += if data.is_empty() { 0.0 } else { share };
    }
    short.max(0.0) * f64::min(tested, 1.0)
}

/// The least part of the time in which all processors are busy.
fn all_busy(runs: &[Run], rows: &[Rows<'_>]) -> f64 {
    let told = runs.iter().zip(rows).filter_map(|(run, rows)| {
        let used = rows.tally().cores_used()?;
        let others = seen::cores_used_by_others(slice::from_ref(run)).unwrap_or(0.0);
        let idle = run.header.cores as f64 - used - others;
        Some((1.0 - idle).clamp(0.0, 1.0))
    });
    let (sum, count) = told.fold((0.0, 0.0), |(sum, count), one| (sum + one, count + 1.0));
    if count == 0.0 { 0.0 } else { sum / count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::{closed, push};
    use crate::{Record, SamplesRecord, TargetTime};

    /// A run on two processors, of which it uses so much in baselines, %. Its one target has this
    /// share of the CPU time, %, and brings `change` % when it is twice as fast.
    fn run(used: u64, share: u64, change: u64) -> Run {
        let mut run = closed();
        run.header.cores = 2;
        run.samples.clear();
        let time = TargetTime { target: 1, busy_ns: share, count: 1, waits: None };
        run.push(Record::Samples(SamplesRecord {
            real_ns: 50,
            cpu_ns: 100,
            others_ns: None,
            source: "timed".into(),
            targets: vec![time],
            lost: 0,
        }));
        push(&mut run, None, 0.0, 10_000, 1_000);
        push(&mut run, Some(1), 0.5, 100 * (100 + change), 1_000);
        push(&mut run, None, 0.0, 10_000, 1_000);
        for one in &mut run.experiments {
            one.cpu_ns = Some(one.points[0].count * used * 2_000);
        }
        run
    }

    fn shortage_of(runs: &[Run]) -> f64 {
        let points = seen::points(runs);
        let rows: Vec<Rows<'_>> = runs.iter().map(|run| Rows::of(run, &points, 8)).collect();
        let targets = seen::tested_targets(runs, &rows);
        shortage(runs, &rows, &targets, 0)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 0.01, "{a} is not {b}");
    }

    #[test]
    fn processors_are_short_as_far_as_less_than_one_is_idle() {
        // All of the CPU time, twice as fast: twice the throughput.
        near(shortage_of(&[run(50, 100, 100)]), 0.0);
        near(shortage_of(&[run(90, 100, 100)]), 0.8);
        near(shortage_of(&[run(100, 100, 100), run(50, 100, 100)]), 0.5);
        let mut unknown = run(100, 100, 100);
        unknown.experiments.iter_mut().for_each(|one| one.cpu_ns = None);
        assert_eq!(shortage_of(&[unknown]), 0.0, "of versions that did not measure it");
    }

    #[test]
    fn what_other_processes_use_is_not_idle() {
        let mut run = run(80, 100, 100);
        run.samples[0].others_ns = Some(10);
        near(shortage_of(&[run]), 0.8);
    }

    #[test]
    fn a_target_that_brings_less_than_it_spares_shows_what_else_is_short() {
        near(shortage_of(&[run(100, 100, 0)]), 0.0);
        // A logarithm of a half where all would be one of two.
        near(shortage_of(&[run(100, 100, 41)]), 0.5);
        // A lock may be what it brings more for, and less is never less than nothing.
        near(shortage_of(&[run(100, 100, 150)]), 1.0);
    }

    #[test]
    fn processors_are_not_known_to_be_short_by_what_was_not_tested() {
        near(shortage_of(&[run(100, 20, 100)]), 0.2);
        // So little spared tells nothing else.
        near(shortage_of(&[run(100, 4, 0)]), 0.04);
    }
}
