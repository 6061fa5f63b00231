//! Starting the command, and what it writes.

use std::env;
use std::process::{Command, Output};

/// The command, with no settings from the environment of the tests.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-andweorc"));
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("ANDWEORC_")) {
            command.env_remove(name);
        }
    }
    // Where profiles and baselines are then looked for.
    command.env_remove("CARGO_TARGET_DIR");
    command
}

/// Returns what a process wrote to stdout.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns what a process wrote to stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
