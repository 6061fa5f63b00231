//! The locks and channels at which the program's tasks wait for each other.

use crate::TargetKind;
use crate::estimate::{Analysis, Edge, EdgeSite, Party};
use crate::plain;
use crate::report::sections::named;

/// A site is worth a line from this share of the waiter's time on.
const LONG: f64 = 0.05;

/// The sites where a waiter spends a good part of its time, the longest in all first: `task:handle
/// waits for task:handle: 12 % of its time, in Mutex::lock at src/main.rs:40`.
pub fn wait_sites(analysis: &Analysis) -> Vec<String> {
    let mut all: Vec<(f64, String)> = Vec::new();
    for edge in &analysis.edges {
        for site in &edge.sites {
            let share = edge.waiter_share * site.share;
            if share >= LONG
                && let Some(words) = words(edge, site, share)
            {
                all.push((edge.ns as f64 * site.share, words));
            }
        }
    }
    all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    all.into_iter().map(|(_, words)| words).collect()
}

fn words(edge: &Edge, site: &EdgeSite, share: f64) -> Option<String> {
    let waker = label(&edge.waker).unwrap_or_else(|| "another task".to_owned());
    let percent = 100.0 * share;
    let waiter = label(&edge.waiter)?;
    Some(format!("{waiter} waits for {waker}: {percent:.0} % of its time{}", place(site)))
}

fn label(party: &Party) -> Option<String> {
    match party {
        Party::Target { kind: kind @ (TargetKind::Span | TargetKind::Task), name, .. } => {
            Some(named(*kind, name))
        }
        _ => None,
    }
}

/// The place of a wait: `, in Mutex::lock at src/main.rs:40`.
pub fn place(site: &EdgeSite) -> String {
    let mut words = String::new();
    if let Some(primitive) = site.call.as_ref().or(site.function.as_ref()) {
        let parts: Vec<&str> = primitive.split("::").collect();
        let short = parts[parts.len().saturating_sub(2)..].join("::");
        words += &format!(", in {}", plain::name(&short));
    }
    if let (Some(file), Some(line)) = (&site.file, site.line) {
        words += &format!(" at {}:{line}", plain::name(file));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{analyse, tests::measured};
    use crate::report::{Looks, text};
    use crate::{TargetRecord, WaitSite, WallRecord, WallStack, WallWaker};

    #[test]
    fn lock_where_a_task_spends_a_good_part_of_its_time_is_told() {
        let mut run = measured(3);
        run.targets.push(TargetRecord::new(91, TargetKind::Task, "handle"));
        let site = |ns, line| WaitSite {
            waiter: Some(91),
            by: Some(91),
            ns,
            samples: 5,
            call: Some("tokio::sync::mutex::Mutex::lock".into()),
            function: Some("shop::handle".into()),
            file: Some("src/main.rs".into()),
            line: Some(line),
        };
        let stack = WallStack {
            target: Some(91),
            count: 9,
            running_ns: 750,
            tasks: vec![WallWaker { by: Some(91), ns: 250 }],
            ..WallStack::default()
        };
        let mut record = WallRecord { stacks: vec![stack], ..WallRecord::default() };
        record.wait_sites.sites = vec![site(120, 40), site(30, 50)];
        run.wall.push(record);
        let runs = [run];
        let analysis = analyse(&runs);
        let first = "task:handle waits for task:handle: 20 % of its time, in Mutex::lock at \
                     src/main.rs:40";
        let told = wait_sites(&analysis);
        assert_eq!((told[0].as_str(), told.len()), (first, 2));
        let report = text(&runs, &analysis, Looks::default());
        assert!(report.contains("WAITS FOR EACH OTHER"), "{report}");
        assert!(report.contains("  task:handle waits for task:handle: 20 % of"), "{report}");
        assert!(wait_sites(&analyse(&[measured(3)])).is_empty());
    }
}
