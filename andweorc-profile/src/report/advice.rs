//! Advice: patterns that people meet, each with its evidence, and only where experiments support
//! it.

use crate::estimate::{Analysis, Effect, Metric, TargetSummary, Verdict, WaitSummary};
use crate::report::words::time;
use crate::{Run, TargetKind, TargetTime};
use serde::Serialize;

/// A pattern that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// The pattern.
    pub pattern: Pattern,
    /// The target that it was found in, by kind and name: `wait:journal`.
    pub target: String,
    /// The evidence, and what to do: whole sentences.
    pub text: String,
}

/// Patterns that are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pattern {
    /// A wait outside that one task at a time is in, while others queue: a lock is held over it,
    /// or one task serves all.
    SerialWait,
    /// One task that has no time to spare, and holds up others.
    BusyTask,
    /// Tasks that are polled very often for very little, where processors are short.
    SmallPolls,
    /// Tasks that are ready long before they are polled, while processors are idle.
    LateWorkers,
}

/// A wait that somebody is in for a smaller part of the time is left.
const LEAST_OCCUPIED: f64 = 0.1;

/// A wait that more than so many are in, on average, is not one at a time.
const MOST_OCCUPIED: f64 = 1.05;

/// A wait is for the world outside, or for other tasks, from this part of its time on.
const MOSTLY: f64 = 0.8;

/// A target brings what a part of a queue does from this part of that on.
const OF_QUEUE: f64 = 0.6;

/// A task has no time to spare that is busy for this part of the time.
const BUSY: f64 = 0.85;

/// The time in which a task is busy or waits is all of its time, give or take this part.
const WHOLE: f64 = 0.1;

/// A poll is small below this, ns.
const SMALL_POLL: f64 = 10_000.0;

/// And is worth a word from so many a second on.
const MANY_POLLS: f64 = 5_000.0;

/// Where polls take less of the CPU time, the runtime and the kernel take much.
const MUCH_OUTSIDE: f64 = 0.35;

/// Processors are short from here on.
const SHORT: f64 = 0.3;

/// A task is ready long before it is polled: on average, ns.
const LONG_READY: f64 = 200_000.0;

/// So many idle processors could have polled it.
const LEAST_IDLE: f64 = 0.5;

/// Patterns that these runs show.
pub fn advice(runs: &[Run], analysis: &Analysis) -> Vec<Advice> {
    let seen = Seen::of(runs);
    let targets = || analysis.targets.iter();
    let mut all: Vec<Advice> =
        targets().filter_map(|target| serial_wait(target, analysis)).collect();
    all.extend(targets().filter_map(|target| busy_task(target, analysis, &seen)));
    all.extend(small_polls(runs, analysis, &seen));
    all.extend(late_workers(runs, analysis));
    all
}

/// Times over the stretches in which nothing was delayed.
struct Seen {
    real_ns: f64,
    cpu_ns: f64,
}

impl Seen {
    fn of(runs: &[Run]) -> Seen {
        let samples = || runs.iter().flat_map(|run| &run.samples);
        Seen {
            real_ns: samples().map(|it| it.real_ns).sum::<u64>() as f64,
            cpu_ns: samples().map(|it| it.cpu_ns).sum::<u64>() as f64,
        }
    }
}

/// The effect on throughput of a target that matters, by which targets are ranked.
fn gain(target: &TargetSummary) -> Option<&Effect> {
    let effect = target.ranking_effect().filter(|effect| effect.metric == Metric::Throughput)?;
    (target.verdict == Verdict::Matters).then_some(effect)
}

fn wait_of<'a>(target: &TargetSummary, analysis: &'a Analysis) -> Option<&'a WaitSummary> {
    analysis.waits.iter().find(|wait| {
        (&wait.name, &wait.file, wait.line) == (&target.name, &target.file, target.line)
    })
}

/// Parts of the time of a wait, as far as it is known: for the outside, and for other tasks.
fn outside_and_tasks(wait: &WaitSummary) -> Option<(f64, f64)> {
    let by = wait.by;
    let known = (by.outside_ns + by.task_ns + by.queue_ns) as f64;
    (known > 0.0).then(|| (by.outside_ns as f64 / known, by.task_ns as f64 / known))
}

/// A queue of one server that is never idle, of whose cycle a part takes `occupied` of the time,
/// does so much more if that part takes less by the fraction `speedup`. Many who are in it side by
/// side bring their load's share of that, which is far less.
fn gain_of_queue(occupied: f64, speedup: f64) -> f64 {
    100.0 * (1.0 / (1.0 - speedup * occupied.min(1.0)) - 1.0)
}

fn serial_wait(target: &TargetSummary, analysis: &Analysis) -> Option<Advice> {
    let effect = gain(target).filter(|_| target.kind == TargetKind::Wait)?;
    let occupied = target.wall_share?;
    let (outside, _) = outside_and_tasks(wait_of(target, analysis)?)?;
    let others_queue = analysis
        .waits
        .iter()
        .filter_map(outside_and_tasks)
        .any(|(_, for_tasks)| for_tasks >= 1.0 - MOSTLY);
    let is_one_at_a_time = (LEAST_OCCUPIED..=MOST_OCCUPIED).contains(&occupied);
    let of_queue = gain_of_queue(occupied, effect.speedup);
    if !is_one_at_a_time
        || outside < MOSTLY
        || !others_queue
        || effect.effect_pct < OF_QUEUE * of_queue
    {
        return None;
    }
    let text = format!(
        "One task at a time waits in it, {:.0} % of the time, and others wait for that one: {:.0} % \
         faster it brings {:+.0} %, what a part of a queue would ({of_queue:+.0} %). Is a lock held \
         over it? Let go of the lock before the wait, or do several at once.",
        100.0 * occupied,
        100.0 * effect.speedup,
        effect.effect_pct,
    );
    Some(Advice { pattern: Pattern::SerialWait, target: format!("wait:{}", target.name), text })
}

fn busy_task(target: &TargetSummary, analysis: &Analysis, seen: &Seen) -> Option<Advice> {
    let effect = gain(target).filter(|_| target.kind == TargetKind::Task)?;
    let busy = target.wall_share.filter(|busy| *busy >= BUSY)?;
    // One task, if it is busy or waits all the time, and no more than that.
    let waits = wait_of(target, analysis).map_or(0.0, |wait| wait.total_ns as f64 / seen.real_ns);
    if (busy + waits - 1.0).abs() > WHOLE {
        return None;
    }
    let text = format!(
        "It is one task, and busy {:.0} % of the time: {:.0} % faster it brings {:+.0} %. What it \
         does waits in its queue. Let several tasks do it, or take work out of it.",
        100.0 * busy,
        100.0 * effect.speedup,
        effect.effect_pct,
    );
    Some(Advice { pattern: Pattern::BusyTask, target: format!("task:{}", target.name), text })
}

/// The kind of task that is polled most often, if it is for very little.
fn small_polls(runs: &[Run], analysis: &Analysis, seen: &Seen) -> Option<Advice> {
    let of_tasks = |run: &Run, time: &TargetTime| {
        run.targets.iter().any(|it| it.id == time.target && it.kind == TargetKind::Task)
    };
    let times = || {
        let of_run = |run| samples_of(run).filter(move |time| of_tasks(run, time));
        runs.iter().flat_map(of_run)
    };
    let polled: u64 = times().map(|time| time.busy_ns).sum();
    let outside = 1.0 - polled as f64 / seen.cpu_ns;
    if analysis.shortage < SHORT || polled == 0 || outside < MUCH_OUTSIDE {
        return None;
    }
    let (run, most) = runs
        .iter()
        .flat_map(|run| samples_of(run).map(move |time| (run, time)))
        .filter(|(run, time)| of_tasks(run, time))
        .max_by_key(|(_, time)| time.count)?;
    let each = most.busy_ns as f64 / most.count as f64;
    let rate = most.count as f64 / seen.real_ns * 1e9;
    if each > SMALL_POLL || rate < MANY_POLLS {
        return None;
    }
    let target = run.targets.iter().find(|it| it.id == most.target)?;
    let text = format!(
        "It is polled {rate:.0} times a second for {} each, while {:.0} % of the CPU time goes to \
         the runtime, the kernel and what is not profiled, and processors are what lacks. Let each \
         poll do more: send batches, spawn for many items at once.",
        time(each),
        100.0 * outside,
    );
    Some(Advice { pattern: Pattern::SmallPolls, target: format!("task:{}", target.name), text })
}

fn samples_of(run: &Run) -> impl Iterator<Item = &TargetTime> {
    run.samples.iter().flat_map(|samples| &samples.targets).filter(|time| time.count > 0)
}

/// The wait whose tasks are ready for the longest before they are polled.
fn late_workers(runs: &[Run], analysis: &Analysis) -> Option<Advice> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WaitTime;
    use crate::estimate::analyse;
    use crate::estimate::tests::{closed, push};
    use crate::report::{Looks, text};
    use crate::{Record, SamplesRecord, TargetRecord};

    const MS: u64 = 1_000_000;

    /// A run of a second on two processors, of which it uses one and a half, with these targets,
    /// and experiments on the first that bring `change` % when it is twice as fast.
    fn run(targets: &[(TargetKind, &str, TargetTime)], change: u64) -> Run {
        let mut run = closed();
        run.header.cores = 2;
        run.samples.clear();
        run.targets.retain(|it| it.kind == TargetKind::Probe);
        for (kind, name, time) in targets {
            let record = TargetRecord::new(time.target, *kind, *name);
            run.push(Record::Target(record));
        }
        run.push(Record::Samples(SamplesRecord {
            real_ns: 1000 * MS,
            cpu_ns: 1500 * MS,
            others_ns: None,
            source: "timed".into(),
            targets: targets.iter().map(|(_, _, time)| time.clone()).collect(),
            lost: 0,
        }));
        push(&mut run, None, 0.0, 10_000, 1_000);
        for off in [0, 3, 6] {
            push(&mut run, Some(targets[0].2.target), 0.5, 100 * (100 + change) + off, 1_000);
            push(&mut run, None, 0.0, 10_000 + off, 1_000);
        }
        run
    }

    fn time(target: u32, busy_ms: u64, count: u64, waits: Option<WaitTime>) -> TargetTime {
        TargetTime { target, busy_ns: busy_ms * MS, count, waits }
    }

    fn wait(outside_ms: u64, task_ms: u64, queue_ms: u64) -> Option<WaitTime> {
        let ns = |ms| ms * MS;
        Some(WaitTime {
            outside_ns: ns(outside_ms),
            timer_ns: None,
            task_ns: ns(task_ms),
            queue_ns: ns(queue_ms),
        })
    }

    fn found(run: Run) -> Vec<(Pattern, String)> {
        let runs = [run];
        let analysis = analyse(&runs);
        advice(&runs, &analysis).into_iter().map(|one| (one.pattern, one.target)).collect()
    }

    #[test]
    fn wait_with_a_lock_held_is_found_by_what_it_brings() {
        let journal = (TargetKind::Wait, "journal", time(71, 460, 700, wait(460, 0, 0)));
        let handler = (TargetKind::Wait, "handle", time(72, 7000, 3000, wait(2000, 5000, 10)));
        // Twice as fast, of a cycle of 1000 ms 230 are spared: +30 %.
        let is = vec![(Pattern::SerialWait, "wait:journal".to_owned())];
        let held = run(&[journal.clone(), handler.clone()], 27);
        assert_eq!(found(held.clone()), is);
        let held = [held];
        let report = text(&held, &analyse(&held), Looks::default());
        assert!(report.contains("ADVICE\n  wait:journal: One task at a time"), "{report}");
        assert_eq!(found(run(&[journal.clone(), handler.clone()], 3)), [], "side by side");
        let alone = (TargetKind::Wait, "handle", time(72, 7000, 3000, wait(7000, 0, 10)));
        assert_eq!(found(run(&[journal, alone], 27)), [], "nobody waits for another");
        let many = (TargetKind::Wait, "journal", time(71, 4600, 7000, wait(4600, 0, 0)));
        assert_eq!(found(run(&[many, handler], 60)), [], "many at a time");
    }

    #[test]
    fn one_task_without_time_to_spare_is_found() {
        let actor = (TargetKind::Task, "actor", time(71, 930, 700, None));
        let waits = |ms| (TargetKind::Wait, "actor", time(72, ms, 700, wait(0, ms, 0)));
        let is = vec![(Pattern::BusyTask, "task:actor".to_owned())];
        assert_eq!(found(run(&[actor.clone(), waits(60)], 60)), is);
        assert_eq!(found(run(&[actor.clone(), waits(60)], 0)), [], "it brings nothing");
        assert_eq!(found(run(&[actor, waits(9000)], 60)), [], "ten tasks");
    }

    #[test]
    fn tasks_that_are_ready_for_long_while_processors_are_idle_are_found() {
        let work = (TargetKind::Task, "work", time(71, 300, 700, None));
        let late = |ms| (TargetKind::Wait, "handle", time(72, 2000, 1000, wait(900, 0, ms)));
        let is = vec![(Pattern::LateWorkers, "wait:handle".to_owned())];
        assert_eq!(found(run(&[work.clone(), late(900)], 0)), is);
        assert_eq!(found(run(&[work.clone(), late(90)], 0)), []);
        let mut busy = run(&[work, late(900)], 0);
        busy.samples[0].others_ns = Some(400 * MS);
        assert_eq!(found(busy), [], "no processor is idle");
    }

    #[test]
    fn small_polls_are_found_where_processors_are_short() {
        let mut short = {
            let items = (TargetKind::Task, "item", time(71, 600, 200_000, None));
            run(&[items], 25)
        };
        assert_eq!(found(short.clone()), [], "processors are not known to be short");
        short.header.cores = 1;
        for one in &mut short.experiments {
            one.cpu_ns = Some(one.points[0].count * 100_000);
        }
        short.samples[0].cpu_ns = 1000 * MS;
        assert_eq!(found(short), [(Pattern::SmallPolls, "task:item".to_owned())]);
    }
}
