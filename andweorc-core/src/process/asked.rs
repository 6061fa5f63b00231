//! Values that each poll reads before anything else.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// Values that each poll asks for, and experiments write: on one cache line, with nothing else.
#[derive(Debug)]
pub(crate) struct Asked {
    switches: AtomicU8,
    /// Id of the target of the running experiment; 0 when there is none.
    pub(crate) target: AtomicU32,
    /// See [`target_fraction::aim`](crate::sampler::target_fraction::aim).
    pub(crate) aim: AtomicU32,
    /// Whether the thread that looks for those that lag is to
    /// [look often](crate::asked::look_often).
    pub(crate) looks_often: AtomicBool,
}

/// Switches of what threads do, a bit each: one byte, so that one look tells whether any of those
/// is on that are seldom so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches(u8);

impl Switches {
    /// Andweorc is enabled.
    pub const ENABLED: Switches = Switches(1);
    /// Andweorc is enabled, or was.
    pub const WAS_ENABLED: Switches = Switches(1 << 1);
    /// See [`wall::is_recording`](crate::wall::is_recording).
    pub const RECORDS_WALL: Switches = Switches(1 << 2);
    /// See [`target_fraction::learns`](crate::sampler::target_fraction::learns).
    pub(crate) const LEARNS: Switches = Switches(1 << 3);
    /// See [`target_fraction::has_learned`](crate::sampler::target_fraction::has_learned).
    pub(crate) const HAS_LEARNED: Switches = Switches(1 << 4);
    /// There is an [`aim`](Asked::aim).
    pub(crate) const AIMS: Switches = Switches(1 << 5);
    /// The program's allocator asks in [which visit](crate::thread::visit) a thread is.
    pub(crate) const COUNTS_VISITS: Switches = Switches(1 << 6);

    /// These and those.
    pub const fn or(self, others: Switches) -> Switches {
        Switches(self.0 | others.0)
    }

    /// Whether any of those is among these.
    #[inline]
    pub fn has(self, any: Switches) -> bool {
        self.0 & any.0 != 0
    }
}

impl Asked {
    /// Nothing.
    pub(crate) const fn new() -> Asked {
        Asked {
            switches: AtomicU8::new(0),
            target: AtomicU32::new(0),
            aim: AtomicU32::new(0),
            looks_often: AtomicBool::new(false),
        }
    }

    /// The switches that are on.
    #[inline]
    pub(crate) fn switches(&self) -> Switches {
        // Relaxed: a thread that sees a switch later does what it asks for later. What belongs to
        // it stands for itself.
        Switches(self.switches.load(Ordering::Relaxed))
    }

    /// Whether any of these switches is on.
    #[inline]
    pub(crate) fn is_any_on(&self, any: Switches) -> bool {
        self.switches().has(any)
    }

    /// Switches these on.
    pub(crate) fn switch_on(&self, switches: Switches) {
        self.switches.fetch_or(switches.0, Ordering::SeqCst);
    }

    /// Switches these off. Async-signal-safe.
    pub(crate) fn switch_off(&self, switches: Switches) {
        self.switches.fetch_and(!switches.0, Ordering::SeqCst);
    }

    /// Switches these on or off.
    pub(crate) fn switch(&self, switches: Switches, on: bool) {
        if on { self.switch_on(switches) } else { self.switch_off(switches) }
    }
}
