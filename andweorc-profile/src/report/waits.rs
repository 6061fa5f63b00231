//! The longest waits that nobody tested: what work alone can't make faster.

use crate::estimate::{Analysis, WaitSummary};
use crate::report::words::time;
use crate::{Run, TargetKind};

/// A wait is worth a line from this share of the wall time on, summed over all who wait.
const LONG: f64 = 0.05;

/// So much of what a wait was for is told: the largest parts, from this share on in percent.
const PARTS: usize = 2;
const LEAST_PART: f64 = 4.5;

/// A wait that was not tested.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Wait<'a> {
    /// All that is known of it.
    pub summary: &'a WaitSummary,
    /// How long it is, and for what: `2.2 ms each, 99 % timers and I/O`.
    pub words: String,
}

/// The long waits that no experiment was held on, the longest in all first.
pub fn untested_waits<'a>(runs: &[Run], analysis: &'a Analysis) -> Vec<Wait<'a>> {
    let real_ns: u64 = runs.iter().flat_map(|run| &run.samples).map(|it| it.real_ns).sum();
    let tested = |wait: &WaitSummary| {
        analysis.targets.iter().any(|target| {
            target.kind == TargetKind::Wait
                && (&target.name, &target.file, target.line) == (&wait.name, &wait.file, wait.line)
        })
    };
    let is_long = |wait: &&WaitSummary| {
        // A wait for a processor is a wait for no one else.
        let waited_ns = wait.total_ns.saturating_sub(wait.by.queue_ns);
        wait.count > 0 && waited_ns as f64 >= LONG * real_ns as f64 && !tested(wait)
    };
    let wait = |summary| Wait { summary, words: words(summary) };
    analysis.waits.iter().filter(is_long).map(wait).collect()
}

fn words(wait: &WaitSummary) -> String {
    let each = format!("{} each", time(wait.total_ns as f64 / wait.count as f64));
    let by = wait.by;
    let known = by.outside_ns + by.task_ns + by.queue_ns;
    if known == 0 {
        return format!("{each}, in tasks that are not profiled");
    }
    let outside = match by.timer_ns {
        None => [(by.outside_ns, "timers and I/O"), (0, "")],
        Some(timers) => [(timers, "timers"), (by.outside_ns.saturating_sub(timers), "I/O")],
    };
    let [one, other] = outside;
    let mut parts = [one, other, (by.task_ns, "other tasks"), (by.queue_ns, "run queue")]
        .map(|(ns, what)| (100.0 * ns as f64 / known as f64, what));
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let told = parts.iter().filter(|(percent, _)| *percent >= LEAST_PART).take(PARTS);
    let told: Vec<String> = told.map(|(percent, what)| format!("{percent:.0} % {what}")).collect();
    format!("{each}, {}", told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WaitTime;

    #[test]
    fn says_what_a_wait_was_for() {
        let mut wait = WaitSummary {
            name: "pay".into(),
            file: Some("src/shop.rs".into()),
            line: Some(3),
            count: 10,
            total_ns: 21_000_000,
            by: WaitTime {
                outside_ns: 1_890_000,
                timer_ns: None,
                task_ns: 18_900_000,
                queue_ns: 210_000,
            },
        };
        assert_eq!(words(&wait), "2.10 ms each, 90 % other tasks, 9 % timers and I/O");
        wait.by.timer_ns = Some(210_000);
        assert_eq!(words(&wait), "2.10 ms each, 90 % other tasks, 8 % I/O");
        wait.by.timer_ns = Some(1_890_000);
        assert_eq!(words(&wait), "2.10 ms each, 90 % other tasks, 9 % timers");
        wait.by = WaitTime::default();
        assert_eq!(words(&wait), "2.10 ms each, in tasks that are not profiled");
    }
}
