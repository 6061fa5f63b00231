//! Allocations by target, over the stretches without delays of all runs.

use super::allocation_lines::{ThreadPart, threads_outside};
use crate::{AllocationsRecord, Run, TargetAllocations, TargetKind, TargetRecord};
use serde::Serialize;
use std::cmp::Reverse;

/// Memory that one target allocates.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AllocationSummary {
    /// Its kind; `None` for what is allocated outside of all targets.
    pub kind: Option<TargetKind>,
    /// Its name; `outside` for what is allocated outside of all targets.
    pub name: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line, where known.
    pub line: Option<u32>,
    /// Bytes allocated in all stretches.
    pub bytes: u64,
    /// Allocations in all stretches.
    pub count: u64,
    /// Bytes allocated per second.
    pub bytes_per_s: f64,
    /// Allocations per second.
    pub count_per_s: f64,
    /// Part of the bytes that was freed in the poll, or the outermost span, in which it was
    /// allocated, 0 to 1. `None` outside of all targets, where it is not known.
    pub churn: Option<f64>,
    /// Bytes held at the end of the last stretch of the last run with this target.
    pub live_bytes: u64,
    /// Allocations held then.
    pub live_count: u64,
    /// The most bytes held at a time in any run.
    pub peak_bytes: u64,
    /// Outside of all targets: the threads that allocate there, as far as samples tell, the most
    /// bytes first.
    pub threads: Vec<ThreadPart>,
}

impl AllocationsRecord {
    /// Takes a later stretch of the same run together with this one.
    pub(crate) fn add(&mut self, later: AllocationsRecord) {
        self.seq = later.seq;
        self.real_ns += later.real_ns;
        for mut of in later.targets {
            match self.targets.iter_mut().find(|it| it.target == of.target) {
                None => self.targets.push(of),
                Some(sum) => {
                    of.bytes += sum.bytes;
                    of.count += sum.count;
                    of.freed_bytes += sum.freed_bytes;
                    of.freed_count += sum.freed_count;
                    of.churned_bytes += sum.churned_bytes;
                    of.churned_count += sum.churned_count;
                    *sum = of;
                }
            }
        }
    }
}

/// The allocations of all runs, by bytes, the most first. Targets that allocated nothing are left
/// out.
pub(crate) fn allocations(runs: &[Run]) -> Vec<AllocationSummary> {
    let mut all: Vec<AllocationSummary> = Vec::new();
    let mut churned: Vec<u64> = Vec::new();
    let mut real_ns = 0;
    for run in runs {
        let Some(sum) = run.allocations.iter().cloned().reduce(|mut sum, later| {
            sum.add(later);
            sum
        }) else {
            continue;
        };
        real_ns += sum.real_ns;
        for of in sum.targets {
            let record = of.target.and_then(|id| run.targets.iter().find(|it| it.id == id));
            let summary = summary(record, &of);
            match all.iter().position(|it| it.is_of_the_same(&summary)) {
                None => {
                    all.push(summary);
                    churned.push(of.churned_bytes);
                }
                Some(index) => {
                    let before = &mut all[index];
                    let (bytes, count) =
                        (before.bytes + summary.bytes, before.count + summary.count);
                    let peak_bytes = before.peak_bytes.max(summary.peak_bytes);
                    *before = AllocationSummary { bytes, count, peak_bytes, ..summary };
                    churned[index] += of.churned_bytes;
                }
            }
        }
    }
    for (of, churned) in all.iter_mut().zip(churned) {
        let seconds = real_ns.max(1) as f64 / 1e9;
        (of.bytes_per_s, of.count_per_s) = (of.bytes as f64 / seconds, of.count as f64 / seconds);
        // What was allocated before a stretch and freed in it is no more than what it allocated.
        let part = (churned as f64 / of.bytes.max(1) as f64).min(1.0);
        of.churn = of.kind.map(|_| part);
    }
    if let Some(outside) = all.iter_mut().find(|of| of.kind.is_none()) {
        outside.threads = threads_outside(runs);
    }
    all.retain(|of| of.count > 0);
    all.sort_by_key(|of| Reverse(of.bytes));
    all
}

fn summary(record: Option<&TargetRecord>, of: &TargetAllocations) -> AllocationSummary {
    AllocationSummary {
        kind: record.map(|it| it.kind),
        name: record.map_or_else(|| "outside".to_owned(), |it| it.name.clone()),
        file: record.and_then(|it| it.file.clone()),
        line: record.and_then(|it| it.line),
        bytes: of.bytes,
        count: of.count,
        bytes_per_s: 0.0,
        count_per_s: 0.0,
        churn: None,
        live_bytes: of.live_bytes,
        live_count: of.live_count,
        peak_bytes: of.peak_bytes,
        threads: Vec::new(),
    }
}

impl AllocationSummary {
    fn is_of_the_same(&self, other: &AllocationSummary) -> bool {
        let key = |it: &AllocationSummary| (it.kind, it.name.clone(), it.file.clone(), it.line);
        key(self) == key(other)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::estimate::tests::run;

    /// Allocations of a target: bytes and count, bytes churned, and bytes held.
    pub(crate) fn of(
        target: Option<u32>,
        [bytes, count, churned, live]: [u64; 4],
    ) -> TargetAllocations {
        TargetAllocations {
            target,
            bytes,
            count,
            freed_bytes: churned,
            freed_count: 1,
            churned_bytes: churned,
            churned_count: 1,
            live_bytes: live,
            live_count: 1,
            peak_bytes: 2 * live,
        }
    }

    /// A run with two stretches of half a second each.
    fn allocating() -> Run {
        let mut run = run();
        let stretch = |seq, targets| AllocationsRecord { seq, real_ns: 500_000_000, targets };
        run.targets = vec![TargetRecord::new(3, TargetKind::Span, "stock")];
        run.allocations = vec![
            stretch(None, vec![of(Some(3), [1_000, 10, 400, 90])]),
            stretch(Some(0), vec![of(None, [50, 2, 0, 7]), of(Some(3), [3_000, 20, 600, 40])]),
        ];
        run
    }

    #[test]
    fn stretches_are_added_up_and_what_is_held_is_that_of_the_last() {
        let all = allocations(&[allocating()]);
        let [stock, outside] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&*stock.name, &*outside.name), ("stock", "outside"));
        assert_eq!((stock.bytes_per_s, stock.count_per_s), (4_000.0, 30.0));
        assert_eq!((stock.churn, outside.churn), (Some(0.25), None));
        assert_eq!((stock.live_bytes, stock.peak_bytes), (40, 80));
        assert_eq!((outside.bytes_per_s, outside.kind), (50.0, None));
    }

    #[test]
    fn runs_are_taken_together_by_name_whatever_the_ids() {
        let mut other = allocating();
        other.targets[0].id = 8;
        for record in &mut other.allocations {
            record.targets.iter_mut().for_each(|it| it.target = it.target.map(|_| 8));
        }
        other.allocations[0].targets[0].bytes = 5_000;
        let all = allocations(&[allocating(), other]);
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].bytes_per_s, all[0].count_per_s), (6_000.0, 30.0));
        assert_eq!(all[0].churn, Some(2_000.0 / 12_000.0));
    }
}
