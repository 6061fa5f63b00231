//! Lines that allocate, by the call chains of sampled allocations.

use crate::{AllocationGroup, AllocationStacksRecord, Run};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Memory that one line allocates, in what it calls too.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AllocationLine {
    /// The innermost function in scope; where none is, the innermost that is known.
    pub function: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line, where known.
    pub line: Option<u32>,
    /// Bytes allocated per second, as the samples tell.
    pub bytes_per_s: f64,
    /// Allocations per second, as the samples tell.
    pub count_per_s: f64,
    /// Part of all sampled bytes, 0 to 1.
    pub part: f64,
    /// Samples that tell it.
    pub samples: u64,
}

/// Part that a thread has in what was allocated outside of all targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThreadPart {
    /// The name of the thread.
    pub name: String,
    /// Part of the sampled bytes, 0 to 1.
    pub part: f64,
}

/// The lines of all runs that allocate, the most bytes first.
pub(crate) fn allocation_lines(runs: &[Run]) -> Vec<AllocationLine> {
    type Place<'a> = (&'a str, Option<&'a str>, Option<u32>);
    let mut sums: HashMap<Place<'_>, [u64; 3]> = HashMap::new();
    let mut real_ns: u64 = 0;
    for record in runs.iter().flat_map(|run| &run.allocation_stacks) {
        real_ns = real_ns.saturating_add(record.real_ns);
        for group in &record.groups {
            for (node, at) in group.stacks.iter().zip(lines_of(group, record)) {
                let frame = &record.frames[at];
                let sum = sums.entry((&frame.name, frame.file.as_deref(), frame.line)).or_default();
                for (sum, more) in sum.iter_mut().zip([node.bytes, node.count, node.samples]) {
                    *sum = sum.saturating_add(more);
                }
            }
        }
    }
    sums.retain(|_, [_, _, samples]| *samples > 0);
    let all = sums.values().map(|[bytes, ..]| *bytes as f64).sum::<f64>().max(1.0);
    let seconds = real_ns.max(1) as f64 / 1e9;
    let mut lines: Vec<AllocationLine> = sums
        .into_iter()
        .map(|((function, file, line), [bytes, count, samples])| AllocationLine {
            function: function.to_owned(),
            file: file.map(str::to_owned),
            line,
            bytes_per_s: bytes as f64 / seconds,
            count_per_s: count as f64 / seconds,
            part: bytes as f64 / all,
            samples,
        })
        .collect();
    lines.sort_by(|a, b| {
        let place = |it: &AllocationLine| (it.file.clone(), it.line, it.function.clone());
        b.bytes_per_s.total_cmp(&a.bytes_per_s).then_with(|| place(a).cmp(&place(b)))
    });
    lines
}

/// For each chain of a group the frame that it is charged to: the innermost one in scope, or else
/// the innermost.
fn lines_of(group: &AllocationGroup, record: &AllocationStacksRecord) -> Vec<usize> {
    // For each the innermost frame in scope so far, and the innermost of all.
    let mut charged: Vec<(Option<usize>, usize)> = Vec::with_capacity(group.stacks.len());
    for node in &group.stacks {
        let frame = node.frame as usize;
        let around = node.parent.and_then(|parent| charged[parent as usize].0);
        charged.push((Some(frame).filter(|&it| record.frames[it].own).or(around), frame));
    }
    charged.into_iter().map(|(own, innermost)| own.unwrap_or(innermost)).collect()
}

/// The threads that allocate outside of all targets in all runs, the most bytes first.
pub(super) fn threads_outside(runs: &[Run]) -> Vec<ThreadPart> {
    let mut sums: HashMap<&str, u64> = HashMap::new();
    let groups = runs.iter().flat_map(|run| &run.allocation_stacks).flat_map(|it| &it.groups);
    for group in groups.filter(|group| group.target.is_none()) {
        let bytes = group.stacks.iter().fold(0, |sum: u64, it| sum.saturating_add(it.bytes));
        let sum = sums.entry(group.thread.as_deref().unwrap_or_default()).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let all = sums.values().map(|&bytes| bytes as f64).sum::<f64>().max(1.0);
    let mut sums: Vec<(&str, u64)> = sums.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    sums.sort_by_key(|&(name, bytes)| (Reverse(bytes), name));
    let part = |(name, bytes): (&str, u64)| (name.to_owned(), bytes as f64 / all);
    sums.into_iter().map(part).map(|(name, part)| ThreadPart { name, part }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::run;
    use crate::{AllocationFrame, AllocationNode};

    fn frame(name: &str, line: u32, own: bool) -> AllocationFrame {
        AllocationFrame {
            name: name.into(),
            file: Some("src/shop.rs".into()),
            line: Some(line),
            own,
        }
    }

    fn node(parent: Option<u32>, frame: u32, bytes: u64) -> AllocationNode {
        AllocationNode { parent, frame, samples: u64::from(bytes > 0), bytes, count: bytes / 10 }
    }

    /// A run in which a target and two threads allocate.
    fn allocating() -> Run {
        let group = |target, thread: Option<&str>, stacks| AllocationGroup {
            target,
            thread: thread.map(str::to_owned),
            stacks,
        };
        let mut run = run();
        run.allocation_stacks = vec![AllocationStacksRecord {
            real_ns: 500_000_000,
            frames: vec![
                frame("shop::handle", 10, true),
                frame("shop::price", 20, true),
                frame("alloc::vec::Vec::push", 9, false),
                frame("db::open", 1, false),
            ],
            groups: vec![
                group(
                    Some(3),
                    None,
                    vec![
                        node(None, 0, 100),
                        node(Some(0), 1, 0),
                        node(Some(1), 2, 300),
                        node(Some(0), 2, 200),
                    ],
                ),
                group(None, Some("db"), vec![node(None, 3, 300)]),
                group(None, Some("main"), vec![node(None, 0, 100)]),
            ],
            samples: 5,
            ..AllocationStacksRecord::default()
        }];
        run
    }

    #[test]
    fn chain_is_charged_to_its_innermost_frame_in_scope() {
        let lines = allocation_lines(&[allocating()]);
        let shown: Vec<_> =
            lines.iter().map(|it| (&*it.function, it.line, it.bytes_per_s, it.samples)).collect();
        let expected = [
            ("shop::handle", Some(10), 800.0, 3),
            ("db::open", Some(1), 600.0, 1),
            ("shop::price", Some(20), 600.0, 1),
        ];
        assert_eq!(shown, expected);
        assert_eq!((lines[0].part, lines[0].count_per_s), (0.4, 80.0));
        // Two equal runs allocate no more a second than one.
        assert_eq!(allocation_lines(&[allocating(), allocating()])[0].bytes_per_s, 800.0);
    }

    #[test]
    fn threads_outside_of_targets_are_told_by_their_part() {
        let threads = threads_outside(&[allocating()]);
        let shown: Vec<_> = threads.iter().map(|it| (&*it.name, it.part)).collect();
        assert_eq!(shown, [("db", 0.75), ("main", 0.25)]);
        assert_eq!(threads_outside(&[run()]), []);
    }
}
