//! Switches andweorc on and off, and chooses the target of the running experiment.

use super::ledger;
use crate::asked::{enabled, was_enabled};
use crate::clock;
use crate::fork;
use crate::process::asked::Switches;
use crate::process::process;
use crate::sampler;
use crate::target::Target;
use crate::wall;
use std::sync::atomic::Ordering;

/// Switches andweorc on. Each call holds it, so that by this alone it stays on for the life of the
/// process: experiments let go of it as they [end](crate::experiment::Experimenter).
///
/// Does nothing in a child of fork.
pub fn enable() {
    if fork::forked() {
        return;
    }
    fork::watch(reset_after_fork);
    hold(|holds| holds + 1);
}

/// Takes one call of [`enable`] back. The last that is switches andweorc off.
pub(crate) fn let_go() {
    if !fork::forked() {
        hold(|holds| holds - 1);
    }
}

/// Calls `hook` each time that andweorc is switched on or off from now on.
pub fn when_switched(hook: fn()) {
    process().threads.switch.lock().hooks.push(hook);
}

/// Number of those that hold andweorc on, and the hooks that are told when that changes.
pub(super) struct Switch {
    holds: u32,
    hooks: Vec<fn()>,
}

impl Switch {
    /// Andweorc is off, and nobody is told.
    pub(super) const fn new() -> Switch {
        Switch { holds: 0, hooks: Vec::new() }
    }
}

/// Changes how many hold andweorc on, and switches it where that is from none or to none.
fn hold(change: impl FnOnce(u32) -> u32) {
    let mut switch = process().threads.switch.lock();
    switch.holds = change(switch.holds);
    let on = switch.holds > 0;
    if on == enabled() {
        return;
    }
    if on && !was_enabled() {
        clock::start();
        process().asked.switch_on(Switches::WAS_ENABLED);
    }
    process().asked.switch(Switches::ENABLED, on);
    let hooks = switch.hooks.clone();
    // First: what is called may want to hold locks that `when_switched` is called under.
    drop(switch);
    hooks.into_iter().for_each(|hook| hook());
}

/// Switches andweorc off in a child of fork, and forgives all debts. Async-signal-safe.
fn reset_after_fork() {
    process().asked.switch_off(Switches::ENABLED.or(Switches::WAS_ENABLED));
    process().asked.target.store(0, Ordering::SeqCst);
    wall::reset_after_fork();
    ledger().reset_after_fork();
}

/// Chooses the target of the running experiment. The ledger must be between experiments.
pub(crate) fn set_target(target: Option<&Target>) {
    sampler::aim(target);
    process().asked.target.store(target.map_or(0, Target::id), Ordering::SeqCst);
}
