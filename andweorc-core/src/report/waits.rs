//! The part of the text report on waits and queues: whether the program waits or works.

use crate::estimate::{Analysis, WaitSummary};
use crate::plain;
use crate::profile::Run;
use std::fmt::Write;

/// A wait is worth a line from this share of the wall time on, summed over all who wait.
const LONG: f64 = 0.05;

/// So many waits are shown.
const SHOWN: usize = 6;

/// Writes how busy the program was, and its longest waits.
pub(super) fn write(out: &mut String, runs: &[Run], analysis: &Analysis) {
    let samples = || runs.iter().flat_map(|run| &run.samples);
    let real_ns: u64 = samples().map(|samples| samples.real_ns).sum();
    let cpu_ns: u64 = samples().map(|samples| samples.cpu_ns).sum();
    let Some(run) = runs.first().filter(|_| real_ns > 0) else { return };
    let used = cpu_ns as f64 / real_ns as f64;
    let long: Vec<&WaitSummary> = analysis
        .waits
        .iter()
        .filter(|wait| wait.total_ns as f64 >= LONG * real_ns as f64)
        .take(SHOWN)
        .collect();
    let mut put = |text: String| writeln!(out, "{text}").expect("memory to write to");
    put(format!("\nUndelayed it used {used:.1} of {} cores.", run.header.cores));
    if long.is_empty() {
        return;
    }
    put("It waited longest here (to test one, name it in ANDWEORC_TARGETS as `wait:NAME`):".into());
    for wait in long {
        put(format!("   - {}", describe(wait)));
    }
}

/// `wait payment (src/shop.rs:12): 2.1 ms each: 98 % for timers and I/O, 1 % for other tasks, 1 % in the run queue (20 us)`
fn describe(wait: &WaitSummary) -> String {
    let mut text = format!("wait {}", plain::name(&wait.name));
    if let (Some(file), Some(line)) = (&wait.file, wait.line) {
        let place = format!("{}:{line}", plain::name(file));
        if !wait.name.ends_with(&place) {
            text += &format!(" ({place})");
        }
    }
    let each = |ns: u64| time(ns as f64 / wait.count as f64);
    text += &format!(": {} each", each(wait.total_ns));
    let by = wait.by;
    let known = by.outside_ns + by.task_ns + by.queue_ns;
    if known == 0 {
        return text + ", in tasks that are not profiled";
    }
    let percent = |ns: u64| 100.0 * ns as f64 / known as f64;
    text + &format!(
        ", {:.0} % for timers and I/O, {:.0} % for other tasks, {:.0} % in the run queue ({})",
        percent(by.outside_ns),
        percent(by.task_ns),
        percent(by.queue_ns),
        each(by.queue_ns)
    )
}

fn time(ns: f64) -> String {
    if ns >= 1e6 { format!("{:.1} ms", ns / 1e6) } else { format!("{:.0} us", ns / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::WaitTime;

    #[test]
    fn says_what_a_wait_was_for() {
        let mut wait = WaitSummary {
            name: "pay".into(),
            file: Some("src/shop.rs".into()),
            line: Some(3),
            count: 10,
            total_ns: 21_000_000,
            by: WaitTime { outside_ns: 18_900_000, task_ns: 1_890_000, queue_ns: 210_000 },
        };
        assert_eq!(
            describe(&wait),
            "wait pay (src/shop.rs:3): 2.1 ms each, 90 % for timers and I/O, 9 % for other tasks, 1 % in the run queue (21 us)"
        );
        wait.by = WaitTime::default();
        assert_eq!(
            describe(&wait),
            "wait pay (src/shop.rs:3): 2.1 ms each, in tasks that are not profiled"
        );
    }
}
