//! State that the threads of a process share, beside the ledger.

use super::plain::Plain;
use super::switch::Switch;
use super::wakeup_latency::Last;
use crate::engine::Door;
use crate::sync::{Mutex, const_fn};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// State that all threads of a process share.
pub(crate) struct Shared {
    /// When a thread was woken last, and L of who did it.
    pub(super) last_wake: CachePadded<Last>,
    /// The part of the time in which some processor was idle, ppm.
    pub(super) idle: AtomicU32,
    /// How plain threads are known.
    pub(super) plain: Plain,
    /// The kernel did not tell how long a thread had waited for its processor.
    pub(super) has_untold_waits: AtomicBool,
    /// Threads that found no free account.
    pub(super) without_account: AtomicU64,
    /// All threads that say when they are blocked.
    pub(super) door: Mutex<Door<'static>>,
    /// Number of those that hold andweorc on.
    pub(super) switch: Mutex<Switch>,
}

impl Shared {
    const_fn! {
    /// No thread has done anything.
    pub(crate) fn new() -> Shared {
        Shared {
            last_wake: CachePadded::new(Last::new()),
            idle: AtomicU32::new(0),
            plain: Plain::new(),
            has_untold_waits: AtomicBool::new(false),
            without_account: AtomicU64::new(0),
            door: Mutex::new(Door::new()),
            switch: Mutex::new(Switch::new()),
        }
    }
    }
}
