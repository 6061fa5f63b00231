//! Polls by kind of task, and the long ones by place, of all runs.

use crate::estimate::summary::TargetSummary;
use crate::{LongPoll, Run, TargetKind, TargetRecord, TimeHistogram};
use serde::Serialize;
use std::cmp::Reverse;

/// Lengths of something in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lengths {
    /// How many there were.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// One in a hundred is longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them, as (ns, count) pairs in rising order, of which each next is at least twice as
    /// long: how many were no longer than that, and longer than the one before.
    pub octaves: Vec<(u64, u64)>,
}

impl From<&TimeHistogram> for Lengths {
    fn from(times: &TimeHistogram) -> Lengths {
        let quantile = |part| times.quantile(part).unwrap_or(0);
        let mut octaves: Vec<(u64, u64)> = Vec::new();
        for &(ns, count) in &times.bins {
            let end = ns.max(1).checked_next_power_of_two().unwrap_or(u64::MAX);
            match octaves.last_mut() {
                Some((last, sum)) if *last == end => *sum = sum.saturating_add(count),
                _ => octaves.push((end, count)),
            }
        }
        Lengths {
            count: times.count(),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            max_ns: times.max_ns,
            octaves,
        }
    }
}

/// Polls of one kind of task.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PollSummary {
    /// The task's name.
    pub name: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line, where known.
    pub line: Option<u32>,
    /// Time in all polls, ns.
    pub total_ns: u64,
    /// How long the polls were.
    pub polls: Lengths,
    /// For how long the task had been ready before it was polled, where that is known.
    pub delays: Lengths,
}

/// Long polls at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LongPollSummary {
    /// The task's name.
    pub name: String,
    /// Source file of the task, where known.
    pub task_file: Option<String>,
    /// Line of the task, where known.
    pub task_line: Option<u32>,
    /// Where, how long, and how often.
    #[serde(flatten)]
    pub at: LongPollAt,
}

/// Place of long polls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LongPollAt {
    /// The innermost function in scope.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
    /// Function out of scope that it had called.
    pub call: Option<String>,
    /// System call that it slept in.
    pub syscall: Option<String>,
    /// How many long polls there were.
    pub count: u64,
    /// Of these, how many slept when they were looked at.
    pub asleep: u64,
    /// Their time in all, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
}

/// The long polls of all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LongPolls {
    /// The shortest poll that is long, ns.
    pub threshold_ns: u64,
    /// For how long polls were watched, ns.
    pub watched_ns: u64,
    /// The places, the most time first.
    pub places: Vec<LongPollSummary>,
    /// Long polls of which no place is told, since there were too many places.
    pub merged: u64,
    /// Long polls of tasks that had handed their worker over, which are left out.
    pub handed_over: u64,
}

/// The polls of all runs, by time in all, the most first.
pub(super) fn polls(runs: &[Run]) -> Vec<PollSummary> {
    let mut all: Vec<(&TargetRecord, TimeHistogram, TimeHistogram)> = Vec::new();
    for run in runs {
        for kind in run.polls.iter().flat_map(|record| &record.kinds) {
            let Some(task) = run.targets.iter().find(|it| it.id == kind.target) else { continue };
            match all.iter_mut().find(|(known, ..)| known.identity() == task.identity()) {
                None => all.push((task, kind.polls.clone(), kind.delays.clone())),
                Some((_, polls, delays)) => {
                    polls.add(&kind.polls);
                    delays.add(&kind.delays);
                }
            }
        }
    }
    all.sort_by_key(|(_, polls, _)| Reverse(polls.sum_ns));
    let summary = |(task, polls, delays): (&TargetRecord, TimeHistogram, TimeHistogram)| {
        let TargetRecord { name, file, line, .. } = task.clone();
        let total_ns = polls.sum_ns;
        PollSummary { name, file, line, total_ns, polls: (&polls).into(), delays: (&delays).into() }
    };
    all.into_iter().map(summary).collect()
}

/// The long polls of all runs; `None` where nobody looked for any.
pub(super) fn long_polls(runs: &[Run]) -> Option<LongPolls> {
    let mut all: Option<LongPolls> = None;
    for run in runs {
        for record in &run.long_polls {
            let all = all.get_or_insert_default();
            all.threshold_ns = all.threshold_ns.max(record.threshold_ns);
            all.watched_ns = all.watched_ns.saturating_add(record.watched_ns);
            all.merged = all.merged.saturating_add(record.merged);
            all.handed_over = all.handed_over.saturating_add(record.handed_over);
            for poll in &record.polls {
                let task = run.targets.iter().find(|it| it.id == poll.target);
                all.add(task, poll);
            }
        }
    }
    if let Some(all) = &mut all {
        all.places.sort_by_key(|place| Reverse(place.at.total_ns));
    }
    all
}

impl LongPolls {
    fn add(&mut self, task: Option<&TargetRecord>, poll: &LongPoll) {
        let Some(TargetRecord { name, file, line, .. }) = task.cloned() else { return };
        let new = LongPollSummary {
            name,
            task_file: file,
            task_line: line,
            at: LongPollAt {
                function: poll.function.clone(),
                file: poll.file.clone(),
                line: poll.line,
                call: poll.call.clone(),
                syscall: poll.syscall.clone(),
                count: poll.count,
                asleep: poll.asleep,
                total_ns: poll.total_ns,
                longest_ns: poll.longest_ns,
            },
        };
        match self.places.iter_mut().find(|place| place.is_at_the_place_of(&new)) {
            None => self.places.push(new),
            Some(LongPollSummary { at, .. }) => {
                at.count = at.count.saturating_add(poll.count);
                at.asleep = at.asleep.saturating_add(poll.asleep);
                at.total_ns = at.total_ns.saturating_add(poll.total_ns);
                at.longest_ns = at.longest_ns.max(poll.longest_ns);
            }
        }
    }
}

impl LongPollSummary {
    fn is_at_the_place_of(&self, other: &LongPollSummary) -> bool {
        let place = |it: &LongPollSummary| {
            let at = it.at.clone();
            let task = (it.name.clone(), it.task_file.clone(), it.task_line);
            (task, at.function, at.file, at.line, at.call, at.syscall)
        };
        place(self) == place(other)
    }

    /// Whether a target of an experiment is this kind of task, or the function at its place.
    pub(crate) fn is_of(&self, target: &TargetSummary) -> bool {
        match target.kind {
            TargetKind::Task => {
                (&target.name, &target.file, target.line)
                    == (&self.name, &self.task_file, self.task_line)
            }
            TargetKind::Function => self.at.function.as_ref() == Some(&target.name),
            _ => false,
        }
    }
}

impl PollSummary {
    /// Whether a target of an experiment is this kind of task.
    pub(crate) fn is_of(&self, target: &TargetSummary) -> bool {
        target.kind == TargetKind::Task
            && (&target.name, &target.file, target.line) == (&self.name, &self.file, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::run;
    use crate::{KindPolls, LongPollsRecord, PollsRecord};

    fn task(id: u32, name: &str) -> TargetRecord {
        TargetRecord::new(id, TargetKind::Task, name)
    }

    #[test]
    fn polls_of_one_kind_in_two_runs_are_together() {
        let times = |bins: &[(u64, u64)]| TimeHistogram {
            sum_ns: bins.iter().map(|(ns, count)| ns * count).sum(),
            max_ns: bins.last().map_or(0, |(ns, _)| *ns),
            bins: bins.to_vec(),
        };
        let of = |id, polls: &[(u64, u64)]| {
            let mut run = run();
            run.targets.push(task(id, "serve"));
            let kind = KindPolls { target: id, polls: times(polls), delays: times(&[]) };
            run.polls.push(PollsRecord { kinds: vec![kind], ..PollsRecord::default() });
            run
        };
        let all = polls(&[of(41, &[(1_000, 98), (3_000, 1)]), of(42, &[(1_000, 1), (90_000, 1)])]);
        let [serve] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (serve.polls.count, serve.polls.p50_ns, serve.polls.max_ns),
            (101, 1_000, 90_000)
        );
        assert_eq!(serve.polls.p99_ns, 3_000);
        assert_eq!(serve.polls.octaves, [(1_024, 99), (4_096, 1), (131_072, 1)]);
        assert_eq!(serve.delays, Lengths::default());
    }

    #[test]
    fn long_polls_of_one_place_are_together_and_the_most_time_is_first() {
        let mut run = run();
        run.targets.push(task(41, "serve"));
        let poll = |line, total_ns| LongPoll {
            target: 41,
            count: 1,
            total_ns,
            longest_ns: total_ns,
            line: Some(line),
            ..LongPoll::default()
        };
        let polls = vec![poll(1, 20), poll(2, 30), poll(1, 15)];
        run.long_polls.push(LongPollsRecord { polls, ..LongPollsRecord::default() });
        let found = long_polls(&[run]).unwrap();
        let shown: Vec<_> = found
            .places
            .iter()
            .map(|it| (it.at.line, it.at.count, it.at.total_ns, it.at.longest_ns))
            .collect();
        assert_eq!(shown, [(Some(1), 2, 35, 20), (Some(2), 1, 30, 30)]);
        assert_eq!(long_polls(&[self::run()]), None);
    }
}
