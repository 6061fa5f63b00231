//! `cargo andweorc diff`: what changed between two versions. See
//! `docs/book/src/reference/comparisons.md`.

mod html;
mod json;
mod markdown;
mod text;
mod wall;
mod words;

pub(crate) use html::html;
pub(crate) use json::{Verdict, json};
pub(crate) use markdown::markdown;
pub(crate) use text::text;

use crate::console::Console;
use crate::sides::{self, Side, SidesOptions};
use crate::web::{PageOptions, Sources};
use crate::{project, report};
use andweorc_profile::compare::{Comparison, Limits, compare, narrowest};
use andweorc_profile::estimate::Metric;
use andweorc_profile::plain;
use clap::{Args, ValueEnum};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc diff
  cargo andweorc diff before.jsonl after.jsonl
  cargo andweorc diff --baseline main target/andweorc/shop.jsonl
  cargo andweorc diff --format markdown runs/before runs/after
  cargo andweorc diff --format html -o diff.html runs/before runs/after

Runs of one version differ: give several runs a side (a folder, or merged with `cargo andweorc merge`),
made in turns on one host, as `cargo andweorc run --compare REV` does.")]
pub(crate) struct DiffOptions {
    #[command(flatten)]
    pub(crate) sides: SidesOptions,
    /// Words, Markdown, JSON, or a page for a browser
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub(crate) format: Form,
    /// Write the comparison to this file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The page.
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

/// The form of a comparison.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    Text,
    Markdown,
    Json,
    Html,
}

/// Prints or writes what changed.
pub(crate) fn diff(options: &DiffOptions, console: Console) -> Result<ExitCode, Box<dyn Error>> {
    project::are_writable(&options.output)?;
    let sides = options.sides.read()?;
    let comparison = comparison(&sides, &Limits::default())?;
    say_few_runs(sides.each_ref().map(|side| side.runs.len()), console);
    let files = sides::files_of(&sides);
    let text = match options.format {
        Form::Text => text(&sides, &comparison),
        Form::Markdown => markdown(&sides, &comparison),
        Form::Json => json(&sides, &comparison, None),
        Form::Html => html(&sides, &comparison, None, &Sources::near(&files, &options.page.editor)),
    };
    report::put(options.output.as_deref(), &text, &files)?;
    Ok(ExitCode::SUCCESS)
}

/// Says what a comparison with a single run on a side can't tell.
pub(crate) fn say_few_runs(runs: [usize; 2], console: Console) {
    if runs.contains(&1) {
        console.hint(format_args!(
            "with one run on a side no change is told that is smaller than about {:.0} % of the throughput or {:.0} % of a p99; three runs a \
             side, made in turns, tell more: cargo andweorc run --compare REV --runs 3",
            narrowest(Metric::Throughput, runs),
            narrowest(Metric::P99, runs)
        ));
    }
}

/// Compares two sides.
///
/// # Errors
///
/// When there is nothing to compare.
pub(crate) fn comparison(sides: &[Side; 2], limits: &Limits) -> Result<Comparison, String> {
    let [a, b] = sides;
    let points = |side: &Side| {
        let mut names: Vec<&str> =
            side.runs.iter().flat_map(|run| &run.points).map(|point| point.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let found = compare(&a.runs, &b.runs, limits).ok_or_else(|| {
        format!(
            "{} and {} have no point in common, so there is nothing to compare; points of A: {}; of B: {}",
            a.name,
            b.name,
            plain::sentence(&points(a)),
            plain::sentence(&points(b))
        )
    })?;
    if found.outcomes.is_empty() {
        return Err(format!(
            "{} or {} has no baseline in which the common point was hit, so there is nothing to compare; \
             put load on the program while it is profiled",
            a.name, b.name
        ));
    }
    Ok(found)
}
