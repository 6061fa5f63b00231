//! Waits of tasks and spans, by what they waited for, as they were before the first experiment.

use crate::{Run, TargetKind, TargetRecord, TargetTime, WaitTime};
use serde::Serialize;
use std::collections::HashMap;

/// A wait of tasks or spans.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WaitSummary {
    /// The task's or span's name.
    pub name: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line, where known.
    pub line: Option<u32>,
    /// How many waits there were.
    pub count: u64,
    /// Their time in all, ns.
    pub total_ns: u64,
    /// Time of the waits by what ended them, as far as it is known.
    #[serde(flatten)]
    pub by: WaitTime,
}

/// The waits of all runs, the longest in all first.
pub(crate) fn waits(runs: &[Run]) -> Vec<WaitSummary> {
    let mut indices = HashMap::new();
    let mut all: Vec<WaitSummary> = Vec::new();
    for run in runs {
        let mut times: HashMap<u32, Vec<&TargetTime>> = HashMap::new();
        for time in run.samples.iter().flat_map(|samples| &samples.targets) {
            if time.count > 0 {
                times.entry(time.target).or_default().push(time);
            }
        }
        for record in run.targets.iter().filter(|record| record.kind == TargetKind::Wait) {
            for time in times.get(&record.id).into_iter().flatten() {
                let index = *indices.entry(record.identity()).or_insert_with(|| {
                    all.push(nothing_known(record));
                    all.len() - 1
                });
                let wait = &mut all[index];
                let by = time.waits.unwrap_or_default();
                wait.count += time.count;
                wait.total_ns += time.busy_ns;
                wait.by.outside_ns += by.outside_ns;
                // Known of all or of none.
                wait.by.timer_ns = wait.by.timer_ns.zip(by.timer_ns).map(|(one, two)| one + two);
                wait.by.task_ns += by.task_ns;
                wait.by.queue_ns += by.queue_ns;
            }
        }
    }
    all.sort_by_key(|wait| std::cmp::Reverse(wait.total_ns));
    all
}

fn nothing_known(record: &TargetRecord) -> WaitSummary {
    WaitSummary {
        name: record.name.clone(),
        file: record.file.clone(),
        line: record.line,
        count: 0,
        total_ns: 0,
        by: WaitTime { timer_ns: Some(0), ..WaitTime::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SamplesRecord;
    use crate::estimate::tests::run;

    #[test]
    fn waits_of_all_runs_are_added_up_and_the_longest_is_first() {
        let mut one = run();
        for (id, name) in [(7, "short"), (8, "long")] {
            one.targets.push(TargetRecord {
                id,
                kind: TargetKind::Wait,
                name: name.into(),
                file: None,
                line: None,
            });
        }
        let time = |target, busy_ns| TargetTime {
            target,
            busy_ns,
            count: 2,
            waits: Some(WaitTime {
                outside_ns: busy_ns - 3,
                timer_ns: (target == 7).then_some(30),
                task_ns: 2,
                queue_ns: 1,
            }),
        };
        one.samples.push(SamplesRecord {
            real_ns: 1000,
            cpu_ns: 1000,
            others_ns: None,
            source: "timed".into(),
            targets: vec![time(7, 100), time(8, 900)],
            lost: 0,
        });
        let waits = waits(&[one.clone(), one]);
        let shown: Vec<_> =
            waits.iter().map(|w| (w.name.as_str(), w.count, w.total_ns, w.by.outside_ns)).collect();
        assert_eq!(shown, [("long", 4, 1800, 1794), ("short", 4, 200, 194)]);
        assert_eq!([0, 1].map(|i| waits[i].by.timer_ns), [None, Some(60)]);
    }
}
