//! `cargo andweorc export`: a profile in the form of other tools.

use crate::flame::{Flame, State, flame};
use crate::{profiles, report};
use andweorc_profile::{TargetRecord, plain};
use clap::{Args, ValueEnum};
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc export --format folded
  cargo andweorc export --format folded -o shop.folded target/andweorc/shop.jsonl

Folded stacks are what most flame graph tools read: a line for each stack, its frames separated by
semicolons, and its time in ns. The last frame is the state that the time was spent in.")]
pub(crate) struct ExportOptions {
    /// The form
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// Write to this file; `-` is the standard output
    #[arg(short, long, visible_alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Profiles, folders of profiles, or names of baselines [default: the newest profile in the
    /// target folder]
    #[arg(value_name = "PROFILE")]
    profiles: Vec<PathBuf>,
}

/// The form of what is exported.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    /// Wall time by stacks of spans, for flame graph tools
    Folded,
}

/// Prints or writes what the options ask for.
pub(crate) fn export(options: &ExportOptions) -> Result<ExitCode, Box<dyn Error>> {
    let paths = profiles::or_newest(&options.profiles)?;
    let profile = profiles::read(&paths)?;
    let text = match options.format {
        ExportFormat::Folded => {
            let flame = flame(&profile.runs);
            if flame.frames.is_empty() {
                return Err(
                    "no wall time was recorded in this profile: an older version wrote it, \
                            or the program had no load while it was observed"
                        .into(),
                );
            }
            folded(&flame)
        }
    };
    report::put(options.output.as_deref(), &text, &paths)?;
    Ok(ExitCode::SUCCESS)
}

/// A line for each stack and state that had any time.
fn folded(flame: &Flame<'_>) -> String {
    let (mut text, mut stacks) = (String::new(), Vec::<String>::new());
    for frame in &flame.frames {
        let around = frame.parent.map(|parent| format!("{};", stacks[parent]));
        let stack = around.unwrap_or_default() + &called(frame.target);
        let mut line = |state: &str, ns: u64| {
            if ns > 0 {
                writeln!(text, "{stack};[{state}] {ns}").expect("a string takes all");
            }
        };
        for (state, ns) in State::ALL.into_iter().zip(frame.states) {
            if state == State::Task {
                for (by, ns) in &frame.wakers {
                    line(&waited_for(*by), *ns);
                }
            } else {
                line(state.words(), ns);
            }
        }
        stacks.push(stack);
    }
    text
}

/// A target as a frame, in which nothing separates frames.
fn called(target: Option<&TargetRecord>) -> String {
    target.map_or("other requests".to_owned(), |it| plain::name(&it.name).replace(';', ":"))
}

/// A wait for another task as a frame.
fn waited_for(by: Option<&TargetRecord>) -> String {
    let state = State::Task.words();
    by.map_or(state.to_owned(), |by| format!("{state}: {}", called(Some(by))))
}
