//! Values that each poll reads before anything else.

use std::sync::atomic::{AtomicBool, AtomicU32};

/// Values that each poll asks for, and experiments write: on one cache line, with nothing else.
#[derive(Debug)]
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
    /// Whether the thread that looks for those that lag is to
    /// See [`wall::is_recording`](crate::wall::is_recording).
    pub(crate) records_wall: AtomicBool,
    /// See [`long_polls`](crate::long_polls): whether polls say when they began.
    pub(crate) watches_polls: AtomicBool,
    /// [look often](crate::asked::look_often).
    pub(crate) looks_often: AtomicBool,
}

impl Asked {
    /// Nothing.
    pub(crate) const fn new() -> Asked {
        Asked {
            enabled: AtomicBool::new(false),
            was_enabled: AtomicBool::new(false),
            target: AtomicU32::new(0),
            aim: AtomicU32::new(0),
            learns: AtomicBool::new(false),
            has_learned: AtomicBool::new(false),
            records_wall: AtomicBool::new(false),
            watches_polls: AtomicBool::new(false),
            looks_often: AtomicBool::new(false),
        }
    }
}
