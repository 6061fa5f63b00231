//! Threads that can be sampled: those with an account in the ledger. Each has the timelines of its
//! slot, which are handed on with it.

use crate::fork::forked;
use crate::sampler::site_timeline::{SiteTimeline, SiteTimelines};
use andweorc_sampling::slots::{self, Sampled};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Timelines of each slot, by its number. They live for ever, as slots do.
static TIMELINES: Mutex<Vec<&'static SiteTimelines>> = Mutex::new(Vec::new());

fn timelines() -> MutexGuard<'static, Vec<&'static SiteTimelines>> {
    TIMELINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes up the calling thread, of this kernel id, which has got an account. If it is deaf it
/// blocks the signal. `sampled` is told of each of its samples. Returns the thread's timelines;
/// `None` in a child of fork.
pub(crate) fn open(tid: i32, is_deaf: bool, sampled: Sampled) -> Option<&'static SiteTimelines> {
    if forked() {
        return None;
    }
    let mut own = None;
    slots::open(tid, is_deaf, sampled, |slot, number| {
        let mut all = timelines();
        while all.len() <= slot {
            all.push(Box::leak(Box::new(SiteTimelines::new())));
        }
        all[slot].hand_on(number);
        own = Some(all[slot]);
    });
    own
}

/// The calling thread gives its account back.
pub(crate) fn close() {
    if !forked() {
        slots::close();
    }
}

/// Calls `each` with the timelines of all threads that live.
pub(super) fn each_timeline(mut each: impl FnMut(&SiteTimeline)) {
    slots::each_live(|slot| timelines()[slot].all().for_each(&mut each));
}

/// Forgets what was learned of all timelines.
pub(super) fn forget_timelines() {
    timelines().iter().for_each(|timelines| timelines.forget());
}
