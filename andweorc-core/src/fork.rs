//! A child of fork has one thread, and the state of all others as it was: experiments that nobody ends, delays that nobody takes back,
//! locks that nobody opens. So andweorc is off in it, for good, and what its parent was about to do (end the profile, print the report) it
//! does not do. A program that the child executes starts anew.
//!
//! Only what fork(2) of the C library makes is noticed, not a bare clone(2); `std::process::Command` needs neither.

use crate::thread;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked from one in which andweorc was on. Who would join a thread, lock what another thread may hold, or write to
/// the profile asks this first.
pub fn forked() -> bool {
    // Relaxed: written once, by the only thread that there is.
    FORKED.load(Ordering::Relaxed)
}

/// Notices forks from now on.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler is async-signal-safe, as it says, and lives as long as the program. Without memory for it the call fails, and
        // a child of fork behaves as if nobody had noticed.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// # Safety
///
/// Runs in the child of a program of many threads: it writes atomics, allocates nothing and takes no lock.
unsafe extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
    thread::abandon();
}
