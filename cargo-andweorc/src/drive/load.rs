//! The command that puts load on the program.

use crate::child::Running;
use crate::drive::output::Output;
use nix::sys::signal::Signal;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// A command that ends sooner is not started again at once.
const LEAST: Duration = Duration::from_secs(1);

/// The load, from [`start`](Load::start) until dropped.
#[derive(Debug)]
pub(crate) struct Load {
    command: String,
    output: Output,
    running: Option<Running>,
    started: Instant,
    /// How long it lasted when it ended last.
    lasted: Duration,
}

/// State that the load has come to.
#[derive(Debug)]
pub(crate) enum LoadState {
    /// The load runs, or will in a moment.
    Runs,
    /// The load ended well after so long, and was started again.
    Again(Duration),
    /// The load failed.
    Failed(ExitStatus),
}

impl Load {
    /// Starts it in a shell, in a process group of its own, its output going to stderr.
    pub(crate) fn start(command: &str, output: &Output) -> io::Result<Load> {
        let mut load = Load {
            command: command.to_owned(),
            output: output.clone(),
            running: None,
            started: Instant::now(),
            lasted: Duration::ZERO,
        };
        load.spawn()?;
        Ok(load)
    }

    fn spawn(&mut self) -> io::Result<()> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.command]).stdin(Stdio::null());
        // What is meant for the program is not meant for it.
        shell.env_remove("ANDWEORC_ENABLED");
        self.output.prepare_load(&mut shell)?;
        let mut running = Running::start_group(&mut shell)?;
        self.output.forward(running.child());
        self.running = Some(running);
        self.started = Instant::now();
        Ok(())
    }

    /// Looks after it: starts it again when it has ended well.
    pub(crate) fn look(&mut self) -> io::Result<LoadState> {
        if let Some(running) = &self.running {
            if !running.has_ended() {
                return Ok(LoadState::Runs);
            }
            self.lasted = self.started.elapsed();
            if let Some(status) = self.stop()?
                && !status.success()
            {
                return Ok(LoadState::Failed(status));
            }
        }
        if self.started.elapsed() < LEAST {
            return Ok(LoadState::Runs);
        }
        self.spawn()?;
        Ok(LoadState::Again(self.lasted))
    }

    /// Stops it and all in its group: SIGTERM, and SIGKILL for what is left after a grace time.
    pub(crate) fn stop(&mut self) -> io::Result<Option<ExitStatus>> {
        let Some(running) = self.running.take() else { return Ok(None) };
        running.signal(Signal::SIGTERM);
        if !running.group_ends_within(GRACE) {
            running.signal(Signal::SIGKILL);
        }
        running.reap().map(Some)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Nobody is left to be told.
        self.stop().map(drop).unwrap_or_default();
    }
}
