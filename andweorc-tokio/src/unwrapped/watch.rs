//! The worker that would look into the driver, were nothing held.
//!
//! A worker that has a task in its hands which must not run yet looks into the driver again and
//! again, and so does one that was got going only to take such a task over. Were nothing held, both
//! would be idle: one waits in the driver, the others sleep, and while that one runs what it has
//! found, nobody looks, until it or another one has nothing else to do. What comes meanwhile lies
//! there.
//!
//! So workers are counted as idle here that only have tasks which are held, and what was found in
//! the driver is held for as long as nobody would have looked.

use crate::driver_timer::with_ours;
use andweorc_core::hooks::thread::ledger;
use andweorc_core::hooks::time::{Speedup, Virtual};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The calling thread has nothing to do from now on that is not held.
pub(crate) fn idle() {
    with_ours(|watch, idle| {
        if !idle.replace(true) {
            watch.idle();
        }
    });
}

/// Records that the calling thread has something to do, which was `found` in the driver, or not.
pub(super) fn busy(found: bool) {
    with_ours(|watch, idle| {
        if idle.replace(false) {
            watch.busy(found);
        }
    });
}

/// Records that the calling thread was got going; `watched` says whether it did wait in the driver.
/// As long as nothing is held, and it would have waited where it did, it would have been got going
/// too.
pub(crate) fn unparks(watched: bool) {
    with_ours(|watch, idle| {
        if HELD.load(Relaxed) == 0 && (!watched || watch.is_mine()) && idle.replace(false) {
            watch.busy(false);
        }
    });
}

/// Whether it has nothing to do that is not held.
pub(super) fn is_idle() -> bool {
    with_ours(|_, idle| idle.get()).unwrap_or(false)
}

/// Whether it may have found by now what lies in the driver since `ready`.
pub(super) fn finds(ready: Virtual) -> bool {
    // Between experiments nothing is held.
    ledger().speedup() == Speedup::ZERO
        || with_ours(|watch, idle| !idle.get() || watch.finds(ready)).unwrap_or(true)
}

/// How many tasks are held, of all runtimes.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// One more task is held.
pub(super) fn held() {
    HELD.fetch_add(1, Relaxed);
}

/// One less is.
pub(super) fn let_go() {
    HELD.fetch_sub(1, Relaxed);
}
