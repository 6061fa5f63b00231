//! The time that each target had over a stretch.

use crate::program_clock;
use crate::target::{Target, targets};
use andweorc_profile::{TargetTime, WaitTime};
use std::collections::HashMap;

/// The time that each target had over a stretch.
#[derive(Debug, Default)]
pub(crate) struct TargetTimes(HashMap<u32, Time>);

/// The time of one target, ns, and its visits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Time {
    pub(super) busy: u64,
    pub(super) own: u64,
    count: u64,
    waited: Option<[u64; 3]>,
    for_timers: u64,
    pub(super) own_outside: u64,
}

impl Time {
    fn of(target: &Target) -> Time {
        Time {
            busy: target.busy_ns(),
            own: target.own_ns(),
            count: target.count(),
            waited: target.waited_ns(),
            for_timers: target.waited_for_timers_ns(),
            own_outside: target.own_outside_ns(),
        }
    }

    fn since(&self, before: &Time) -> Time {
        let waited = self.waited.map(|now| {
            let before = before.waited.unwrap_or_default();
            std::array::from_fn(|i| now[i] - before[i])
        });
        Time {
            busy: self.busy - before.busy,
            own: self.own - before.own,
            count: self.count - before.count,
            waited,
            for_timers: self.for_timers - before.for_timers,
            own_outside: self.own_outside.saturating_sub(before.own_outside),
        }
    }
}

impl TargetTimes {
    /// The times up to now.
    pub(crate) fn read() -> TargetTimes {
        TargetTimes::of(&targets())
    }

    /// The times up to now of these targets alone.
    pub(crate) fn of(targets: &[&'static Target]) -> TargetTimes {
        TargetTimes(targets.iter().map(|target| (target.id(), Time::of(target))).collect())
    }

    /// The times since `before` of the targets that had any.
    pub(super) fn since(&self, before: &TargetTimes) -> Vec<(&'static Target, Time)> {
        let mut all = Vec::new();
        for target in targets() {
            let Some(now) = self.0.get(&target.id()) else { continue };
            let time = now.since(&before.0.get(&target.id()).copied().unwrap_or_default());
            if time.count > 0 {
                all.push((target, time));
            }
        }
        all
    }

    /// Returns the times since `before` as the profile records them.
    pub(crate) fn records_since(&self, before: &TargetTimes) -> Vec<TargetTime> {
        let record = |(target, time): (&Target, Time)| {
            let mut record = TargetTime::new(target.id(), time.busy, time.count);
            record.waits = time.waited.map(|[outside_ns, task_ns, queue_ns]| {
                let mut waits = WaitTime::default();
                (waits.outside_ns, waits.task_ns, waits.queue_ns) = (outside_ns, task_ns, queue_ns);
                waits.timer_ns = program_clock::is_on().then_some(time.for_timers);
                waits
            });
            record
        };
        self.since(before).into_iter().map(record).collect()
    }
}
