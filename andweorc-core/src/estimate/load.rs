//! Whether the load waits for the program.
//!
//! Clients that wait for an answer before they ask again (closed load) slow down with the program: delayed as a whole, it does as much in
//! virtual time as ever. Clients that ask at their own pace (open load) do not: in the stretched time there is more of them, and as long as the
//! program can keep up it does more in virtual time by just what it was delayed. Its throughput then says nothing, and its latency everything. So
//! a run begins with probes ([`TargetKind::Probe`]): experiments in which the program is delayed as a whole.

use crate::estimate::observe::observations;
use crate::estimate::summary::{self, Metric, PointSummary};
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

/// What the probes say, by the throughput of a point. `None` without any.
pub(crate) fn load(runs: &[Run], point: &PointSummary) -> Option<Load> {
    let probe = summary::targets(runs).into_iter().find(|t| t.kind == TargetKind::Probe)?;
    let kept_up: Vec<f64> = observations(runs, &probe, point, Metric::Throughput)
        .iter()
        // What the program would do more of in virtual time if it had kept up.
        .map(|one| one.log_ratio / -(-one.speedup).ln_1p())
        .collect();
    let share = (!kept_up.is_empty()).then(|| stats::mean(&kept_up))?;
    Some(if share > 0.5 { Load::Open } else { Load::Closed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::analyse;
    use crate::estimate::tests::{push, run};
    use crate::profile::TargetRecord;

    fn probed(count: u64) -> Run {
        let mut run = run();
        run.targets.push(TargetRecord {
            id: 9,
            kind: TargetKind::Probe,
            name: "everything".into(),
            file: None,
            line: None,
        });
        for _ in 0..2 {
            push(&mut run, None, 0.0, 1_000, 1);
            push(&mut run, Some(9), 0.2, count, 1);
        }
        push(&mut run, None, 0.0, 1_000, 1);
        run
    }

    #[test]
    fn load_that_does_not_wait_is_open() {
        assert_eq!(analyse(&[probed(1_010)]).load, Some(Load::Closed));
        assert_eq!(analyse(&[probed(960)]).load, Some(Load::Closed));
        assert_eq!(analyse(&[probed(1_240)]).load, Some(Load::Open));
        assert_eq!(analyse(&[run()]).load, None);
    }

    #[test]
    fn a_probe_is_no_target() {
        let analysis = analyse(&[probed(1_000)]);
        assert!(analysis.targets.is_empty());
        assert_eq!(analysis.experiments, 0);
    }
}
