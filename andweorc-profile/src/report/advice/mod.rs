//! Advice: patterns that people meet, each with its evidence, and only where experiments support
//! it.
//!
//! | module | patterns |
//! |---|---|
//! | `servers` | waits that one at a time is in, or a few: locks and pools |
//! | `tasks` | tasks that are busy, polled for little, spawned for little, or polled late |
//! | `timers` | waits that take the grain of a timer |
//! | `backlog` | queues that grow |
//! | `spans` | spans that are entered over an await |

mod backlog;
mod servers;
mod spans;
mod tasks;
#[cfg(test)]
mod tests;
mod timers;

use crate::estimate::{Analysis, Effect, Metric, TargetSummary, Verdict, WaitSummary};
use crate::report::words::{metric_name, wide};
use crate::{Run, TargetTime};
use serde::Serialize;

/// A pattern that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// The pattern.
    pub pattern: Pattern,
    /// The target that it was found in, by kind and name: `wait:journal`; of a queue that grows the
    /// point, `point:order`.
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
    /// A wait outside that a few tasks at a time are in, and never more, while others queue: those
    /// few are the members of a pool.
    PoolTooSmall,
    /// One task that has no time to spare, and holds up others.
    BusyTask,
    /// Tasks that are polled very often for very little, where processors are short.
    SmallPolls,
    /// Tasks that begin very often and do very little, where processors are short.
    SpawnPerItem,
    /// Tasks that are ready long before they are polled, while processors are idle.
    LateWorkers,
    /// Waits for timers that take about as long as the grain of tokio's timers.
    TimerGranularity,
    /// A queue that grows all the time.
    UnboundedBacklog,
    /// A span that is entered while its task is not polled: a guard is held over an await.
    EnteredOverAwait,
}

/// Patterns that these runs show.
pub fn advice(runs: &[Run], analysis: &Analysis) -> Vec<Advice> {
    let seen = Seen::of(runs);
    let targets = || analysis.targets.iter();
    let mut all: Vec<Advice> =
        targets().filter_map(|target| servers::few_servers(target, analysis, &seen)).collect();
    all.extend(targets().filter_map(|target| tasks::busy_task(target, analysis, &seen)));
    all.extend(tasks::small_tasks(runs, analysis, &seen));
    all.extend(tasks::late_workers(runs, analysis));
    all.extend(targets().filter_map(|target| timers::coarse_timer(target, analysis)));
    all.extend(backlog::growing(runs, analysis));
    all.extend(spans::entered_over_await(runs));
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

/// The effect of a target that matters, by which targets are ranked.
fn matters(target: &TargetSummary) -> Option<&Effect> {
    target.ranking_effect().filter(|_| target.verdict == Verdict::Matters)
}

/// The effect on throughput of a target that matters, by which targets are ranked.
fn gain(target: &TargetSummary) -> Option<&Effect> {
    matters(target).filter(|effect| effect.metric == Metric::Throughput)
}

/// A change in the middle of a sentence: `+34 %`, or `at least +28 %` where no more is known.
fn change(effect: &Effect) -> String {
    if effect.says_nothing() { wide(effect) } else { format!("{:+.0} %", effect.effect_pct) }
}

/// The change of the metric that is ranked by: `+34 %`, `-12 % mean latency`.
fn brings(effect: &Effect) -> String {
    match effect.metric {
        Metric::Throughput => change(effect),
        metric => format!("{} {}", change(effect), metric_name(metric)),
    }
}

/// Kind and name of a target.
fn called(target: &TargetSummary) -> String {
    format!("{}:{}", target.kind, target.name)
}

fn wait_of<'a>(target: &TargetSummary, analysis: &'a Analysis) -> Option<&'a WaitSummary> {
    analysis.waits.iter().find(|wait| {
        (&wait.name, &wait.file, wait.line) == (&target.name, &target.file, target.line)
    })
}

/// Time of a wait of which it is known what it was for, ns.
fn known_ns(wait: &WaitSummary) -> Option<f64> {
    let by = wait.by;
    let known = (by.outside_ns + by.task_ns + by.queue_ns) as f64;
    (known > 0.0).then_some(known)
}

/// Time of each target in the stretches of a run in which nothing was delayed.
fn samples_of(run: &Run) -> impl Iterator<Item = &TargetTime> {
    run.samples.iter().flat_map(|samples| &samples.targets).filter(|time| time.count > 0)
}
