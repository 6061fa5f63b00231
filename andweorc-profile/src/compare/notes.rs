//! Reasons why two sides are less comparable, as their headers tell.

use crate::{Header, Run};
use std::collections::BTreeSet;
use std::time::Duration;

/// One sentence for each thing that differs and should not.
pub(crate) fn notes(a: &[Run], b: &[Run]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differ = |what: &str, so: &str, of: fn(&Header) -> String| {
        let values =
            |runs: &[Run]| -> BTreeSet<String> { runs.iter().map(|run| of(&run.header)).collect() };
        let (a, b) = (values(a), values(b));
        if a != b {
            let list = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(", ");
            notes.push(format!("{what} differ: A {}, B {}; {so}", list(a), list(b)));
        }
    };
    differ("the programs", "is it the same service?", |header| header.program.clone());
    differ("the hosts", "a change may be that of the machine", |header| header.host.clone());
    differ("the numbers of cores", "a change may be that of the machine", |header| {
        header.cores.to_string()
    });
    differ("the versions of tokio", "a change may be tokio's", |header| {
        header.tokio.clone().unwrap_or_else(|| "none".to_owned())
    });
    differ("the builds of tokio", "other tasks are seen, and other targets", |header| {
        header.build_of_tokio().unwrap_or("unknown").to_owned()
    });
    differ("the versions of andweorc", "impacts may differ for that reason", |header| {
        header.andweorc.clone()
    });
    differ("the speedups", "impacts compare best at the same speedups", |header| {
        header.speedups.iter().map(f64::to_string).collect::<Vec<_>>().join("/")
    });
    differ("the time budgets", "short runs are more at the mercy of a warm-up", |header| {
        humantime::format_duration(Duration::from_nanos(header.duration_ns)).to_string()
    });
    let builds = |runs: &[Run]| -> BTreeSet<Option<String>> {
        runs.iter().map(|run| run.header.build_id.clone()).collect()
    };
    let (of_a, of_b) = (builds(a), builds(b));
    if of_a == of_b && of_a.iter().all(Option::is_some) && !of_a.is_empty() {
        notes.push(
            "A and B are the same build: what differs is noise, the load, or how they were started"
                .to_owned(),
        );
    }
    if a.len().min(b.len()) == 1 {
        notes.push(
            "with one run on a side the drift between runs is assumed, not measured (2 % of the throughput, 5 % of a p99, standard \
             deviations); runs of A and B in turns would measure it"
                .to_owned(),
        );
    }
    notes
}
