//! A word on stderr where the environment switches profiling on and nothing in the program does.
//!
//! Code that starts a session from the environment asks [`Settings::enabled_by_env`] first, and
//! tells the user itself when it fails. Where a task is wrapped and nobody has asked yet, nobody
//! may ever do so.
//!
//! [`Settings::enabled_by_env`]: crate::settings::Settings::enabled_by_env

use crate::settings;
use crate::stderr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Somebody has asked the environment, or [`look`] has.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Records that somebody asks the environment whether profiling is on.
pub(crate) fn asked() {
    // Relaxed: a flag that publishes nothing else.
    ANSWERED.store(true, Ordering::Relaxed);
}

/// Prints a notice, once, if profiling is off although the environment switches it on.
///
/// Call it where something would be profiled. All calls but the first cost a load and a branch.
#[inline]
pub fn would_be_profiled() {
    // Relaxed: as above.
    if !ANSWERED.load(Ordering::Relaxed) {
        look();
    }
}

#[cold]
#[inline(never)]
fn look() {
    // Relaxed: only one thread may be told that it is the first.
    if !ANSWERED.swap(true, Ordering::Relaxed) && settings::is_on() {
        stderr::print(
            "andweorc: not profiling: ANDWEORC_ENABLED is set, but nothing in the program has switched profiling on by now. Do so first in main: \
             #[andweorc::main] in the place of #[tokio::main], or andweorc::subscriber().init(), or .enable_profiling() on the runtime's builder \
             (andweorc::runtime::BuilderExt); programs without a runtime call andweorc::init()\n",
        );
    }
}
