//! Tasks that nobody wrapped (`unwrapped` module): nothing stands between their wakes and the
//! runtime, so that no wake is held here. What a wake makes of the task is noted, and its next poll
//! asks whether it came too early.

use super::{PASSING, WakeCell, is_early};
use andweorc_core::engine::WakeSource;
use andweorc_core::thread::{self, BeforeWake, model};
use andweorc_core::time::{Real, Virtual};
use andweorc_core::wait::Cause;
use std::cell::Cell;

impl WakeCell {
    /// Whether a task must be held that is polled at `now` and parked at `at`, where its wake can't
    /// be held. `finds` says whether what came from outside, and was due then, would be found by
    /// now.
    pub(crate) fn holds(&self, at: Virtual, now: Real, finds: impl Fn(Virtual) -> bool) -> bool {
        self.clock.holds_poll(model(), at, |ready| is_early(ready, now), finds)
    }

    /// When the task is due, in virtual time, if it is held.
    pub(crate) fn due(&self) -> Option<Virtual> {
        self.clock.due()
    }

    /// Notes a wake that goes its own way: that of a task which nobody wrapped, and which can't be
    /// held here.
    pub(crate) fn note(&self) {
        let BeforeWake { at: now, participant, last } = thread::before_wake();
        let source = if let Some((at, by)) = PASSING.with(Cell::get) {
            // A part of it that is profiled looks again too, as soon as others had their turn.
            if at == Virtual(i64::MIN) && self.clock.is_held() {
                return;
            }
            WakeSource::Task { at, by }
        } else if let Some(at) = participant {
            if last {
                thread::after_final_wake();
            }
            WakeSource::Task { at, by: Cause::Task }
        } else {
            self.unnamed(now)
        };
        if matches!(source, WakeSource::External { .. }) {
            thread::pass_on();
        }
        self.clock.woken(model(), source, now);
    }
}
