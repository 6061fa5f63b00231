//! Of tasks that nobody wrapped (`foreign` module): nothing stands between their wakes and the
//! runtime, so that no wake is held here. What a wake makes of the task is noted, and its next poll
//! asks whether it came too early.

use super::{NOTHING, Ordering, PASSING, WakeCell, is_early, is_last, lower};
use crate::parks::Unnamed;
use andweorc_core::ledger::Parked;
use andweorc_core::program_clock;
use andweorc_core::thread::{self, Acts, LEDGER};
use andweorc_core::time::{Real, Virtual};
use andweorc_core::wait::Cause;
use std::cell::Cell;

impl WakeCell {
    /// Whether a task must be held that is polled at `now` and parked at `at`, where its wake can't
    /// be held: it comes again by itself, and what comes until then it waits for as one that is
    /// held. `finds` says whether what came from outside, and was due then, would be found by now.
    pub(crate) fn holds(&self, at: Virtual, now: Real, finds: impl Fn(Virtual) -> bool) -> bool {
        let waits = |ready| is_early(ready, now) || !finds(ready);
        let parked = Parked { at, taken: self.taken() };
        let by_entity = Virtual(self.by_entity.load(Ordering::Relaxed));
        let by_entity = (by_entity != Virtual::NEVER).then(|| parked.woken_by(by_entity));
        // Only polls write it, and there is one at a time. A wake that comes at this moment takes
        // it as it was or as it will be.
        let due = self.due.load(Ordering::Relaxed);
        let until = if due != NOTHING {
            let awaited = Virtual(due >> 1);
            let all = || self.all_due().filter(|&all| !is_last(due) && waits(all));
            let until =
                if waits(awaited) { Some((awaited, due & 1)) } else { all().map(|all| (all, 1)) };
            // Another task may have woken it meanwhile.
            until.filter(|_| by_entity.is_none_or(|ready| is_early(ready, now)))
        } else {
            let outside = Real(self.by_outside.load(Ordering::Relaxed));
            let outside =
                (outside != Real::NEVER).then(|| parked.woken_outside(outside, LEDGER.floor()));
            let ready = by_entity.into_iter().chain(outside).min();
            let all_wait =
                by_entity.is_none_or(|ready| is_early(ready, now)) && outside.is_none_or(waits);
            ready.filter(|_| all_wait).map(|ready| (ready, 0))
        };
        let held = until.map_or(NOTHING, |(until, last)| (until.0 << 1) | last);
        self.due.store(held, Ordering::Relaxed);
        until.is_some()
    }

    /// Notes a wake that goes its own way: that of a task which nobody wrapped, and which can't be
    /// held here.
    pub(crate) fn note(&self) {
        let Acts { at: now, entity, last } = thread::act();
        let (ready, by) = if let Some(passing) = PASSING.with(Cell::get) {
            // A part of it that is profiled looks again too, as soon as others had their turn.
            if passing.0 == Virtual(i64::MIN) && self.due.load(Ordering::Relaxed) != NOTHING {
                return;
            }
            passing
        } else if let Some(waker) = entity {
            if last {
                thread::acted();
            }
            (waker, Cause::Task)
        } else {
            match self.unnamed() {
                Unnamed::Outside if program_clock::noticed_a_virtual_timer() => {
                    (LEDGER.virtual_now(now), Cause::Timer)
                }
                Unnamed::Outside => {
                    thread::passes_on();
                    self.woken_outside(now);
                    return;
                }
                Unnamed::Program => (LEDGER.virtual_now(now), Cause::Task),
                Unnamed::Runtime => (Virtual(i64::MIN), Cause::Task),
            }
        };
        self.end_wait(now);
        self.set_woken(now, by);
        lower(&self.by_entity, ready.0);
    }
}
