//! Waits that take the grain of a timer, whatever they ask for.

use super::{Advice, Pattern, brings, called, known_ns, matters, wait_of};
use crate::TargetKind;
use crate::estimate::{Analysis, TargetSummary};
use crate::report::words::time;

/// A wait is for timers from this part of its time on.
const MOSTLY: f64 = 0.8;

/// tokio's timers go off at whole milliseconds, the next one after what was asked for, ns. A task
/// that sleeps again and again begins just after one, so that it waits for that long if it asks for
/// next to nothing, and for twice as long if it asks for 1 ms. One that begins anywhere waits for
/// half as long, and for one and a half times as long.
const GRAIN: f64 = 1e6;

/// Waits of tokio's grain take so many grains on average, with what the kernel is late.
const OF_GRAIN: std::ops::Range<f64> = 0.5..1.4;

/// A wait for timers that matters, and takes about as long as the grain of the timers is.
pub(super) fn coarse_timer(target: &TargetSummary, analysis: &Analysis) -> Option<Advice> {
    let effect = matters(target).filter(|_| target.kind == TargetKind::Wait)?;
    let wait = wait_of(target, analysis)?;
    let for_timers = wait.by.timer_ns? as f64;
    let each = for_timers / wait.count.max(1) as f64;
    if for_timers < MOSTLY * known_ns(wait)? || !OF_GRAIN.contains(&(each / GRAIN)) {
        return None;
    }
    let text = format!(
        "It waits for a timer, {} each time, and {:.0} % faster it brings {}. tokio's timers go off \
         at whole milliseconds, rounded up, so that a shorter sleep takes as long. If it asks for \
         less than that, wait for what it is to wait for, yield, or do several items between two \
         sleeps.",
        time(each),
        100.0 * effect.speedup,
        brings(effect),
    );
    Some(Advice { pattern: Pattern::TimerGranularity, target: called(target), text })
}
