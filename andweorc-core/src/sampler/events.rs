//! Events of the processor by target, while they are counted: before the first experiment, over a
//! stretch of their own, so that they cost nothing else that is recorded.
//!
//! An overflow of a [counter](andweorc_sampling::counters) is counted as that of the innermost span
//! or kind of task that the thread was in, as allocations are, and of the innermost function in
//! scope where functions are sampled. So each of these adds up to all.

use crate::sampler::{site_timeline, target_fraction};
use andweorc_profile::{EventsRecord, TargetEvents};
use andweorc_sampling::counter_cells::MOST;
use andweorc_sampling::counters::Totals;
use andweorc_sampling::queue::Sample;
use std::collections::HashMap;

/// Overflows of each counter, and the events that they stand for.
type Counts = [(u64, u64); MOST];

/// Overflows by target.
#[derive(Debug, Default)]
pub(super) struct EventCounts {
    targets: HashMap<Option<u32>, Counts>,
}

impl EventCounts {
    /// Counts a sample, in a function of this id, unless it is one of CPU time.
    pub(super) fn count(&mut self, sample: &Sample, function: Option<u32>) {
        let Some(overflow) = sample.overflow else { return };
        let innermost = match site_timeline::of(sample.context) {
            Some(_) => None,
            None => Some(target_fraction::target_of(sample.context)).filter(|id| *id != 0),
        };
        for target in [Some(innermost), function.map(Some)].into_iter().flatten() {
            let counts = self.targets.entry(target).or_default();
            let (overflows, events) = &mut counts[overflow.counter];
            *overflows += 1;
            *events += overflow.events;
        }
    }

    /// The record of what was counted: the times of the program are set by who knows them.
    pub(super) fn into_record(self, totals: Totals) -> EventsRecord {
        let counters = totals.events.len();
        let target = |(target, counts): (Option<u32>, Counts)| TargetEvents {
            target,
            overflows: counts[..counters].iter().map(|(overflows, _)| *overflows).collect(),
            counts: counts[..counters].iter().map(|(_, events)| *events).collect(),
        };
        let mut targets: Vec<_> = self.targets.into_iter().map(target).collect();
        targets.sort_by_key(|of| of.target);
        EventsRecord {
            events: totals.events,
            targets,
            threads_left_out: totals.threads_left_out,
            ..EventsRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;
    use andweorc_profile::EventTotal;
    use andweorc_sampling::queue::Overflow;

    #[test]
    fn overflows_are_those_of_the_innermost_target_and_of_the_function() {
        let sample = |context| Sample::new(context, Nanos(9), &[1]);
        let at = |context, counter, events| sample(context).at(Overflow { counter, events });
        let mut counts = EventCounts::default();
        counts.count(&at(7, 0, 1_000), Some(70));
        counts.count(&at(7 | target_fraction::in_phase(3), 0, 2_001), None);
        counts.count(&at(7, 1, 5), Some(70));
        counts.count(&at(0, 1, 5), None);
        counts.count(&at(site_timeline::IS_STEP | 7, 1, 6), None);
        counts.count(&sample(7), Some(70));
        let events = vec![EventTotal::default(); 2];
        let record = counts.into_record(Totals { events, threads_left_out: 3 });
        let of = |target, overflows: [u64; 2], counts: [u64; 2]| TargetEvents {
            target,
            overflows: overflows.into(),
            counts: counts.into(),
        };
        let wanted = [
            of(None, [0, 2], [0, 11]),
            of(Some(7), [2, 1], [3_001, 5]),
            of(Some(70), [1, 1], [1_000, 5]),
        ];
        assert_eq!(record.targets, wanted);
        assert_eq!((record.events.len(), record.threads_left_out), (2, 3));
    }
}
