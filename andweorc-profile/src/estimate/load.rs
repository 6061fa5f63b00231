//! Whether the load waits for the program.
//!
//! Clients that wait for an answer before they ask again (closed load) slow down with the program:
//! delayed as a whole, it does as much in virtual time as ever. Clients that ask at their own pace
//! (open load) do not: in the stretched time there is more of them, and as long as the program can
//! keep up it does more in virtual time by just what it was delayed. Its throughput then says
//! nothing, and its latency everything. So a run begins with probes ([`TargetKind::Probe`]), and
//! holds more of them now and then: experiments in which the program is delayed as a whole.
//!
//! A probe tells the **share of its delay that the program made up for**: none under a closed load,
//! all under an open one. The load is known where at least two probes agree, and the interval of
//! their mean is in one of these places and reaches what is possible, from 0 to 1.

use crate::estimate::backlog::growing_point;
use crate::estimate::metric::Metric;
use crate::estimate::observation::Observation;
use crate::estimate::observe::Rows;
use crate::estimate::scatter::{Cell, Scatter, Variance};
use crate::estimate::summary::{PointSummary, TargetSummary};
use crate::estimate::tally::MOST;
use crate::estimate::{scatter_of, seen};
use crate::stats;
use crate::{Run, TargetKind};
use serde::Serialize;

/// How the program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Load {
    /// The load waits for the program, or the program has more to do than it can.
    Closed,
    /// The load comes at its own pace, and the program keeps up with it: throughput can't move,
    /// latency can.
    Open,
    /// Some of it waits for the program and some does not, or the program keeps up with a load at
    /// its own pace only just.
    Mixed,
}

/// Shares up to here are none, and from as far below one on all: a probe is not that exact.
const EXACT: f64 = 0.1;

/// Probes that differ by chance do so less than this often.
const DIFFER: f64 = 0.01;

/// The outcome of the probes of the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Probes {
    /// How many could be used.
    pub n: usize,
    /// The share of its delay that the program made up for, 0 to 1: their mean.
    pub share: f64,
    /// Lower end of its 95 % interval; `None` where nothing was repeated, so that no scatter is
    /// known.
    pub ci_low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub ci_high: Option<f64>,
    /// They differ by no more than chance lets them.
    pub agree: bool,
}

impl Probes {
    /// Whether the interval reaches what a load can do, from 0 to 1.
    pub fn are_possible(&self) -> bool {
        self.ci_low.is_none_or(|low| low <= 1.0 + EXACT)
            && self.ci_high.is_none_or(|high| high >= -EXACT)
    }

    /// The load, where they tell.
    pub fn load(&self) -> Option<Load> {
        let (low, high) = (self.ci_low?, self.ci_high?);
        let valid = self.n > 1 && self.agree && self.are_possible();
        match () {
            () if !valid => None,
            () if low > EXACT && high < 1.0 - EXACT => Some(Load::Mixed),
            () if low <= EXACT && high < 0.5 => Some(Load::Closed),
            () if high >= 1.0 - EXACT && low > 0.5 => Some(Load::Open),
            () => None,
        }
    }
}

/// How these runs were loaded, by the throughput of a point. `None` where that is not known.
pub(crate) fn load_by(runs: &[Run], point: &PointSummary) -> Option<Load> {
    let points = std::slice::from_ref(point);
    let rows: Vec<Rows<'_>> = runs.iter().map(|run| Rows::of(run, points, MOST)).collect();
    let probes = probes(&rows, points, &seen::tested_targets(runs, &rows));
    load(probes, growing_point(runs, points).is_some())
}

/// How the program is loaded, as its probes tell it. Where a queue `grows` that is surer than any
/// probe: delayed or not, the program does what it can.
pub(crate) fn load(probes: Option<Probes>, grows: bool) -> Option<Load> {
    if grows { Some(Load::Closed) } else { probes?.load() }
}

/// Evaluates the probes among these targets. `None` without any.
pub(crate) fn probes(
    rows: &[Rows<'_>],
    points: &[PointSummary],
    targets: &[TargetSummary],
) -> Option<Probes> {
    let probe = targets.iter().position(|target| target.kind == TargetKind::Probe)?;
    // It is seen in the first point, whatever targets are ranked by then.
    points.first()?;
    let (data, scatter) = scatter_of(rows, targets, 0, Metric::Throughput);
    let data = &data[probe];
    let speedup = data.first()?.speedup;
    // The logarithm that there would be if the program had made up for all.
    let whole = -(-speedup).ln_1p();
    let cell = Cell::of(data, speedup);
    let variance = scatter.of_target(data);
    let half = variance.map(|variance| cell.half(variance) / whole);
    let share = cell.log / whole;
    Some(Probes {
        n: cell.n,
        share,
        ci_low: half.map(|half| share - half),
        ci_high: half.map(|half| share + half),
        // By how much baselines scatter: probes may do so more because the load changes.
        agree: Scatter::of(baselines(rows)).of_target(&[]).is_none_or(|it| agree(data, it)),
    })
}

fn baselines(rows: &[Rows<'_>]) -> impl Iterator<Item = Variance> {
    rows.iter().filter_map(|run| run.of_baselines(0, Metric::Throughput))
}

/// Whether the two that differ most do so by chance, given the variance of one.
fn agree(probes: &[Observation], of_one: Variance) -> bool {
    let logs = || probes.iter().map(|one| one.log_ratio);
    let widest = logs().fold(f64::MIN, f64::max) - logs().fold(f64::MAX, f64::min);
    let pairs = (probes.len() * (probes.len() - 1) / 2).max(1);
    stats::p_of(widest, (2.0 * of_one.of_one).sqrt(), of_one.df) * pairs as f64 >= DIFFER
        || widest < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::analyse;
    use crate::estimate::tests::{PROBE, probed, push, run, run_with_probe};

    #[test]
    fn load_that_does_not_wait_is_open() {
        assert_eq!(analyse(&[probed(1.01)]).load, Some(Load::Closed));
        assert_eq!(analyse(&[probed(0.99)]).load, Some(Load::Closed));
        assert_eq!(analyse(&[probed(1.24)]).load, Some(Load::Open));
        assert_eq!(analyse(&[probed(1.1)]).load, Some(Load::Mixed));
        assert_eq!(analyse(&[run()]).load, None);
    }

    /// Probes that do these times what the baselines do in virtual time, whose counts are given.
    fn probes(baselines: &[u64], times: &[f64]) -> Probes {
        let mut run = run_with_probe();
        let mut baselines = baselines.iter().cycle();
        let mut baseline = |run: &mut Run| push(run, None, 0.0, *baselines.next().unwrap(), 1_000);
        for times in times {
            baseline(&mut run);
            push(&mut run, Some(PROBE), 0.2, (10_000.0 * times) as u64, 1_000);
        }
        (0..40).for_each(|_| baseline(&mut run));
        analyse(&[run]).probes.unwrap()
    }

    #[test]
    fn probes_that_are_few_or_differ_or_say_what_cannot_be_tell_nothing() {
        let quiet = [10_000, 10_020, 9_990];
        assert_eq!(probes(&quiet, &[1.0, 1.0]).load(), Some(Load::Closed));
        assert_eq!(probes(&quiet, &[1.0]).load(), None, "one");
        let differ = probes(&quiet, &[1.0, 1.25, 1.0]);
        assert!(!differ.agree && differ.load().is_none(), "{differ:?}");
        let impossible = probes(&quiet, &[1.9, 1.9]);
        assert!(impossible.ci_low.unwrap() > 1.0 && impossible.load().is_none(), "{impossible:?}");
        let noisy = probes(&[10_000, 14_000, 8_000, 13_000], &[1.2, 0.9]);
        assert_eq!(noisy.load(), None, "{noisy:?}");
    }

    #[test]
    fn a_probe_is_no_target() {
        let analysis = analyse(&[probed(1.0)]);
        assert!(analysis.targets.is_empty());
        assert_eq!(analysis.experiments, 0);
    }
}
