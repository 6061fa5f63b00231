//! Facts about the machine, and about what andweorc takes of it.

use std::sync::atomic::{AtomicBool, AtomicI64};

/// Facts about the machine. Accesses are Relaxed, all: they publish nothing.
#[derive(Debug)]
pub(crate) struct Machine {
    /// There is a limit on the program's processor time.
    pub(crate) is_limited: AtomicBool,
    /// CPU time that pauses of all threads have used, ns.
    pub(crate) paused: AtomicI64,
    /// Length of all stalls that were seen, ns.
    pub(crate) stalled: AtomicI64,
}

impl Machine {
    /// Nothing is known of it.
    pub(crate) const fn new() -> Machine {
        Machine {
            is_limited: AtomicBool::new(false),
            paused: AtomicI64::new(0),
            stalled: AtomicI64::new(0),
        }
    }
}
