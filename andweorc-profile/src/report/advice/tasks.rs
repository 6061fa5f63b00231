//! Tasks that are busy, polled for little, spawned for little, or polled late.

use super::{Advice, Pattern, Seen, called, change, gain, samples_of, wait_of};
use crate::estimate::{Analysis, TargetSummary, WaitSummary};
use crate::report::words::time;
use crate::{Run, TargetKind, TargetRecord};

/// A task has no time to spare that is busy for this part of the time.
const BUSY: f64 = 0.85;

/// The time in which a task is busy or waits is all of its time, give or take this part.
const WHOLE: f64 = 0.1;

/// A poll is small below this, ns.
const SMALL_POLL: f64 = 10_000.0;

/// And is worth a word from so many a second on.
const MANY_POLLS: f64 = 5_000.0;

/// A task does little if all of its polls take less than this, ns.
const SMALL_TASK: f64 = 20_000.0;

/// Where polls take less of the CPU time, the runtime and the kernel take much.
const MUCH_OUTSIDE: f64 = 0.35;

/// Processors are short from here on.
const SHORT: f64 = 0.3;

/// A task is ready long before it is polled: on average, ns.
const LONG_READY: f64 = 200_000.0;

/// So many idle processors could have polled it.
const LEAST_IDLE: f64 = 0.5;

pub(super) fn busy_task(
    target: &TargetSummary,
    analysis: &Analysis,
    seen: &Seen,
) -> Option<Advice> {
    let effect = gain(target).filter(|_| target.kind == TargetKind::Task)?;
    let busy = target.wall_share.filter(|busy| *busy >= BUSY)?;
    // One task, if it is busy or waits all the time, and no more than that.
    let waits = wait_of(target, analysis).map_or(0.0, |wait| wait.total_ns as f64 / seen.real_ns);
    if (busy + waits - 1.0).abs() > WHOLE {
        return None;
    }
    let text = format!(
        "It is one task, and busy {:.0} % of the time: {:.0} % faster it brings {}. What it \
         does waits in its queue. Let several tasks do it, or take work out of it.",
        100.0 * busy,
        100.0 * effect.speedup,
        change(effect),
    );
    Some(Advice { pattern: Pattern::BusyTask, target: called(target), text })
}

/// A kind of task over the stretches of one run in which nothing was delayed.
struct Kind<'a> {
    name: &'a str,
    polled_ns: u64,
    polls: u64,
    /// Polls that ended a wait of theirs, where waits are known.
    waits: Option<u64>,
}

impl Kind<'_> {
    /// Tasks that were polled for the first time, as far as that is known: no wait of theirs ends
    /// with that poll.
    fn begun(&self) -> u64 {
        self.waits.map_or(0, |waits| self.polls.saturating_sub(waits))
    }
}

/// The kinds of tasks of a run.
fn kinds(run: &Run) -> impl Iterator<Item = Kind<'_>> {
    let time_of = |target: &TargetRecord| {
        let times = samples_of(run).filter(|time| time.target == target.id);
        times.fold((0, 0), |sum, time| (sum.0 + time.busy_ns, sum.1 + time.count))
    };
    let of_kind = |kind| run.targets.iter().filter(move |it| it.kind == kind);
    of_kind(TargetKind::Task).map(move |task| {
        let (polled_ns, polls) = time_of(task);
        let is_its = |it: &&TargetRecord| {
            (&it.name, &it.file, it.line) == (&task.name, &task.file, task.line)
        };
        let wait = of_kind(TargetKind::Wait).find(is_its);
        Kind { name: &task.name, polled_ns, polls, waits: wait.map(|wait| time_of(wait).1) }
    })
}

/// The kind of task that is polled most often, if its polls or its tasks do very little.
pub(super) fn small_tasks(runs: &[Run], analysis: &Analysis, seen: &Seen) -> Option<Advice> {
    let all = || runs.iter().flat_map(kinds);
    let polled: u64 = all().map(|kind| kind.polled_ns).sum();
    let outside = 1.0 - polled as f64 / seen.cpu_ns;
    if analysis.shortage < SHORT || polled == 0 || outside < MUCH_OUTSIDE {
        return None;
    }
    let most = all().max_by_key(|kind| kind.polls)?;
    let each = |of: u64| most.polled_ns as f64 / of as f64;
    let rate = |of: u64| of as f64 / seen.real_ns * 1e9;
    let (polls, begun) = (most.polls, most.begun());
    let lacks = format!(
        "while {:.0} % of the CPU time goes to the runtime, the kernel and what is not profiled, \
         and processors are what lacks",
        100.0 * outside,
    );
    let (pattern, text) = if 2 * begun >= polls {
        if each(begun) > SMALL_TASK || rate(begun) < MANY_POLLS {
            return None;
        }
        let text = format!(
            "{:.0} such tasks begin a second, and each runs for {} in all, {lacks}. Spawn a task \
             for many items at once, or do them in the task that spawns.",
            rate(begun),
            time(each(begun)),
        );
        (Pattern::SpawnPerItem, text)
    } else {
        if each(polls) > SMALL_POLL || rate(polls) < MANY_POLLS {
            return None;
        }
        let text = format!(
            "It is polled {:.0} times a second for {} each, {lacks}. Let each poll do more: send \
             and receive many items at once.",
            rate(polls),
            time(each(polls)),
        );
        (Pattern::SmallPolls, text)
    };
    Some(Advice { pattern, target: format!("task:{}", most.name), text })
}

/// The wait whose tasks are ready for the longest before they are polled.
pub(super) fn late_workers(runs: &[Run], analysis: &Analysis) -> Option<Advice> {
    let cores = runs.iter().map(|run| run.header.cores).min()? as f64;
    let used = analysis.cores_used? + analysis.cores_used_by_others.unwrap_or(0.0);
    let idle = cores - used;
    let late = |wait: &&WaitSummary| wait.by.queue_ns as f64 / wait.count.max(1) as f64;
    let wait = analysis.waits.iter().max_by(|a, b| late(a).total_cmp(&late(b)))?;
    let ready = late(&wait);
    if ready < LONG_READY || idle < LEAST_IDLE {
        return None;
    }
    let text = format!(
        "It is ready for {} on average before a worker polls it, while {idle:.1} of {cores:.0} \
         processors are idle. Polls keep their workers for long, or there are too few: look for \
         what blocks in async code (spawn_blocking is for that), or raise worker_threads.",
        time(ready),
    );
    Some(Advice { pattern: Pattern::LateWorkers, target: format!("wait:{}", wait.name), text })
}
