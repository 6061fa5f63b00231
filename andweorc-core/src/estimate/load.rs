//! Whether the load waits for the program.
//!
//! Clients that wait for an answer before they ask again (closed load) slow down with the program: delayed as a whole, it does as much in
//! virtual time as ever. Clients that ask at their own pace (open load) do not: in the stretched time there is more of them, and as long as the
//! program can keep up it does more in virtual time by just what it was delayed. Its throughput then says nothing, and its latency everything. So
//! a run begins with probes ([`TargetKind::Probe`]): experiments in which the program is delayed as a whole.

use crate::estimate::observe::Rows;
use crate::estimate::summary::{Metric, PointSummary, TargetSummary};
use crate::estimate::tally::MOST;
use crate::estimate::{observations, seen};
use crate::profile::{Run, TargetKind};
use crate::stats;
use serde::Serialize;

/// How the program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// It waits for the program, or the program has more to do than it can.
    Closed,
    /// It comes at its own pace, and the program keeps up with it: throughput can't move, latency can.
    Open,
}

/// What the probes of these runs say, by the throughput of a point. `None` without any.
pub(crate) fn load_by(runs: &[Run], point: &PointSummary) -> Option<Load> {
    let points = std::slice::from_ref(point);
    let rows: Vec<Rows<'_>> = runs.iter().map(|run| Rows::of(run, points, MOST)).collect();
    load(&rows, points, &seen::tested_targets(runs, &rows))
}

/// What the probes among these targets say. `None` without any.
pub(crate) fn load(
    rows: &[Rows<'_>],
    points: &[PointSummary],
    targets: &[TargetSummary],
) -> Option<Load> {
    let probe = targets.iter().find(|target| target.kind == TargetKind::Probe)?;
    // It is seen in the first point, whatever targets are ranked by then.
    points.first()?;
    let kept_up: Vec<(f64, f64)> = observations(rows, probe, 0, Metric::Throughput)
        .iter()
        // What the program would do more of in virtual time if it had kept up.
        .map(|one| (one.log_ratio / -(-one.speedup).ln_1p(), one.n as f64))
        .collect();
    let share = (!kept_up.is_empty()).then(|| stats::weighted_mean(&kept_up))?;
    Some(if share > 0.5 { Load::Open } else { Load::Closed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::analyse;
    use crate::estimate::tests::{probed, run};

    #[test]
    fn load_that_does_not_wait_is_open() {
        assert_eq!(analyse(&[probed(1.01)]).load, Some(Load::Closed));
        assert_eq!(analyse(&[probed(0.96)]).load, Some(Load::Closed));
        assert_eq!(analyse(&[probed(1.24)]).load, Some(Load::Open));
        assert_eq!(analyse(&[run()]).load, None);
    }

    #[test]
    fn a_probe_is_no_target() {
        let analysis = analyse(&[probed(1.0)]);
        assert!(analysis.targets.is_empty());
        assert_eq!(analysis.experiments, 0);
    }
}
