//! How long polls are, and how long their tasks were ready before, by kind of task.

use crate::latency::bins::{Bins, Key};
use crate::target::Target;
use crate::time::Nanos;
use andweorc_profile::{KindPolls, TimeHistogram};
use std::collections::HashMap;

/// So many kinds of tasks are told apart. Each has up to some kilobytes.
const MAX_KINDS: usize = 256;

/// Times of one sort.
#[derive(Debug, Default)]
struct Times {
    sum_ns: u64,
    max_ns: u64,
    bins: Bins,
}

impl Times {
    fn add(&mut self, time: Nanos) {
        let ns = u64::try_from(time.0).unwrap_or(0);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.bins.add_coarse(Key::of(ns));
    }

    fn take(&mut self) -> TimeHistogram {
        let Times { sum_ns, max_ns, bins } = std::mem::take(self);
        TimeHistogram { sum_ns, max_ns, bins: bins.pairs() }
    }
}

/// Polls by the id of the kind of task.
#[derive(Debug, Default)]
pub(super) struct PollTimes {
    kinds: HashMap<u32, [Times; 2]>,
    merged: u64,
}

impl PollTimes {
    /// Adds a poll of a kind of task. `delay` tells for how long it had been ready, if that is
    /// known.
    pub(super) fn add(&mut self, task: &Target, lasted: Nanos, delay: Option<Nanos>) {
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&task.id()) {
            self.merged += 1;
            return;
        }
        let [polls, delays] = self.kinds.entry(task.id()).or_default();
        polls.add(lasted);
        if let Some(delay) = delay {
            delays.add(delay);
        }
    }

    /// Adds what there is to the rows of other threads, and leaves nothing here. Returns how many
    /// polls are of kinds that are not told apart.
    pub(super) fn move_to(&mut self, rows: &mut Vec<KindPolls>) -> u64 {
        for (target, [mut polls, mut delays]) in self.kinds.drain() {
            let (polls, delays) = (polls.take(), delays.take());
            match rows.iter_mut().find(|row| row.target == target) {
                None => rows.push(KindPolls { target, polls, delays }),
                Some(row) => {
                    row.polls.add(&polls);
                    row.delays.add(&delays);
                }
            }
        }
        std::mem::take(&mut self.merged)
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = PollTimes::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::target;
    use andweorc_profile::TargetKind;

    #[test]
    fn polls_of_two_threads_are_one_row() {
        let task = target(TargetKind::Task, "poll times", None, None);
        let mut threads = [PollTimes::default(), PollTimes::default()];
        threads[0].add(task, Nanos(1_000), None);
        threads[1].add(task, Nanos(9_000), Some(Nanos(70)));
        threads[1].add(task, Nanos(-1), Some(Nanos(30)));
        let mut rows = Vec::new();
        let merged: u64 = threads.iter_mut().map(|times| times.move_to(&mut rows)).sum();
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(
            (row.target, merged, row.polls.count(), row.delays.count()),
            (task.id(), 0, 3, 2)
        );
        assert_eq!((row.polls.sum_ns, row.polls.max_ns, row.delays.max_ns), (10_000, 9_000, 70));
        assert_eq!(threads[0].move_to(&mut rows), 0);
        assert_eq!(rows.len(), 1);
    }

    #[test]
    fn kinds_beyond_the_limit_are_counted() {
        let mut times = PollTimes::default();
        for kind in 0..MAX_KINDS + 2 {
            let task = target(TargetKind::Task, &format!("poll times {kind}"), None, None);
            times.add(task, Nanos(1), None);
        }
        let mut rows = Vec::new();
        assert_eq!((times.move_to(&mut rows), rows.len()), (2, MAX_KINDS));
    }
}
