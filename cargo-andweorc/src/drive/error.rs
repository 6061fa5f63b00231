//! Why a program could not be profiled.

use crate::child::{exit_code, how};
use crate::drive::ready::Ready;
use crate::run::quoted;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;
use std::{error, fmt, io};

/// A run that came to nothing, or to less than it should.
#[derive(Debug)]
pub(crate) enum DriveError {
    /// The program can't be started.
    Start {
        /// Its executable.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another program has the port that should show that this one is ready.
    PortTaken(u16),
    /// The program ended before it was ready.
    EndedEarly {
        /// Its name.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// When.
        after: Duration,
    },
    /// The program was not ready in time.
    NeverReady {
        /// Its name.
        name: String,
        /// Sign that was waited for.
        ready: Ready,
        /// How long.
        timeout: Duration,
    },
    /// The program did not begin a profile.
    NoProfile {
        /// Its name.
        name: String,
        /// Where it should have gone.
        out: PathBuf,
        /// Course that the program took instead.
        instead: Instead,
    },
    /// The load command can't be started.
    LoadStart(io::Error),
    /// The load command failed.
    Load {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The profile up to then, if there is one.
        out: Option<PathBuf>,
    },
}

/// Course that a program took instead of beginning a profile.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instead {
    /// The program ended like this, after so long.
    Ended(ExitStatus, Duration),
    /// The program went on for so long.
    WentOn(Duration),
}

impl DriveError {
    /// The exit code of a program that failed by itself.
    pub(crate) fn exit_code(&self) -> Option<ExitCode> {
        match self {
            DriveError::EndedEarly { status, .. }
            | DriveError::NoProfile { instead: Instead::Ended(status, _), .. }
                if !status.success() =>
            {
                Some(exit_code(*status))
            }
            _ => None,
        }
    }
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriveError::Start { program, source } => {
                write!(f, "{} can't be started: {source}", program.display())
            }
            DriveError::PortTaken(port) => write!(
                f,
                "port {port} accepts before the program is started: another program has it; end that one, or choose another port"
            ),
            DriveError::EndedEarly { name, status, after } => write!(
                f,
                "`{name}` ended ({}) after {:.1} s, before it was ready for load; what it printed above may say why",
                how(*status),
                after.as_secs_f64()
            ),
            DriveError::NeverReady { name, ready, timeout } => write!(
                f,
                "`{name}` was not ready within {}: {ready} (`--ready-timeout` gives it longer)",
                humantime::format_duration(*timeout)
            ),
            DriveError::NoProfile { name, out, instead } => {
                write!(f, "`{name}` wrote no profile to {}", out.display())?;
                match instead {
                    Instead::Ended(status, after) => {
                        write!(
                            f,
                            ", and ended ({}) after {:.1} s",
                            how(*status),
                            after.as_secs_f64()
                        )?;
                    }
                    Instead::WentOn(time) => {
                        write!(f, " within {}", humantime::format_duration(*time))?;
                    }
                }
                f.write_str(
                    ". Either its main function lacks `#[andweorc::main]` and nothing else in it starts to profile (`andweorc::subscriber()`, \
                     `andweorc::layer()`, `.enable_profiling()` on a runtime's builder), or it ended before it began to profile, or a message of it above says why. \
                     A program of plain threads that uses the classic API (`andweorc::init()`, `run_experiments`) prints its ranking itself and writes no \
                     profile: start it with ANDWEORC_ENABLED=1, without this command",
                )
            }
            DriveError::LoadStart(source) => {
                write!(f, "the load command can't be started, it needs a shell `sh`: {source}")
            }
            DriveError::Load { command, status, out } => {
                let missing = if status.code() == Some(127) { "; is it installed?" } else { "" };
                write!(
                    f,
                    "the load command `{command}` failed ({}{missing}); what it printed above may say why",
                    how(*status)
                )?;
                if let Some(out) = out {
                    write!(
                        f,
                        ". What was measured until then: cargo andweorc report {}",
                        quoted(out)
                    )?;
                }
                Ok(())
            }
        }
    }
}

impl error::Error for DriveError {}
