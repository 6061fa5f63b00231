//! A session that gives way to one that the program starts itself.
//!
//! There is one session in a process. One that the environment asks for may begin before the
//! program gets to start its own, which must not be refused for that. So the former is provisional:
//!
//! 1. [`start`] registers it in [`Sessions`](super::sessions::Sessions), under the lock that it
//!    begins under, so that it is known as soon as it runs.
//! 2. Whoever begins experiments in code asks [`experimenter`] for the only [`Experimenter`]. A
//!    provisional session is told to stop then, and waited for.
//! 3. A [`Guest`] goes with the provisional session, and is dropped after its profile was closed:
//!    the next session may write to the same file.
//!
//! The wait has a bound. It takes some milliseconds unless the file system of the profile hangs.

use crate::experiment::{Experimenter, Stop};
use crate::fork::forked;
use crate::process::process;
use crate::session::{Session, StartError};
use crate::settings::Settings;
use crate::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Why a provisional session ended, as its profile says.
pub(super) const GAVE_WAY: &str = "the program started a session itself";

/// How long a provisional session may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Stops a session, for a reason.
#[derive(Debug)]
pub(super) struct Stopper {
    pub(super) stop: Arc<Stop>,
    pub(super) reason: Arc<Mutex<Option<String>>>,
}

impl Stopper {
    pub(super) fn stop(&self, reason: &str) {
        *self.reason.lock() = Some(reason.to_owned());
        self.stop.stop();
    }

    /// Names the reason for an end that comes, unless one is named.
    pub(super) fn name_reason(&self, reason: &str) {
        self.reason.lock().get_or_insert_with(|| reason.to_owned());
    }
}

/// Goes with a provisional session, and says that it is over when dropped.
#[derive(Debug)]
pub(super) struct Guest(());

impl Drop for Guest {
    fn drop(&mut self) {
        // In a child of fork another thread may hold the lock for good.
        if !forked() {
            let sessions = &process().sessions;
            *sessions.provisional.lock() = None;
            sessions.ended.notify_all();
        }
    }
}

/// Starts a provisional session.
pub(super) fn start(settings: Settings) -> Result<Session, StartError> {
    if forked() {
        return Err(StartError::Forked);
    }
    let mut provisional = process().sessions.provisional.lock();
    let experimenter = Experimenter::new().ok_or(StartError::AlreadyRunning)?;
    let mut session = Session::begin(settings, experimenter)?;
    *provisional = Some(session.stopper());
    session.guest = Some(Guest(()));
    Ok(session)
}

/// The experimenter of the process, for experiments that the program starts itself. `None` when
/// other experiments of the program have it.
pub(crate) fn experimenter() -> Option<Experimenter> {
    if forked() {
        return None;
    }
    let sessions = &process().sessions;
    let mut provisional = sessions.provisional.lock();
    if let Some(guest) = &*provisional {
        guest.stop(GAVE_WAY);
        provisional =
            sessions.ended.wait_timeout_while(provisional, PATIENCE, |guest| guest.is_some());
    }
    // Under the lock, so that no provisional session begins in between.
    let experimenter = Experimenter::new();
    drop(provisional);
    experimenter
}
