//! Waits that are the target.

use super::Ledger;
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering::SeqCst;
use crate::time::{Nanos, Real, Speedup};
use std::collections::BTreeMap;

/// No wait is a target.
pub(super) const NO_LINE: i64 = i64::MIN;

/// Waits that are targets. L of a waiter is a line over time, `L(t) = L_park + s (t - t_park)`: the
/// experiment gives all lines one slope, so that a line is known by its value at t = 0 and D
/// follows the highest. Line -> number of waiters on it.
pub(super) type Lines = BTreeMap<i64, usize>;

/// A wait that is a target, between [`Ledger::begin_wait`] and [`Ledger::end_wait`].
#[derive(Debug)]
#[must_use = "a wait that is never ended lets D grow for the rest of the experiment"]
pub struct TargetWait {
    experiment: u32,
    since: Real,
    speedup: Speedup,
    line: i64,
}

impl Ledger {
    /// A task parks at `now` with `taken`, and its wait is the target. `None` between experiments.
    pub fn begin_wait(&self, taken: Nanos, now: Real) -> Option<TargetWait> {
        let mut lines = self.lines();
        let speedup = self.speedup();
        if speedup == Speedup::ZERO {
            return None;
        }
        let line = (taken.max(self.forgiven_delay()) - speedup.of(Nanos(now.0))).0;
        *lines.entry(line).or_insert(0) += 1;
        self.publish_top(&lines);
        let experiment = self.experiment.load(SeqCst);
        Some(TargetWait { experiment, since: now, speedup, line })
    }

    /// The wait ended at `at`: returns by how much L of the task grew, `s waited`, and raises D to
    /// it. When the experiment has ended meanwhile, D was raised then; when another has begun, what
    /// was saved is forgiven.
    ///
    /// The end may be past, where it was noticed late. D was read too high since, and who has paid
    /// for that has credit.
    pub fn end_wait(&self, wait: TargetWait, at: Real) -> Nanos {
        let mut lines = self.lines();
        if wait.experiment != self.experiment.load(SeqCst) {
            return Nanos::ZERO;
        }
        let until = self.credited(at).max(wait.since);
        if let Some(count) = lines.get_mut(&wait.line) {
            self.read.owed.fetch_max(wait.line + wait.speedup.of(Nanos(until.0)).0, SeqCst);
            *count -= 1;
            if *count == 0 {
                lines.remove(&wait.line);
            }
            self.publish_top(&lines);
        }
        wait.speedup.of(until - wait.since)
    }

    pub(super) fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock()
    }

    pub(super) fn publish_top(&self, lines: &Lines) {
        let top = lines.last_key_value().map_or(NO_LINE, |(&line, _)| line);
        self.read.top_line.store(top, SeqCst);
    }
}
