//! How long experiments are: long enough that each has enough hits, short enough that each gets its
//! turn.

use crate::experiment::hold::Phases;
use std::time::Duration;

/// Queues settle to the changed speeds before an experiment is measured, and back after it.
const WARMUP: Duration = Duration::from_millis(50);
const COOLDOWN: Duration = Duration::from_millis(30);

/// Bounds of the measured stretch.
const MIN_MEASURE: Duration = Duration::from_millis(200);
const MAX_MEASURE: Duration = Duration::from_secs(1);

/// Hits of the ranking point that an experiment should have; it is lengthened until it has them.
const ENOUGH_HITS: f64 = 100.0;

/// Where less is done than at first, experiments are lengthened up to this: the load of a service
/// that is profiled for days may go away for hours.
const MAX_SPARSE_MEASURE: Duration = Duration::from_secs(60);

/// How long each of so many experiments should be, so that all have their turn in the time that is
/// left and the ranking point, which is hit at this rate a second, gets enough hits.
pub(super) fn first(experiments: u32, left: Duration, rate: f64) -> Phases {
    let unmeasured = Phases { warmup: WARMUP, measure: Duration::ZERO, cooldown: COOLDOWN };
    let measure = left / experiments;
    let measure = measure.saturating_sub(unmeasured.mean()).clamp(MIN_MEASURE, MAX_MEASURE);
    let enough = Duration::from_secs_f64((ENOUGH_HITS / rate.max(1e-3)).min(3600.0));
    Phases { measure: measure.max(enough.min(left / 10)), ..unmeasured }
}

/// How long the next experiment should be, after one with so many hits of the ranking point.
pub(super) fn next(now: Phases, hits: u64, first: Phases, left: Duration) -> Phases {
    let most = MAX_SPARSE_MEASURE.max(first.measure).min(left / 10);
    Phases { measure: next_measure(now.measure, hits, first.measure, most), ..now }
}

/// The length after one with so many hits: twice as long with too few, half as long with plenty,
/// between what was first and `most`.
fn next_measure(now: Duration, hits: u64, first: Duration, most: Duration) -> Duration {
    if (hits as f64) < ENOUGH_HITS / 4.0 {
        (2 * now).min(most).max(now)
    } else if hits as f64 > ENOUGH_HITS * 4.0 {
        (now / 2).max(first)
    } else {
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_longer_while_little_is_done_and_no_longer_for_good() {
        let [first, most] = [Duration::from_millis(400), MAX_SPARSE_MEASURE];
        let mut length = first;
        for _ in 0..20 {
            length = next_measure(length, 3, first, most);
        }
        assert_eq!(length, most);
        assert_eq!(next_measure(length, 100, first, most), length);
        for _ in 0..20 {
            length = next_measure(length, 10_000, first, most);
        }
        assert_eq!(length, first);
        // With little time left it is at least not shorter.
        assert_eq!(next_measure(first, 0, first, first / 2), first);
    }
}
