//! Whether andweorc is on, and what the running experiment asks of threads: what each poll reads
//! before anything else.

use crate::target::Target;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Values that each poll asks for, and experiments write: on one cache line, with nothing else.
pub(crate) struct Asked {
    pub(crate) enabled: AtomicBool,
    /// True if andweorc is enabled, or was.
    pub(crate) was_enabled: AtomicBool,
    /// Id of the target of the running experiment; 0 when there is none.
    pub(crate) target: AtomicU32,
    /// See [`target_fraction::aim`](crate::sampler::target_fraction::aim).
    pub(crate) aim: AtomicU32,
    /// See [`target_fraction::learns`](crate::sampler::target_fraction::learns).
    pub(crate) learns: AtomicBool,
    /// See [`target_fraction::has_learned`](crate::sampler::target_fraction::has_learned).
    pub(crate) has_learned: AtomicBool,
    /// See [`wall::is_recording`](crate::wall::is_recording).
    pub(crate) records_wall: AtomicBool,
    /// Whether the thread that looks for those that lag is to [look often](look_often).
    pub(crate) looks_often: AtomicBool,
}

pub(crate) static ASKED: CachePadded<Asked> = CachePadded::new(Asked {
    enabled: AtomicBool::new(false),
    was_enabled: AtomicBool::new(false),
    target: AtomicU32::new(0),
    aim: AtomicU32::new(0),
    learns: AtomicBool::new(false),
    has_learned: AtomicBool::new(false),
    records_wall: AtomicBool::new(false),
    looks_often: AtomicBool::new(false),
});

/// Whether andweorc is on. Everything in the hot paths asks this first.
#[inline]
pub fn enabled() -> bool {
    // Relaxed: a thread that sees the switch later starts to take part later.
    ASKED.enabled.load(Ordering::Relaxed)
}

/// Whether andweorc is on, or was: what it began to keep then is kept up, so that there is no gap
/// in it when it is on again.
#[inline]
pub fn was_enabled() -> bool {
    // Relaxed, as above.
    ASKED.was_enabled.load(Ordering::Relaxed)
}

/// Whether this is the target of the running experiment.
#[inline]
pub fn is_target(target: &Target) -> bool {
    // Relaxed: a thread that sees a new target later enters it later, and the ledger credits by its
    // own experiment.
    let asked = ASKED.target.load(Ordering::Relaxed);
    // Between experiments the target is not even looked at: it is a cache line of its own.
    asked != 0 && asked == target.id()
}

/// Has those that lag be looked for often from now on, for good: how often it is changes once at
/// most, and not between a baseline and its experiment again and again.
pub(crate) fn look_often() {
    ASKED.looks_often.store(true, Ordering::SeqCst);
}

/// Whether those that lag are looked for often.
pub(crate) fn looks_often() -> bool {
    ASKED.looks_often.load(Ordering::SeqCst)
}
