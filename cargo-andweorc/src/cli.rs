//! The options.

use crate::cargo::CargoOptions;
use crate::ci::CiOptions;
use crate::console::ConsoleOptions;
use crate::coordinate::TogetherOptions;
use crate::diff::DiffOptions;
use crate::drive::DriveOptions;
use crate::export::ExportOptions;
use crate::generate::{CompletionsOptions, ManOptions};
use crate::list::ListOptions;
use crate::merge::MergeOptions;
use crate::web::PageOptions;
use andweorc_profile::report::Looks;
use andweorc_profile::settings::{Scope, ScopeError};
use andweorc_profile::time::Speedup;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// A causal profiler for tokio services: what would make your service faster, by experiment.
#[derive(Debug, Parser)]
#[command(name = "cargo-andweorc", bin_name = "cargo andweorc", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// Colours, quiet, verbose.
    #[command(flatten)]
    pub(crate) console: ConsoleOptions,
    /// Command to carry out.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads the arguments. Ends the process where they ask for nothing that can be done, or for
    /// help.
    pub(crate) fn read(arguments: impl Iterator<Item = OsString>) -> Cli {
        let matches = complete().get_matches_from(arguments);
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// All commands with what the attributes can't say of them: `ci` builds and runs nothing without
/// `--compare`.
fn complete() -> clap::Command {
    let of_programs = ProgramOptions::augment_args(clap::Command::new("program"));
    Cli::command().mut_subcommand("ci", |ci| {
        of_programs.get_arguments().fold(ci, |ci, option| {
            ci.mut_arg(option.get_id(), |it| it.requires("compare").conflicts_with("SidesOptions"))
        })
    })
}

const EXAMPLES: &str = "\
Examples:
  cargo andweorc run --bin shop
      Build `shop` in release mode, profile it for 30 s, and print what would make it faster
  cargo andweorc run --duration 1m --points checkout -- --port 8080
      Rank by the point `checkout`, and start the program with `--port 8080`
  cargo andweorc report --format json target/andweorc/shop.jsonl
      Print the report of a profile for machines
  cargo andweorc run --compare origin/main --bin shop
      Build that revision too, run both in turns, and print what changed
  cargo andweorc doctor
      Check machine and project

The program needs `#[andweorc::main]` at its main function, or `andweorc::subscriber().init()`
in it. Put load on it while it runs.";

/// Command that the user asks for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build a program, run it under the profiler, and print what would make it faster
    Run(Box<RunOptions>),
    /// Print the report of a profile
    Report(ReportOptions),
    /// Serve the report of a profile to a browser on this machine
    View(ViewOptions),
    /// Write a profile in the form of other tools
    Export(ExportOptions),
    /// Say what changed between two versions
    Diff(DiffOptions),
    /// Compare two versions and fail when the new one is slower
    Ci(Box<CiOptions>),
    /// Make one profile of several
    Merge(MergeOptions),
    /// List profiles and baselines
    List(ListOptions),
    /// Check machine and project, and say what to do
    #[command(
        after_help = "Examples:\n  cargo andweorc doctor\n\nThe exit code is 1 when something must be mended before profiling, else 0."
    )]
    Doctor,
    /// Print a completion script for a shell
    Completions(CompletionsOptions),
    /// Print the manual page
    Man(ManOptions),
}

/// The options of `report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc report
  cargo andweorc report --format html -o report.html target/andweorc/shop.jsonl
  cargo andweorc report --format json first.jsonl second.jsonl > report.json
  cargo andweorc report --format json --brief
  cargo andweorc report gateway.jsonl gateway.inventory.jsonl gateway.payments.jsonl

Several profiles are one report: their runs are taken together. Those of services that were profiled
together make one report of all services.")]
pub(crate) struct ReportOptions {
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// With `--format json`: only the verdict, its caveats and the next command, for scripts and
    /// coding agents
    #[arg(long)]
    pub(crate) brief: bool,
    /// Write the report to this file; `-` is the standard output
    #[arg(short, long, visible_alias = "out", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How long it is.
    #[command(flatten)]
    pub(crate) top: TopOptions,
    /// The service that it is about.
    #[command(flatten)]
    pub(crate) entry: EntryOptions,
    /// The page.
    #[command(flatten)]
    pub(crate) page: PageOptions,
    /// Profiles, folders of profiles, or names of baselines [default: the newest profile in the
    /// target folder]
    #[arg(value_name = "PROFILE")]
    pub(crate) profiles: Vec<PathBuf>,
}

/// How long a report is.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TopOptions {
    /// Lines that each section of the text has at most, each verdict in Markdown, and the targets
    /// of a brief report
    #[arg(long, value_name = "N", default_value_t = Looks::default().top, value_parser = at_least_one)]
    pub(crate) top: usize,
}

/// The service that a report of several is about.
#[derive(Clone, Debug, Args)]
pub(crate) struct EntryOptions {
    /// Of services that were profiled together: rank by the points of this one [default: the one
    /// that `cargo andweorc run` built and started]
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
}

/// The options of `view`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc view
  cargo andweorc view --port 8000 target/andweorc/shop.jsonl

Only this machine can reach it. The page is made anew each time it is loaded, so that a run can be
watched. Ctrl-C ends it.")]
pub(crate) struct ViewOptions {
    /// The port [default: a free one]
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// The service that the page is about.
    #[command(flatten)]
    pub(crate) entry: EntryOptions,
    /// The page.
    #[command(flatten)]
    pub(crate) page: PageOptions,
    /// Profiles, folders of profiles, or names of baselines [default: the newest profile in the
    /// target folder]
    #[arg(value_name = "PROFILE")]
    pub(crate) profiles: Vec<PathBuf>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Words, for people
    Text,
    /// JSON, for machines (docs/book/src/reference/report-json.md)
    Json,
    /// A Markdown table, for a pull request
    Markdown,
    /// Comma-separated values, a row for each effect
    Csv,
    /// A profile for coz's own viewer
    Coz,
    /// One page with causal curves, for a browser
    Html,
}

/// The options of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc run
  cargo andweorc run -p shop --bin server --duration 20s -- --port 8080
  cargo andweorc run --load 'wrk -c 16 -d 60s http://127.0.0.1:8080/' --ready-port 8080
  cargo andweorc run --example pipeline --targets parse,store --speedups 0.25,0.5,0.75
  cargo andweorc run --scope 'shop,!src/generated' --targets function:shop::stock::update
  cargo andweorc run --save-baseline main
  cargo andweorc run --with 'inventory=./inventory --port 7001' --load 'sh load.sh'
  cargo andweorc run --compare origin/main --runs 4 --duration 15s --load 'sh load.sh'

The program is stopped when the profile has its end: when the ranking is settled, or the time is up.
Ctrl-C ends it sooner, and the report is printed. Options that are not given come from the environment
(ANDWEORC_OUT, ANDWEORC_DURATION, ANDWEORC_TARGETS, ANDWEORC_POINTS, ANDWEORC_SPEEDUPS,
ANDWEORC_EVENT, ANDWEORC_EVENTS, ANDWEORC_MAX_SLOWDOWN, ANDWEORC_CLOCK, ANDWEORC_SCOPE,
ANDWEORC_LONG_POLL, ANDWEORC_ORDER), or are the defaults. The exit code is that of a program that ends by itself,
by Ctrl-C too (130 when the signal ended it), 0 when it was stopped at the end of its profile, and 2 when it could not be built, was never ready,
wrote no profile, nothing could be measured, or the load failed.")]
pub(crate) struct RunOptions {
    /// The program that is run, and how.
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
    /// Where the profile goes; one that is there is kept beside it, by its time [default:
    /// andweorc/PROGRAM.jsonl in the target folder]
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Open the page of the report in a browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Keep the profile as the baseline of this name, for `diff` and `ci`
    #[arg(long, value_name = "NAME", value_parser = baseline)]
    pub(crate) save_baseline: Option<String>,
    /// Build this git revision too, run both in turns, and print what changed from it to the
    /// checkout as it is; `REV..REV` compares two revisions
    #[arg(long, value_name = "REV", conflicts_with_all = ["out", "open", "save_baseline", "with", "listen"])]
    pub(crate) compare: Option<String>,
    /// With `--compare`: how often each of the two is run
    #[arg(long, value_name = "N", default_value_t = 3, requires = "compare", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// How long the report is.
    #[command(flatten)]
    pub(crate) top: TopOptions,
    /// Other programs that take part.
    #[command(flatten)]
    pub(crate) together: TogetherOptions,
}

/// A program to build, start and profile, and how that is done.
#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// The binary to run
    #[arg(long, value_name = "NAME", group = "program")]
    pub(crate) bin: Option<String>,
    /// The example to run
    #[arg(long, value_name = "NAME", group = "program")]
    pub(crate) example: Option<String>,
    /// The bench to run, as `cargo bench` does
    #[arg(long, value_name = "NAME", group = "program")]
    pub(crate) bench: Option<String>,
    /// The test to run, as `cargo test` does
    #[arg(long, value_name = "NAME", group = "program")]
    pub(crate) test: Option<String>,
    /// Time budget, such as `20s` or `1m30s`; a program that ends sooner is run again until it is
    /// used up [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<String>,
    /// Names of the targets to test, separated by commas [default: the busiest, and the longest
    /// waits]
    #[arg(long, value_name = "NAMES")]
    pub(crate) targets: Option<String>,
    /// Event that lines and functions are sampled by: task-clock, cycles, instructions,
    /// cache-misses or branch-misses [default: task-clock]
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Events to count by target before the first experiment, separated by commas: cycles,
    /// instructions, cache-misses, branch-misses, page-faults, minor-faults, cpu-clock [default:
    /// none]
    #[arg(long, value_name = "NAMES")]
    pub(crate) events: Option<String>,
    /// Names of the points, the one to rank by first [default: andweorc chooses]
    #[arg(long, visible_alias = "point", value_name = "NAMES")]
    pub(crate) points: Option<String>,
    /// Speedups to test, fractions above 0 and up to 1 [default: 0.25,0.5]
    #[arg(long, value_name = "FRACTIONS", value_parser = speedups)]
    pub(crate) speedups: Option<String>,
    /// By how much an experiment may slow the program, a factor above 1 [default: 2]
    #[arg(long, value_name = "FACTOR", value_parser = slowdown)]
    pub(crate) max_slowdown: Option<String>,
    /// Which lines and functions can be targets: crates, globs of paths and `re:` regexes,
    /// separated by commas; a `!` before one leaves it out [default: the workspace's own crates]
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    pub(crate) scope: Option<String>,
    /// The project, and how it is built.
    #[command(flatten)]
    pub(crate) cargo: CargoOptions,
    /// Load and readiness.
    #[command(flatten)]
    pub(crate) drive: DriveOptions,
    /// Arguments of the program
    #[arg(last = true, help_heading = "Arguments")]
    pub(crate) args: Vec<OsString>,
}

fn at_least_one(value: &str) -> Result<usize, &'static str> {
    value.parse().ok().filter(|n| *n > 0).ok_or("not a number above 0, such as `20`")
}

// The program checks its settings too, but only after the build.

fn duration(value: &str) -> Result<String, &'static str> {
    match humantime::parse_duration(value.trim()) {
        Ok(time) if !time.is_zero() => Ok(value.to_owned()),
        _ => Err("not a time above zero with its unit, such as `20s` or `1m30s`"),
    }
}

fn slowdown(value: &str) -> Result<String, &'static str> {
    match value.trim().parse::<f64>() {
        Ok(factor) if factor > 1.0 && factor.is_finite() => Ok(value.to_owned()),
        _ => Err(
            "not a factor above 1, such as `1.5` for an experiment that may make the program half as slow again",
        ),
    }
}

fn scope(value: &str) -> Result<String, ScopeError> {
    value.parse::<Scope>().map(|_| value.to_owned())
}

fn baseline(value: &str) -> Result<String, &'static str> {
    if crate::project::is_name(value) {
        Ok(value.to_owned())
    } else {
        Err(
            "not the name of a baseline, which has letters, digits, `-`, `_` and `.`, such as `main`",
        )
    }
}

fn speedups(value: &str) -> Result<String, &'static str> {
    let usable = |one: &str| {
        let speedup = one.trim().parse().ok().and_then(Speedup::new);
        speedup.is_some_and(|speedup| speedup > Speedup::ZERO)
    };
    if value.split(',').all(usable) {
        Ok(value.to_owned())
    } else {
        Err("not fractions above 0 and up to 1, such as `0.25,0.5` (write 0.25 for 25 %)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_consistent() {
        complete().debug_assert();
    }

    #[test]
    fn settings_are_checked_before_the_build() {
        assert!(duration("1m30s").is_ok() && speedups("0.25, 1").is_ok());
        for bad in ["20", "0s", "soon", ""] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["25", "0", "0.25,x", "NaN", ""] {
            assert!(speedups(bad).is_err(), "{bad}");
        }
        assert!(slowdown("1.5").is_ok());
        for bad in ["1", "0.5", "50%", "inf", ""] {
            assert!(slowdown(bad).is_err(), "{bad}");
        }
        assert_eq!(scope("shop,!src/gen").as_deref(), Ok("shop,!src/gen"));
        let error = scope("shop,re:(").unwrap_err().to_string();
        assert!(error.contains("entry 2 of the scope is `re:(`"), "{error}");
    }

    #[test]
    fn arguments_of_the_program_are_not_ours() {
        let arguments = ["cargo-andweorc", "run", "--bin", "a", "--", "--bin", "b", "--", "-p"];
        let cli = Cli::read(arguments.into_iter().map(OsString::from));
        let Command::Run(options) = cli.command else { panic!("{cli:?}") };
        assert_eq!(options.program.bin.as_deref(), Some("a"));
        assert_eq!(options.program.args, ["--bin", "b", "--", "-p"]);
    }
}
