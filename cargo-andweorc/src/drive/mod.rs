//! One run of the program: started, waited for, put under load, watched, and stopped.
//!
//! The order is always the same: the program is started; when it is ready, the load is; when the
//! profile has its end, the load is stopped first and the program after it. Each gets SIGTERM, and
//! SIGKILL when a grace time has passed. Signals go to processes that were started here and to
//! nobody else.

mod error;
mod follow;
mod load;
mod options;
mod output;
mod ready;

use crate::child::{self, Handlers, LOOK, Running};
use crate::live::{Moment, View};
use andweorc_profile::Run;
use follow::Follower;
use load::{Load, LoadState};
use nix::sys::signal::Signal;
use output::Output;
use ready::Ready;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, thread};

pub(crate) use error::{DriveError, Instead};
pub(crate) use options::DriveOptions;
pub(crate) use output::Stream;

/// How long a program may go on by itself when its profile has its end: it prints something, most
/// often.
const OWN_END: Duration = Duration::from_secs(2);
/// How long after the end of a session the program's own one begins, at most.
const NEXT_SESSION: Duration = Duration::from_millis(500);
/// How long a program may take to end after Ctrl-C, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

/// Names the file to which the program writes what it does at the moment; it does not print its
/// report then.
const STATUS: &str = "CARGO_ANDWEORC_STATUS";

/// The longest status that is read, bytes.
const LONGEST_STATUS: u64 = 64 << 10;

/// Program to run, and how.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// Name of the program.
    pub(crate) name: &'a str,
    /// Where its profile goes.
    pub(crate) out: &'a Path,
    /// Load and readiness.
    pub(crate) options: &'a DriveOptions,
    /// Runs before this one, with which it is shown.
    pub(crate) earlier: &'a [Run],
    /// Time budget of all runs.
    pub(crate) budget: Duration,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The program's status.
    pub(crate) status: ExitStatus,
    /// The program was stopped by this process, since its profile had its end.
    pub(crate) stopped: bool,
    /// How long it ran.
    pub(crate) lasted: Duration,
}

impl Ended {
    /// Returns what the program did, if it did not profile.
    pub(crate) fn instead(&self) -> Instead {
        Instead::Ended(self.status, self.lasted)
    }
}

/// Runs the program once.
///
/// # Errors
///
/// When it can't be started, is never ready, begins no profile, or the load fails. Nothing is left
/// running.
pub(crate) fn drive(
    command: &mut Command,
    launch: &Launch<'_>,
    view: &mut View,
) -> Result<Ended, DriveError> {
    let ready = Ready::of(launch.options);
    if let Ready::Port(port) = ready
        && ready::accepts(port)
    {
        return Err(DriveError::PortTaken(port));
    }
    let handlers = Handlers::install();
    let status = StatusFile::beside(launch.out);
    let output = Output::new(view.printer(), launch.options.ready_line.as_deref());
    output.prepare(command);
    let follower = Follower::new(launch.out);
    let program = Running::start(command.env(STATUS, &status.0)).map_err(|source| {
        DriveError::Start { program: PathBuf::from(command.get_program()), source }
    })?;
    let mut drive = Drive {
        launch,
        ready,
        output,
        follower,
        status,
        program,
        started: Instant::now(),
        was_ready: false,
        began: None,
        load: None,
        told_again: false,
    };
    let forwarded = drive.output.forward(drive.program.child());
    let watched = drive.watch(view);
    let ended = drive.end(watched, view);
    forwarded.finish();
    drop(handlers);
    ended
}

/// A program under way.
struct Drive<'a> {
    launch: &'a Launch<'a>,
    ready: Ready,
    output: Output,
    follower: Follower,
    status: StatusFile,
    program: Running,
    started: Instant,
    was_ready: bool,
    /// When its profile began.
    began: Option<Instant>,
    load: Option<Load>,
    /// The user was told that the load is started again.
    told_again: bool,
}

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The program has ended.
    Ended,
    /// The profile has its end.
    Profiled,
    /// The user wants an end.
    Asked,
}

impl Drive<'_> {
    /// From the start to the end of the program or its profile.
    fn watch(&mut self, view: &mut View) -> Result<Why, DriveError> {
        while !self.ready.is_ready(self.program.pid(), self.output.line_seen()) {
            if child::stop_asked() {
                return Ok(Why::Asked);
            }
            if self.program.has_ended() {
                return Ok(Why::Ended);
            }
            if self.started.elapsed() > self.launch.options.ready_timeout {
                return Err(DriveError::NeverReady {
                    name: self.launch.name.to_owned(),
                    ready: self.ready.clone(),
                    timeout: self.launch.options.ready_timeout,
                });
            }
            self.tick(view);
        }
        self.was_ready = true;
        if let Some(command) = &self.launch.options.load {
            view.say(format_args!(
                "{} is ready after {:.1} s; load: {command}",
                self.launch.name,
                self.started.elapsed().as_secs_f64()
            ));
            self.load = Some(Load::start(command, &self.output).map_err(DriveError::LoadStart)?);
        }
        let ready = Instant::now();
        loop {
            self.tick(view);
            if self.program.has_ended() {
                return Ok(Why::Ended);
            }
            if self.follower.has_ended() && self.stays_ended(view) {
                return Ok(Why::Profiled);
            }
            if child::stop_asked() {
                return Ok(Why::Asked);
            }
            self.look_after_load(view)?;
            if self.began.is_none() && ready.elapsed() > self.launch.options.ready_timeout {
                return Err(self.no_profile(Instead::WentOn(self.launch.options.ready_timeout)));
            }
        }
    }

    /// Whether no other profile takes the place of the one that has its end: a program that starts
    /// a session itself ends the one that was started for it.
    fn stays_ended(&mut self, view: &mut View) -> bool {
        let until = Instant::now() + NEXT_SESSION;
        while self.follower.has_ended() && !self.program.has_ended() && Instant::now() < until {
            self.tick(view);
        }
        self.follower.has_ended()
    }

    fn look_after_load(&mut self, view: &mut View) -> Result<(), DriveError> {
        let Some(load) = &mut self.load else { return Ok(()) };
        match load.look().map_err(DriveError::LoadStart)? {
            LoadState::Runs => {}
            LoadState::Again(_) if self.told_again => {}
            LoadState::Again(lasted) => {
                self.told_again = true;
                view.say(format_args!(
                    "the load ended after {:.1} s, and is started again whenever it ends",
                    lasted.as_secs_f64()
                ));
            }
            LoadState::Failed(status) => {
                self.follower.read_on();
                let command = self.launch.options.load.clone().unwrap_or_default();
                let out = self.follower.run().map(|_| self.launch.out.to_owned());
                return Err(DriveError::Load { command, status, out });
            }
        }
        Ok(())
    }

    /// Waits a moment, and shows what is new.
    fn tick(&mut self, view: &mut View) {
        thread::sleep(LOOK);
        let new = self.follower.read_on();
        if self.began.is_none() && self.follower.run().is_some() {
            self.began = Some(Instant::now());
        }
        if let (Some(run), Some(began)) = (self.follower.run(), self.began) {
            view.show(&Moment {
                name: self.launch.name,
                earlier: self.launch.earlier,
                run,
                new,
                elapsed: began.elapsed(),
                budget: self.launch.budget,
                under_way: &|| self.status.read(),
            });
        }
    }

    /// Stops what still runs, the load first, and tells what came of it.
    fn end(
        mut self,
        watched: Result<Why, DriveError>,
        view: &mut View,
    ) -> Result<Ended, DriveError> {
        let lasted = self.started.elapsed();
        self.load = None;
        let patience = match watched {
            Ok(Why::Profiled) => OWN_END,
            Ok(Why::Asked) => GRACE,
            Ok(Why::Ended) | Err(_) => Duration::ZERO,
        };
        let stopped = !self.ends_within(patience, child::terminated);
        if stopped {
            self.program.signal(Signal::SIGTERM);
            if !self.ends_within(GRACE, || false) {
                view.say(format_args!(
                    "{} did not end within {} s after SIGTERM, and is killed",
                    self.launch.name,
                    GRACE.as_secs()
                ));
                self.program.signal(Signal::SIGKILL);
            }
        }
        let written = self.follower.is_written();
        let name = || self.launch.name.to_owned();
        let out = || self.launch.out.to_owned();
        let status = self
            .program
            .reap()
            .map_err(|source| DriveError::Start { program: name().into(), source })?;
        let watched = watched?;
        if watched == Why::Ended && !self.was_ready {
            return Err(DriveError::EndedEarly { name: name(), status, after: lasted });
        }
        if !written {
            let instead = Instead::Ended(status, lasted);
            return Err(DriveError::NoProfile { name: name(), out: out(), instead });
        }
        Ok(Ended { status, stopped: stopped && watched == Why::Profiled, lasted })
    }

    /// Waits for the end of the program, until the time has passed or `enough` says so; true when
    /// it has ended.
    fn ends_within(&self, time: Duration, enough: impl Fn() -> bool) -> bool {
        let until = Instant::now() + time;
        while !self.program.has_ended() {
            if Instant::now() >= until || enough() {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }

    fn no_profile(&self, instead: Instead) -> DriveError {
        DriveError::NoProfile {
            name: self.launch.name.to_owned(),
            out: self.launch.out.to_owned(),
            instead,
        }
    }
}

/// The file in which the program says what it does at the moment, until dropped.
#[derive(Debug)]
struct StatusFile(PathBuf);

impl StatusFile {
    fn beside(out: &Path) -> StatusFile {
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".status");
        StatusFile(out.with_file_name(name))
    }

    /// Reads what the program does; `None` where it does not say.
    fn read(&self) -> Option<String> {
        // Something else may lie there, such as a pipe.
        fs::metadata(&self.0).ok().filter(|it| it.is_file() && it.len() <= LONGEST_STATUS)?;
        let said = fs::read_to_string(&self.0).ok()?;
        let said = said.trim();
        (!said.is_empty()).then(|| said.to_owned())
    }
}

impl Drop for StatusFile {
    fn drop(&mut self) {
        // Not every program makes it.
        fs::remove_file(&self.0).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use std::fs::File;

    #[test]
    fn a_status_is_a_line_in_a_file_and_nothing_else_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let status = StatusFile::beside(&folder.path().join("run.jsonl"));
        fs::write(&status.0, "baseline\n").unwrap();
        assert_eq!(status.read().as_deref(), Some("baseline"));
        File::create(&status.0).unwrap().set_len(LONGEST_STATUS + 1).unwrap();
        assert_eq!(status.read(), None);
        fs::remove_file(&status.0).unwrap();
        mkfifo(&status.0, Mode::from_bits_truncate(0o600)).unwrap();
        // To open a pipe would wait for good.
        assert_eq!(status.read(), None);
    }
}
