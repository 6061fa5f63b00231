//! A session that gives way to one that the program starts itself.
//!
//! There is one session in a process. One that the environment asks for may begin before the
//! program gets to start its own, which must not be refused for that. So the former is provisional:
//!
//! 1. [`start`] registers it in [`PROVISIONAL`], under the lock that it begins under, so that it is
//!    known as soon as it runs.
//! 2. Whoever begins experiments in code asks [`experimenter`] for the only [`Experimenter`]. A
//!    provisional session is told to stop then, and waited for.
//! 3. A [`Guest`] goes with the provisional session, and is dropped after its profile was closed:
//!    the next session may write to the same file.
//!
//! The wait has a bound. It takes some milliseconds unless the file system of the profile hangs.

use crate::experiment::{Experimenter, Stop};
use crate::fork::forked;
use crate::session::{Session, StartError};
use crate::settings::Settings;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why a provisional session ended, as its profile says.
pub(super) const GAVE_WAY: &str = "the program started a session itself";

/// How long a provisional session may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The provisional session, while there is one.
static PROVISIONAL: Mutex<Option<Stopper>> = Mutex::new(None);

/// Tells that there is none any more.
static ENDED: Condvar = Condvar::new();

/// Stops a session, for a reason.
#[derive(Debug)]
pub(super) struct Stopper {
    pub(super) stop: Arc<Stop>,
    pub(super) reason: Arc<Mutex<Option<String>>>,
}

impl Stopper {
    pub(super) fn stop(&self, reason: &str) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        self.stop.stop();
    }
}

/// Goes with a provisional session, and says that it is over when dropped.
#[derive(Debug)]
pub(super) struct Guest(());

impl Drop for Guest {
    fn drop(&mut self) {
        // In a child of fork another thread may hold the lock for good.
        if !forked() {
            *registered() = None;
            ENDED.notify_all();
        }
    }
}

fn registered() -> MutexGuard<'static, Option<Stopper>> {
    PROVISIONAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a provisional session.
pub(super) fn start(settings: Settings) -> Result<Session, StartError> {
    if forked() {
        return Err(StartError::Forked);
    }
    let mut provisional = registered();
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
    let mut provisional = registered();
    if let Some(guest) = &*provisional {
        guest.stop(GAVE_WAY);
        (provisional, _) = ENDED
            .wait_timeout_while(provisional, PATIENCE, |guest| guest.is_some())
            .unwrap_or_else(PoisonError::into_inner);
    }
    // Under the lock, so that no provisional session begins in between.
    let experimenter = Experimenter::new();
    drop(provisional);
    experimenter
}
