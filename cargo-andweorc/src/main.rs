//! `cargo andweorc`: runs a program under the causal profiler and reads profiles.
//!
//! | module | what |
//! |---|---|
//! | `cli` | the options |
//! | `report` | a profile in words, JSON, Markdown, CSV, or for coz's viewer |
//! | `profiles` | which profiles are meant |
//! | `view` | the page of a profile, served to a browser here |
//! | `export` | a profile in the form of other tools; `flame` is its wall time by stacks |
//! | `diff`, `ci` | two versions compared, in words, Markdown or JSON; `sides` reads them |
//! | `run` | build, run, report |
//! | `revisions` | two git revisions built and run in turns; `worktree` checks them out, `outside` finds their path dependencies |
//! | `merge`, `list` | profiles joined, and which there are |
//! | `doctor` | is machine and project fit, and what to do |
//! | `generate` | completions and manual pages |
//! | `repeat` | a short-lived program run again until the time is used up |
//! | `drive` | one run: the program started, awaited, put under load, watched and stopped |
//! | `live` | what is shown meanwhile |
//! | `coordinate` | several programs profiled as one |
//! | `select` | which binary, example, bench or test is meant |
//! | `cargo` | cargo's own options |
//! | `build` | `cargo build` with what a profile needs; this program is then also the wrapper around rustc |
//! | `project` | where a project keeps profiles and baselines |
//! | `history` | earlier profiles, kept by their time |
//! | `console` | printing, colours, quiet and verbose |
//! | `child` | processes started here, signals that come meanwhile, exit codes |

mod build;
mod cargo;
mod child;
mod ci;
mod cli;
mod console;
mod coordinate;
mod cpu;
mod diff;
mod doctor;
mod drive;
mod export;
mod flame;
mod generate;
mod history;
mod list;
mod live;
mod merge;
mod outside;
mod profiles;
mod project;
mod repeat;
mod report;
mod revisions;
mod run;
mod select;
mod sides;
mod view;
mod web;
mod worktree;

use cli::{Cli, Command};
use console::Console;
use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

/// Exit code of a command that can't do what was asked; clap uses the same for wrong options.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    if build::is_rustc_wrapper() {
        return console::failed(build::wrap_rustc());
    }
    let cli = Cli::read(arguments());
    let console = Console::new(&cli.console);
    let result = match cli.command {
        Command::Report(options) => report::report(&options),
        Command::Export(options) => export::export(&options),
        Command::View(options) => view::view(&options),
        Command::Run(options) => run::run(&options, console),
        Command::Diff(options) => diff::diff(&options, console),
        Command::Ci(options) => ci::ci(&options, console),
        Command::Merge(options) => merge::merge(&options, console),
        Command::List(options) => list::list(&options),
        Command::Doctor => doctor::doctor(),
        Command::Completions(options) => generate::completions(&options),
        Command::Man(options) => generate::man(&options),
    };
    result.unwrap_or_else(console::failed)
}

/// The arguments without the `andweorc` that cargo puts first when it starts a command.
fn arguments() -> impl Iterator<Item = OsString> {
    let from_cargo = env::args_os().nth(1).is_some_and(|first| first == "andweorc");
    env::args_os().enumerate().filter(move |(i, _)| !(from_cargo && *i == 1)).map(|(_, arg)| arg)
}
