//! A session that nobody waits for: it prints its report when it ends, or when the program does.

use crate::start::signals::{Disposition, Signals};
use andweorc_core::fork::forked;
use andweorc_core::plain;
use andweorc_core::session::{Outcome, Session, StartError};
use andweorc_core::settings::Settings;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, fs, mem};

/// How often the thread looks whether the session has ended or a signal came.
const LOOK: Duration = Duration::from_millis(50);

/// Names a file to write to what is done at the moment. Set by `cargo andweorc run`, which prints the report itself.
const STATUS: &str = "CARGO_ANDWEORC_STATUS";

/// The session of a program, until dropped: with `#[andweorc::main]`, until that returns.
#[derive(Debug, Default)]
pub(crate) struct Background {
    returned: Arc<Returned>,
    thread: Option<JoinHandle<()>>,
}

/// Tells the thread that `main` has returned, and how.
#[derive(Debug, Default)]
struct Returned {
    returned: Mutex<Option<&'static str>>,
    changed: Condvar,
}

impl Background {
    /// Starts a session if `ANDWEORC_ENABLED` says so. What is wrong with the settings, or with the place of the profile, is printed;
    /// the program goes on unprofiled.
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
        let returned = Arc::new(Returned::default());
        let until = Arc::clone(&returned);
        let signals = Signals::install();
        let thread = thread::Builder::new()
            .name("andweorc-report".into())
            .spawn(move || watch(session, &until, &signals));
        match thread {
            Ok(thread) => Background { returned, thread: Some(thread) },
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
        let Some(thread) = self.thread.take() else { return true };
        let began = Instant::now();
        let mut told = false;
        while !thread.is_finished() {
            if began.elapsed() > patience {
                mem::forget(thread);
                return false;
            }
            // The thread holds the lock while it prints.
            if !told && let Ok(mut returned) = self.returned.returned.try_lock() {
                *returned = Some(how);
                self.returned.changed.notify_all();
                told = true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        true
    }
}

impl Drop for Background {
    /// Ends the session and prints its report.
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if forked() {
            // There is no such thread here, and the report is the parent's.
            mem::forget(thread);
            return;
        }
        let how = if thread::panicking() { "main panicked" } else { "main returned" };
        *self.returned.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
        self.returned.changed.notify_all();
        if thread.join().is_err() {
            say("andweorc: the thread that prints the report panicked; the profile is written\n");
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
    Session::start(settings).map(Some)
}

/// Waits until the session ends, `main` returns, or a signal asks the program to end; then prints the report.
fn watch(session: Session, returned: &Returned, signals: &Signals) {
    let mut status = Status::from_env();
    let mut main = returned.returned.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(status) = &mut status {
            status.tell(&session);
        }
        if session.is_finished() {
            print(&session.wait());
            break;
        }
        if let Some(how) = *main {
            print(&session.finish(how));
            break;
        }
        if let Some(signal) = signals.received() {
            print(&session.finish(&format!("signal {signal}")));
            if signals.disposition(signal) == Disposition::OursAlone {
                signals.end_program(signal);
            }
            break;
        }
        (main, _) =
            returned.changed.wait_timeout(main, LOOK).unwrap_or_else(PoisonError::into_inner);
    }
    drop(main);
    signals.uninstall();
    // While the report was made and printed nobody looked.
    if let Some(signal) = signals.received()
        && signals.disposition(signal) == Disposition::Default
    {
        signals.end_program(signal);
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

/// Prints to stderr: stdout is the program's.
#[allow(
    clippy::print_stderr,
    reason = "the report is what the user asked for, and a library has no other place for it"
)]
pub(crate) fn say(text: &str) {
    eprint!("{text}");
}
