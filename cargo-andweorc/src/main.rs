//! `cargo andweorc`: runs a program under the causal profiler and reads profiles.
//!
//! | module | what |
//! |---|---|
//! | `cli` | the options |
//! | `report` | a profile in words, JSON, Markdown, CSV, or for coz's viewer |
//! | `profiles` | which profiles are meant |
//! | `view` | the page of a profile, served to a browser here |
//! | `run` | build, run, report |
//! | `select` | which binary or example is meant |
//! | `build` | `cargo build` with what a profile needs; this program is then also the wrapper around rustc |
//! | `child` | the program, while it runs: settings, signals, exit code |

mod build;
mod child;
mod cli;
mod profiles;
mod report;
mod run;
mod select;
mod view;

use clap::Parser;
use cli::{Cli, Command};
use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

/// What the command exits with when it can't do what was asked; clap uses the same for wrong options.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    if build::is_rustc_wrapper() {
        return failed(build::wrap_rustc());
    }
    let result = match Cli::parse_from(arguments()).command {
        Command::Report(options) => report::report(&options),
        Command::View(options) => view::view(&options),
        Command::Run(options) => run::run(&options),
    };
    result.unwrap_or_else(failed)
}

/// The arguments without the `andweorc` that cargo puts first when it starts a command.
fn arguments() -> impl Iterator<Item = OsString> {
    let from_cargo = env::args_os().nth(1).is_some_and(|first| first == "andweorc");
    env::args_os().enumerate().filter(move |(i, _)| !(from_cargo && *i == 1)).map(|(_, arg)| arg)
}

fn failed(error: Box<dyn std::error::Error>) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(FAILED)
}
