//! Whether andweorc is on, and what the running experiment asks of threads: what each poll reads
//! before anything else.

use crate::process::asked::Switches;
use crate::process::process;
use crate::target::Target;
use std::sync::atomic::Ordering;

/// Whether andweorc is on. Everything in the hot paths asks this first.
#[inline]
pub fn enabled() -> bool {
    process().asked.is_any_on(Switches::ENABLED)
}

/// Whether andweorc is on, or was: what it began to keep then is kept up, so that there is no gap
/// in it when it is on again.
#[inline]
pub fn was_enabled() -> bool {
    process().asked.is_any_on(Switches::WAS_ENABLED)
}

/// The switches as they are now, for who asks for several of them.
#[inline]
pub fn switches() -> Switches {
    process().asked.switches()
}

/// Whether this is the target of the running experiment.
#[inline]
pub fn is_target(target: &Target) -> bool {
    // Relaxed: a thread that sees a new target later enters it later, and the ledger credits by its
    // own experiment.
    let asked = process().asked.target.load(Ordering::Relaxed);
    // Between experiments the target is not even looked at: it is a cache line of its own.
    asked != 0 && asked == target.id()
}

/// Has those that lag be looked for often from now on, for good: how often it is changes once at
/// most, and not between a baseline and its experiment again and again.
pub(crate) fn look_often() {
    process().asked.looks_often.store(true, Ordering::SeqCst);
}

/// Whether those that lag are looked for often.
pub(crate) fn looks_often() -> bool {
    process().asked.looks_often.load(Ordering::SeqCst)
}
