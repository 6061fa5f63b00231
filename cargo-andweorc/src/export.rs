//! `cargo andweorc export`: a profile in the form of other tools.

mod dhat;
mod folded;
mod otlp;
mod pprof;
mod speedscope;
mod stacks;
mod table;

use self::stacks::Stacks;
use crate::{profiles, report};
use clap::{Args, ValueEnum};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc export --format folded -o shop.folded
  cargo andweorc export --format speedscope -o shop.speedscope.json
  cargo andweorc export --format pprof -o shop.pb.gz
  cargo andweorc export --format dhat -o shop.dhat.json target/andweorc/shop.jsonl

Folded stacks are what most flame graph tools read: a line for each stack, its frames separated by
semicolons, and its time in ns. The last frame is the state that the time was spent in.

Files for speedscope (https://www.speedscope.app), pprof and OTLP have the wall time, and the
allocations where the program has andweorc's allocator. In speedscope the state is the last frame;
pprof and OTLP have it as a label: `pprof -tagleaf=state -http=: shop.pb.gz`.

OTLP profiles are experimental, there as here: the file is a `ProfilesData` message of
opentelemetry-proto 1.10, in protobuf, which is what a collector takes at /v1development/profiles.

A DHAT file is for valgrind's viewer, dh_view.html: load it there. It has what each target allocated
while nothing was delayed, where the program has andweorc's allocator.")]
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
    /// Wall time and allocations, for speedscope
    Speedscope,
    /// Wall time and allocations, for pprof and what reads its files
    Pprof,
    /// Wall time and allocations, for OpenTelemetry; experimental
    Otlp,
    /// Allocations by target, for valgrind's viewer of heap profiles
    Dhat,
}

/// Prints or writes what the options ask for.
pub(crate) fn export(options: &ExportOptions) -> Result<ExitCode, Box<dyn Error>> {
    let paths = profiles::or_newest(&options.profiles)?;
    let profile = profiles::read(&paths)?;
    let runs = &profile.runs;
    let output = options.output.as_deref();
    let text = |text: String| report::put(output, &text, &paths);
    let binary = |bytes: Vec<u8>| report::put_binary(output, &bytes, &paths);
    match options.format {
        ExportFormat::Folded => text(folded::folded(&Stacks::of_wall_time(runs)?))?,
        ExportFormat::Speedscope => text(speedscope::speedscope(&Stacks::of_all(runs)?))?,
        ExportFormat::Pprof => binary(pprof::pprof(&Stacks::of_all(runs)?)?)?,
        ExportFormat::Otlp => binary(otlp::otlp(&Stacks::of_all(runs)?))?,
        ExportFormat::Dhat => text(dhat::dhat(&Stacks::of_allocations(runs)?))?,
    }
    Ok(ExitCode::SUCCESS)
}
