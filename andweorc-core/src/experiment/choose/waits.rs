//! Choosing waits when the user named no targets.

use super::points::MIN_RATE;
use super::targets::is_own;
use super::times::Time;
use crate::point::{Point, points};
use crate::target::Target;
use andweorc_profile::TargetKind;
use std::cmp::Reverse;

/// So many waits are tested at most.
const MAX_WAITS: usize = 3;

/// A wait is worth testing from this share of the time on, summed over all who wait: below it, it
/// is short, or few wait.
const MIN_WAIT_SHARE: f64 = 0.05;

/// Of these targets, the longest waits for the world outside. A wait has to be one of a span that
/// ends often, a unit of somebody's work: that of a task may be its own pace, or for the next
/// request.
pub(super) fn longest_waits(
    used: &[(&'static Target, Time)],
    real_ns: u64,
) -> Vec<(&'static Target, Time)> {
    let mut waits: Vec<_> = used
        .iter()
        .filter(|(target, time)| {
            target.kind() == TargetKind::Wait
                && is_own(target)
                && time.own_outside as f64 >= MIN_WAIT_SHARE * real_ns as f64
                && ends_often(target)
        })
        .copied()
        .collect();
    waits.sort_by_key(|(_, time)| Reverse(time.own_outside));
    waits.truncate(MAX_WAITS);
    waits
}

/// Whether a wait is one of spans that end often.
fn ends_often(wait: &Target) -> bool {
    let of_wait = |point: &&Point| {
        (point.name(), point.file(), point.line()) == (wait.name(), wait.file(), wait.line())
    };
    points().into_iter().find(of_wait).is_some_and(|point| point.count() >= MIN_RATE)
}
