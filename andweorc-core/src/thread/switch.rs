//! Whether andweorc is on, and what the running experiment asks for.

use super::LEDGER;
use crate::clock;
use crate::fork;
use crate::sampler;
use crate::target::Target;
use crossbeam_utils::CachePadded;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What each poll asks for, and experiments write: on one cache line, with nothing else.
pub(crate) struct Asked {
    enabled: AtomicBool,
    /// Id of the target of the running experiment; 0 when there is none.
    target: AtomicU32,
    /// See [`share::aim`](crate::sampler::share::aim).
    pub(crate) aim: AtomicU32,
    /// See [`share::learns`](crate::sampler::share::learns).
    pub(crate) learns: AtomicBool,
    /// See [`share::has_learned`](crate::sampler::share::has_learned).
    pub(crate) has_learned: AtomicBool,
}

pub(crate) static ASKED: CachePadded<Asked> = CachePadded::new(Asked {
    enabled: AtomicBool::new(false),
    target: AtomicU32::new(0),
    aim: AtomicU32::new(0),
    learns: AtomicBool::new(false),
    has_learned: AtomicBool::new(false),
});

/// Whether andweorc is on. Everything in the hot paths asks this first.
#[inline]
pub fn enabled() -> bool {
    // Relaxed: a thread that sees the switch later starts to take part later.
    ASKED.enabled.load(Ordering::Relaxed)
}

/// Switches andweorc on. It stays on for the life of the process: tasks that saw it on keep their wrapped wakers.
///
/// Does nothing in a child of [fork](mod@crate::fork).
pub fn enable() {
    if fork::forked() {
        return;
    }
    fork::watch();
    if !ASKED.enabled.swap(true, Ordering::SeqCst) {
        clock::start();
        // Taken out first: what is called may want to hold locks that [`when_enabled`] is called under.
        let hooks = mem::take(&mut *hooks());
        hooks.into_iter().for_each(|hook| hook());
    }
}

/// Calls `hook` once, when andweorc is switched on; never if it is on already. Whoever has called this and finds andweorc off is told when
/// that changes.
pub fn when_enabled(hook: fn()) {
    let mut hooks = hooks();
    if !enabled() {
        hooks.push(hook);
    }
}

fn hooks() -> MutexGuard<'static, Vec<fn()>> {
    static HOOKS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());
    HOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Switches andweorc off in a child of fork, and forgives all debts. Async-signal-safe.
pub(crate) fn abandon() {
    ASKED.enabled.store(false, Ordering::SeqCst);
    ASKED.target.store(0, Ordering::SeqCst);
    LEDGER.abandon();
}

/// Chooses the target of the running experiment. The ledger must be between experiments.
pub(crate) fn set_target(target: Option<&Target>) {
    sampler::aim(target);
    ASKED.target.store(target.map_or(0, Target::id), Ordering::SeqCst);
}

/// Whether this is the target of the running experiment.
#[inline]
pub fn is_target(target: &Target) -> bool {
    // Relaxed: a thread that sees a new target later enters it later, and the ledger credits by its own experiment.
    let asked = ASKED.target.load(Ordering::Relaxed);
    // Between experiments the target is not even looked at: it is a cache line of its own.
    asked != 0 && asked == target.id()
}
