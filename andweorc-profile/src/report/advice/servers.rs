//! Waits that one at a time is in, or a few, while others queue for them.

use super::{Advice, Pattern, Seen, called, change, gain, known_ns, wait_of};
use crate::TargetKind;
use crate::estimate::{Analysis, Effect, TargetSummary, WaitSummary};

/// A wait that somebody is in for a smaller part of the time is left.
const LEAST_OCCUPIED: f64 = 0.1;

/// Servers are full up to this many in the wait for each of them, on average.
const MOST_OCCUPIED: f64 = 1.05;

/// A wait is for the world outside, or for other tasks, from this part of its time on.
const MOSTLY: f64 = 0.8;

/// A target brings what a part of a queue does from this part of that on.
const OF_QUEUE: f64 = 0.6;

/// So many times as many requests as servers must be open at a time: fewer do not queue.
const LEAST_REQUESTS: f64 = 2.0;

/// Parts of the time of a wait, as far as it is known: for the outside, and for other tasks.
fn outside_and_tasks(wait: &WaitSummary) -> Option<(f64, f64)> {
    let known = known_ns(wait)?;
    Some((wait.by.outside_ns as f64 / known, wait.by.task_ns as f64 / known))
}

/// Servers with a queue that never ends, of whose cycle a part takes `occupied` of the time, do so
/// much more, %, if that part takes less by the fraction `speedup`.
fn gain_of_cycle(occupied: f64, speedup: f64) -> f64 {
    100.0 * (1.0 / (1.0 - speedup * occupied.min(1.0)) - 1.0)
}

/// Requests that are open at a time, by Little's law, where the point that is ranked by tells.
fn open_requests(analysis: &Analysis) -> Option<f64> {
    let now = analysis.ranking_point()?.now;
    Some(now.throughput? * now.mean? / 1e9)
}

/// A wait outside that as many are in as there are servers, so that it brings what a part of their
/// cycle does. Many who are in it side by side bring their load's share of that, which is far less.
pub(super) fn few_servers(
    target: &TargetSummary,
    analysis: &Analysis,
    seen: &Seen,
) -> Option<Advice> {
    let effect = gain(target).filter(|_| target.kind == TargetKind::Wait)?;
    let occupied = target.wall_share.filter(|occupied| *occupied >= LEAST_OCCUPIED)?;
    let (outside, _) = outside_and_tasks(wait_of(target, analysis)?)?;
    let servers = (occupied / MOST_OCCUPIED).ceil();
    let of_queue = gain_of_cycle(occupied / servers, effect.speedup);
    if outside < MOSTLY || effect.effect_pct < OF_QUEUE * of_queue {
        return None;
    }
    let found = Servers { effect, occupied, servers, of_queue };
    let (pattern, text) =
        if servers == 1.0 { found.serial(analysis) } else { found.pool(analysis, seen) }?;
    Some(Advice { pattern, target: called(target), text })
}

/// A wait that brings what a part of the cycle of so many servers does.
struct Servers<'a> {
    effect: &'a Effect,
    occupied: f64,
    servers: f64,
    of_queue: f64,
}

impl Servers<'_> {
    fn serial(&self, analysis: &Analysis) -> Option<(Pattern, String)> {
        let mut waits = analysis.waits.iter().filter_map(outside_and_tasks);
        if !waits.any(|(_, for_tasks)| for_tasks >= 1.0 - MOSTLY) {
            return None;
        }
        let text = format!(
            "One task at a time waits in it, {:.0} % of the time, and others wait for that one: \
             {:.0} % faster it brings {}, what a part of a queue would ({:+.0} %). Is a lock \
             held over it? Let go of the lock before the wait, or do several at once.",
            100.0 * self.occupied,
            100.0 * self.effect.speedup,
            change(self.effect),
            self.of_queue,
        );
        Some((Pattern::SerialWait, text))
    }

    /// A pool, unless as many as are in the wait may be in it by chance: then it would bring what a
    /// wait of that many requests side by side does.
    fn pool(&self, analysis: &Analysis, seen: &Seen) -> Option<(Pattern, String)> {
        let requests = open_requests(analysis)?;
        let side_by_side = gain_of_cycle(self.occupied / requests, self.effect.speedup);
        let queue = analysis.waits.iter().map(|wait| wait.by.task_ns).max()?;
        let queue = queue as f64 / seen.real_ns;
        if requests < LEAST_REQUESTS * self.servers
            || queue < 1.0
            || self.effect.ci_low? <= side_by_side
        {
            return None;
        }
        let text = format!(
            "{:.1} tasks at a time wait in it on average, while {queue:.0} wait for other tasks: \
             {:.0} % faster it brings {}, what a part of {servers} servers would ({:+.0} %), \
             and {requests:.0} requests side by side would not ({side_by_side:+.0} %). Is it a pool \
             of {servers}? Make the pool larger, if what is behind it has room, or give its members \
             back sooner.",
            self.occupied,
            100.0 * self.effect.speedup,
            change(self.effect),
            self.of_queue,
            servers = self.servers,
        );
        Some((Pattern::PoolTooSmall, text))
    }
}
