//! Programs that `--with` names, from their start until dropped.

use crate::child::Running;
use nix::sys::signal::Signal;
use std::io;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

/// How long a program may go on by itself at the end, to write its profile, and again after
/// SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// A program that takes part: `inventory=./inventory --port 7001`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct With {
    /// Name of its service.
    pub(crate) name: String,
    /// Its shell command.
    pub(crate) command: String,
}

impl FromStr for With {
    type Err = &'static str;

    fn from_str(value: &str) -> Result<With, &'static str> {
        let parts = value
            .split_once('=')
            .filter(|(name, command)| crate::project::is_name(name) && !command.trim().is_empty());
        let (name, command) =
            parts.ok_or("not a name and a command, such as `inventory=./inventory --port 7001`")?;
        Ok(With { name: name.to_owned(), command: command.to_owned() })
    }
}

/// Programs that run beside the one that is profiled.
#[derive(Debug, Default)]
pub(crate) struct Services(Vec<Running>);

impl Services {
    /// Starts one in a shell, in a process group of its own, its output going to stderr.
    pub(crate) fn start(
        &mut self,
        with: &With,
        env: impl Iterator<Item = (&'static str, String)>,
    ) -> io::Result<()> {
        let mut shell = Command::new("sh");
        // The shell is replaced where the command is a single program.
        shell.args(["-c", &with.command]).stdin(Stdio::null()).stdout(io::stderr()).envs(env);
        self.0.push(Running::start_group(&mut shell)?);
        Ok(())
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        for service in &self.0 {
            // Its profile has its end; it may print something yet.
            if !service.group_ends_within(Duration::ZERO) {
                service.signal(Signal::SIGTERM);
            }
        }
        for service in self.0.drain(..) {
            if !service.group_ends_within(GRACE) {
                service.signal(Signal::SIGKILL);
            }
            // Nobody is left to be told.
            service.reap().map(drop).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_a_name_and_a_command() {
        let with: With = "inventory=./inv --a=b".parse().unwrap();
        assert_eq!((&*with.name, &*with.command), ("inventory", "./inv --a=b"));
        for bad in ["inventory", "=./inv", "inventory= ", "a/b=./inv"] {
            assert!(bad.parse::<With>().is_err(), "{bad}");
        }
    }
}
