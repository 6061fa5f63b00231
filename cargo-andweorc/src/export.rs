//! `cargo andweorc export`: a profile in the form of other tools.

mod allocations;
mod dhat;
mod firefox;
mod folded;
mod otlp;
mod pprof;
mod speedscope;
mod stacks;
mod table;

use self::stacks::Stacks;
use crate::{profiles, report};
use andweorc_profile::Run;
use clap::{Args, ValueEnum};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc export --format folded -o shop.folded
  cargo andweorc export --format folded --of cpu -o shop.cpu.folded
  cargo andweorc export --format speedscope -o shop.speedscope.json
  cargo andweorc export --format pprof --of allocations -o shop.heap.pb.gz
  cargo andweorc export --format pprof -o shop.pb.gz
  cargo andweorc export --format firefox -o shop.json
  cargo andweorc export --format dhat -o shop.dhat.json target/andweorc/shop.jsonl

Folded stacks are what most flame graph tools read: a line for each stack, its frames separated by
semicolons, and its time in ns. Those of wall time are spans, and their last frame is the state that
the time was spent in. Those of CPU time are call chains by task and span, where the profile has
samples. Those of bytes allocated are targets, with the call chains inside of them.

A Firefox file is for the Firefox Profiler's front end, which loads it from the disk: the polls and
spans of each thread, and of each kind of task, in the last seconds before the first experiment, and
the experiments.

Files for speedscope (https://www.speedscope.app), pprof and OTLP have the wall time, the CPU time
where the profile has samples, and the allocations where the program has andweorc's allocator. In
speedscope the state of wall time is the last frame; pprof and OTLP have it as a label:
`pprof -tagleaf=state -http=: shop.pb.gz`.

OTLP profiles are experimental, there as here: the file is a `ProfilesData` message of
opentelemetry-proto 1.10, in protobuf, which is what a collector takes at /v1development/profiles.

A DHAT file is for valgrind's viewer, dh_view.html: load it there. It has what each target allocated
while nothing was delayed, divided among its call chains as samples tell, where the program has
andweorc's allocator.")]
pub(crate) struct ExportOptions {
    /// The form
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// With folded, speedscope, pprof and otlp: the one thing that is exported [default: wall for
    /// folded, else all that there is]
    #[arg(long, value_enum, value_name = "WHAT")]
    of: Option<Exported>,
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
    /// Wall time by stacks of spans, CPU time or bytes by call chains, for flame graph tools
    Folded,
    /// Wall time, CPU time and allocations, for speedscope
    Speedscope,
    /// Wall time, CPU time and allocations, for pprof and what reads its files
    Pprof,
    /// Wall time, CPU time and allocations, for OpenTelemetry; experimental
    Otlp,
    /// Polls and spans over time, for the Firefox Profiler
    Firefox,
    /// Allocations by target and call chain, for valgrind's viewer of heap profiles
    Dhat,
}

/// Values that stacks are weighed by.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Exported {
    /// Wall time of requests, by their spans
    Wall,
    /// CPU time, by call chains
    Cpu,
    /// Bytes allocated, by target and call chain; all but folded stacks have counts too
    Allocations,
}

/// The stacks of these runs: of one thing, or all that there is.
fn stacks(runs: &[Run], of: Option<Exported>) -> Result<Stacks, String> {
    match of {
        None => Stacks::of_all(runs),
        Some(Exported::Wall) => Stacks::of_wall_time(runs),
        Some(Exported::Cpu) => Stacks::of_cpu_time(runs),
        Some(Exported::Allocations) => Stacks::of_allocations(runs),
    }
}

/// Prints or writes what the options ask for.
pub(crate) fn export(options: &ExportOptions) -> Result<ExitCode, Box<dyn Error>> {
    let paths = profiles::or_newest(&options.profiles)?;
    let profile = profiles::read(&paths)?;
    let runs = &profile.runs;
    let output = options.output.as_deref();
    let text = |text: String| report::put(output, &text, &paths);
    let binary = |bytes: Vec<u8>| report::put_binary(output, &bytes, &paths);
    match (options.format, options.of) {
        (ExportFormat::Folded, of) => {
            text(folded::folded(&stacks(runs, Some(of.unwrap_or(Exported::Wall)))?))?;
        }
        (ExportFormat::Speedscope, of) => text(speedscope::speedscope(&stacks(runs, of)?))?,
        (ExportFormat::Pprof, of) => binary(pprof::pprof(&stacks(runs, of)?)?)?,
        (ExportFormat::Otlp, of) => binary(otlp::otlp(&stacks(runs, of)?))?,
        (ExportFormat::Firefox | ExportFormat::Dhat, Some(_)) => {
            return Err("`--of` goes with `--format` folded, speedscope, pprof and otlp".into());
        }
        (ExportFormat::Firefox, None) => text(firefox::firefox(runs)?)?,
        (ExportFormat::Dhat, None) => text(dhat::dhat(&Stacks::of_allocations(runs)?))?,
    }
    Ok(ExitCode::SUCCESS)
}
