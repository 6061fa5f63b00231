//! A word on stderr where the environment switches profiling on and nothing in the program does.
//!
//! Code that starts a session from the environment asks [`Settings::enabled_by_env`] first, and
//! tells the user itself when it fails. Where a task is wrapped and nobody has asked yet, nobody
//! may ever do so.
//!
//! [`Settings::enabled_by_env`]: crate::settings::Settings::enabled_by_env

use crate::settings;
use crate::stderr;

/// Prints a notice, once, if profiling is off although the environment switches it on.
///
/// Call it where something would be profiled. All calls but the first cost a load and a branch.
#[inline]
pub fn would_be_profiled() {
    if !settings::is_asked() {
        look();
    }
}

#[cold]
#[inline(never)]
fn look() {
    if settings::is_on_unasked() {
        stderr::print(
            "andweorc: not profiling: ANDWEORC_ENABLED is set, but nothing in the program has switched profiling on by now. Do so first in main: \
             #[andweorc::main] in the place of #[tokio::main], or andweorc::subscriber().init(), or .enable_profiling() on the runtime's builder \
             (andweorc::runtime::BuilderExt); programs without a runtime call andweorc::init()\n",
        );
    }
}
