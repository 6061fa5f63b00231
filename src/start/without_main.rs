//! The session of a program without `#[andweorc::main]`: the layer, the subscriber or the builder
//! of a runtime starts it, whichever comes first, where `ANDWEORC_ENABLED` is set.
//!
//! # Who has the session
//!
//! There is one session in a process at a time, and the environment starts one in its lifetime.
//!
//! | who comes | while nothing runs | while this session runs |
//! |---|---|---|
//! | a layer, a subscriber, a builder | starts this session | changes nothing |
//! | `#[andweorc::main]` | starts its own | takes this one over, and ends it when main returns |
//! | `Session::start`, `run_experiments` | starts its own | this one gives way, and says so |
//!
//! After the second and third row no layer, subscriber or builder starts one while that runs.
//!
//! The session begins at once, like the one of `#[andweorc::main]`: tasks and spans that begin
//! before it are seen late or never.
//!
//! # When it ends
//!
//! By itself, and at SIGTERM and SIGINT, like the one of `#[andweorc::main]`. In the place of the
//! return from main there is the exit of the process, by return from main or by
//! `std::process::exit` on any thread: [`at_exit`] has the report printed, and waits for that no
//! longer than [`PATIENCE`]. The exit status stays, and a child of fork does nothing.

use crate::start::background::{Background, is_first};
use crate::stderr::say;
use andweorc_core::hooks::fork::forked;
use andweorc_core::hooks::session::{Session, StartError};
use andweorc_core::hooks::settings::Settings;
use andweorc_core::hooks::stderr;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

/// For how long the exit of the process may wait for the report.
const PATIENCE: Duration = Duration::from_secs(2);

/// The session, once it was started here, until somebody ends it.
static SESSION: Mutex<Option<Background>> = Mutex::new(None);

/// Starts the session, the first time, if the environment says so and nothing else has started one.
pub(crate) fn start() {
    static ASKED: AtomicBool = AtomicBool::new(false);
    // Relaxed: only one thread may be the first, and it publishes nothing by this.
    if ASKED.load(Ordering::Relaxed) || ASKED.swap(true, Ordering::Relaxed) {
        return;
    }
    match session() {
        Ok(None) => {}
        Ok(Some(session)) => {
            *SESSION.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Background::watch(session));
            // SAFETY: the handler lives as long as the program, or as the library that it is in,
            // before whose end `atexit` calls it. Without memory for it the call fails, and the
            // profile is left like that of a killed program.
            unsafe { libc::atexit(at_exit) };
        }
        Err(error) => say(&format!("andweorc: not profiling: {error}\n")),
    }
}

fn session() -> Result<Option<Session>, StartError> {
    if !Settings::enabled_by_env()? {
        return Ok(None);
    }
    let settings = Settings::from_env()?;
    if !is_first() {
        return Ok(None);
    }
    andweorc_tokio::runtime::tell_threads_apart();
    match Session::start_provisional(settings) {
        // The program has one of its own.
        Err(StartError::AlreadyRunning) => Ok(None),
        started => started.map(Some),
    }
}

/// The session that was started here, for a `#[andweorc::main]` that comes later.
pub(crate) fn take() -> Option<Background> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Ends the session, if there is one and nobody else has.
extern "C" fn at_exit() {
    if forked() {
        // There is no such session here, and the report is the parent's.
        return;
    }
    // A panic must stay in here: it would abort the program, and so change its exit status.
    let in_time = catch_unwind(|| {
        let session = match SESSION.try_lock() {
            Ok(mut session) => session.take(),
            Err(TryLockError::Poisoned(session)) => session.into_inner().take(),
            // Another thread is in `take` or `start`.
            Err(TryLockError::WouldBlock) => None,
        };
        session.is_none_or(|session| session.end_within("the program exited", PATIENCE))
    });
    if !in_time.unwrap_or(false) {
        stderr::print(
            "andweorc: the program exited before its report was ready; `cargo andweorc report` makes it from the profile\n",
        );
    }
}
