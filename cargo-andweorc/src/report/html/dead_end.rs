//! A page that has nothing to show says why, and what to do.

use andweorc_profile::estimate::Analysis;
use andweorc_profile::plain;
use andweorc_profile::report::why_nothing;
use andweorc_profile::{Run, TargetKind, TargetRecord};
use serde::Serialize;

/// A page without a ranking.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct DeadEnd {
    /// Why there is none.
    what: String,
    /// Steps to take, the likeliest first. Code stands between backticks.
    todo: Vec<String>,
}

/// So many targets are named as those that could be tested.
const NAMED: usize = 5;

/// The reason why there is no ranking, and what to do; `None` where there is one.
pub(super) fn dead_end(runs: &[Run], analysis: &Analysis) -> Option<DeadEnd> {
    if !analysis.targets.is_empty() {
        return None;
    }
    let load = "Put load on the program while it is profiled: `cargo andweorc run --load 'COMMAND'` starts it when the program is ready.";
    let (what, mut todo) = if analysis.points.is_empty() {
        (why_nothing(runs).to_owned(), vec![load.to_owned()])
    } else if analysis.experiments > 0 {
        let quiet = "See to it that nothing else runs on the machine: `cargo andweorc doctor` says how fit it is.";
        let longer = "Give the program more time: `--duration 2m`.";
        let what = "The experiments tell nothing: no point was hit in them, or other work on the machine spoiled them.";
        (what.to_owned(), [load, quiet, longer].map(str::to_owned).to_vec())
    } else {
        ("No target was tested.".to_owned(), untested(runs))
    };
    if runs.last().is_some_and(|run| run.end.is_none() && !run.torn) {
        todo.insert(0, "If the program still runs, load this page again in a while: a run begins with a look around, and experiments follow.".to_owned());
    }
    Some(DeadEnd { what, todo })
}

/// Steps for a profile without an experiment on any target.
fn untested(runs: &[Run]) -> Vec<String> {
    let mut seen: Vec<&TargetRecord> = runs
        .iter()
        .flat_map(|run| &run.targets)
        .filter(|it| it.kind != TargetKind::Probe)
        .collect();
    seen.sort_by_key(|target| target.kind == TargetKind::Wait);
    let longer = "Give the program more time: `--duration 2m`. It ended, or was stopped, before the first experiment.";
    let Some(first) = seen.first() else {
        return vec![
            "Mark the parts that could be faster: `#[tracing::instrument]` on a function, or `andweorc::spawn` for its tasks.".to_owned(),
            "Or test functions as they are, by samples: `cargo andweorc run --targets functions`.".to_owned(),
        ];
    };
    let names: Vec<String> =
        seen.iter().take(NAMED).map(|target| format!("`{}`", plain::name(&target.name))).collect();
    vec![
        longer.to_owned(),
        format!(
            "Or name what to test: `--targets {}`. Seen were {}{}.",
            plain::name(&first.name),
            names.join(", "),
            if seen.len() > NAMED {
                format!(" and {} more", seen.len() - NAMED)
            } else {
                String::new()
            }
        ),
    ]
}
