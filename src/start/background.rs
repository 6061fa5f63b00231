//! A session that nobody waits for: it prints its report when it ends, or when the program does.

use crate::start::signals::{Disposition, Signals, disposition, end_program, newly_received};
use crate::stderr::say;
use andweorc_core::hooks::fork::forked;
use andweorc_core::hooks::own_thread;
use andweorc_core::hooks::session::{Outcome, Session, StartError};
use andweorc_core::hooks::settings::Settings;
use andweorc_profile::plain;
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// How often the thread looks whether the session has ended or a signal came.
const LOOK: Duration = Duration::from_millis(50);

/// How long `main` waits for the report once it has returned: the profile may be on a file system
/// that hangs.
const BOUND: Duration = Duration::from_secs(10);

/// Names a file to write to what is done at the moment. Set by `cargo andweorc run`, which prints
/// the report itself.
const STATUS: &str = "CARGO_ANDWEORC_STATUS";

/// The session of a program, until dropped: with `#[andweorc::main]`, until that returns.
#[derive(Debug, Default)]
pub(crate) struct Background(Option<Arc<Ends>>);

/// The two ends that `main` and the thread wait for.
#[derive(Debug, Default)]
struct Ends {
    ends: Mutex<Ended>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Ended {
    /// How `main` has, if it has.
    main: Option<&'static str>,
    /// The thread has, with the report or without.
    thread: bool,
}

impl Ends {
    fn lock(&self) -> MutexGuard<'_, Ended> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, ended: MutexGuard<'a, Ended>, most: Duration) -> MutexGuard<'a, Ended> {
        self.changed.wait_timeout(ended, most).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Tells that the thread has ended, also where it panics.
struct Over(Arc<Ends>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.lock().thread = true;
        self.0.changed.notify_all();
    }
}

impl Background {
    /// Starts a session if `ANDWEORC_ENABLED` says so. What is wrong with the settings, or with the
    /// place of the profile, is printed; the program goes on unprofiled.
    pub(crate) fn from_env() -> Background {
        match start() {
            Ok(None) => Background::default(),
            Ok(Some(session)) => Background::watch(session),
            Err(error) => {
                say(&format!("andweorc: not profiling: {error}\n"));
                Background::default()
            }
        }
    }

    /// Watches a session that was started, and prints its report at its end.
    pub(crate) fn watch(session: Session) -> Background {
        let ends = Arc::<Ends>::default();
        let over = Over(Arc::clone(&ends));
        let signals = Signals::install();
        let thread = own_thread::spawn("andweorc-report", move || {
            watch(session, &over.0, signals);
        });
        match thread {
            Ok(_) => Background(Some(ends)),
            Err(error) => {
                say(&format!("andweorc: not profiling: no thread could be started: {error}\n"));
                Background::default()
            }
        }
    }
}

impl Background {
    /// Ends the session, since the program ends, and waits no longer than `patience` for its
    /// report. Says whether that was printed. No lock is waited for: at the exit of the process
    /// other threads may hold any.
    pub(crate) fn end_within(mut self, how: &'static str, patience: Duration) -> bool {
        let Some(ends) = self.0.take() else { return true };
        let began = Instant::now();
        loop {
            let ended = match ends.ends.try_lock() {
                Ok(ended) => Some(ended),
                Err(TryLockError::Poisoned(ended)) => Some(ended.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut ended) = ended {
                if ended.thread {
                    return true;
                }
                if ended.main.replace(how).is_none() {
                    ends.changed.notify_all();
                }
            }
            if began.elapsed() > patience {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Background {
    /// Ends the session and waits for its report, for a while.
    fn drop(&mut self) {
        let Some(ends) = self.0.take() else { return };
        if forked() {
            // There is no such thread here, and the report is the parent's.
            return;
        }
        let how = if thread::panicking() { "main panicked" } else { "main returned" };
        let returned = Instant::now();
        let mut ended = ends.lock();
        ended.main = Some(how);
        ends.changed.notify_all();
        while !ended.thread {
            let left = BOUND.saturating_sub(returned.elapsed());
            if left.is_zero() {
                drop(ended);
                say(
                    "andweorc: the profile took too long to be written to its end, and is left as it is\n",
                );
                return;
            }
            ended = ends.wait(ended, left);
        }
    }
}

/// Whether this is the first session that the environment starts: there is one a process.
pub(crate) fn is_first() -> bool {
    static STARTED: AtomicBool = AtomicBool::new(false);
    !STARTED.swap(true, Ordering::SeqCst)
}

fn start() -> Result<Option<Session>, StartError> {
    if !Settings::enabled_by_env()? {
        return Ok(None);
    }
    let settings = Settings::from_env()?;
    // A second runtime of the program runs under the session of the first.
    if !is_first() {
        return Ok(None);
    }
    andweorc_tokio::runtime::tell_threads_apart();
    Session::start(settings).map(Some)
}

/// Waits until the session ends, `main` returns, or a signal asks the program to end; then prints
/// the report.
fn watch(session: Session, ends: &Ends, signals: Signals) {
    let mut status = Status::from_env();
    let (why, asked) = loop {
        if let Some(status) = &mut status {
            status.tell(&session);
        }
        if session.is_finished() {
            break (None, None);
        }
        let ended = ends.lock();
        if let Some(how) = ended.main {
            break (Some(how.to_owned()), None);
        }
        if let Some(signal) = newly_received() {
            break (Some(format!("signal {signal}")), Some(signal));
        }
        drop(ends.wait(ended, LOOK));
    };
    print(&match why {
        Some(why) => session.finish(&why),
        None => session.wait(),
    });
    end_program_by(asked, Disposition::OursAlone);
    drop(signals);
    // While the report was made and printed nobody looked.
    end_program_by(newly_received(), Disposition::Default);
}

/// Ends the program by the signal that asked for it, if nobody but `who` handles that.
fn end_program_by(asked: Option<Signal>, who: Disposition) {
    if let Some(signal) = asked.filter(|signal| disposition(*signal) == who) {
        end_program(signal);
    }
}

/// Writes what the session does at the moment to the file of [`STATUS`], when that has changed.
struct Status {
    file: PathBuf,
    told: Option<String>,
}

impl Status {
    fn from_env() -> Option<Status> {
        env::var_os(STATUS).map(|file| Status { file: file.into(), told: None })
    }

    fn tell(&mut self, session: &Session) {
        let status = session.status();
        let now = status.experiment.unwrap_or_else(|| status.phase.to_owned());
        if self.told.as_ref() != Some(&now) {
            // It is for show: where it can't be written, less is shown.
            fs::write(&self.file, &now).unwrap_or_default();
            self.told = Some(now);
        }
    }
}

fn print(outcome: &Outcome) {
    if env::var_os(STATUS).is_some() {
        return;
    }
    say(&format!("{}\nprofile: {}\n", outcome.report(), plain::path(outcome.profile_path())));
}
