//! The command line.

use crate::measure::Turns;
use crate::outside;
use crate::program::{self, Program, Runtime};
use crate::programs;
use crate::work::Pace;
use andweorc_core::program_clock;
use lexopt::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

const HELP: &str = "\
How far andweorc's predictions are from the truth, on real programs.

cargo bench --bench accuracy [-- OPTIONS]

  --lines            lines and functions as targets, sampled: nothing marks the parts. Five programs more
  --sampling-cost    only say what a sample costs
  --quick            every third program (or those that --only names), each target at its least and its greatest speedup:
                     less than five minutes
  --only NAME        only the programs whose name contains NAME (may be repeated)
  --budget SECONDS   at most, for each program (default 180; with --quick 18); each case is measured three times in any case, six times
                     if there is time, and then those that are known the least, until throughputs are known within
                     3 points (1.5 where there is nothing to gain) and p99 within 10 %
  --unwrapped        let tokio itself spawn all tasks, as libraries do. Build with RUSTFLAGS=\"--cfg tokio_unstable\"
  --quiet-machine    with real-time priority (which takes root, or `ulimit -r 3`), and on processors that are kept awake: what
                     the machine does when a program is busy for less is kept out of the errors then (docs/lab-notebook/causes.md).
                     Programs that are hardly ever idle have such priority only after `sysctl kernel.sched_rt_runtime_us=-1`
  --workers N        give each runtime N workers in the place of two, and run the program N / 2 times beside itself,
                     so that there is work for them
  --real-clock       let the program's own clock run in real time: what is wrong then of programs that live by the clock
  --steady           let each answer of the world outside take as long as the one before. Then loops fall in step with each other
                     (docs/book/src/results/accuracy.md)
  --json FILE        write all rows to FILE
  --list             list the programs

Nothing else should run meanwhile: two cores are all that the programs ask for, and they ask for them whole.";

/// The argument that makes this program run one of its programs and print the report as JSON.
pub(crate) const ONE: &str = "--one";

/// Job that the arguments give to this process.
#[derive(Debug)]
pub(crate) enum Mode {
    /// Be the world outside.
    Outside,
    /// Run one program in this process.
    One(&'static Program, Turns),
    /// Measure what a sample costs.
    SamplingCost,
    /// Name the programs.
    List,
    /// Run them one after the other, each in a process of its own.
    Bench(Options),
}

/// Options that the user gave.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) programs: Vec<&'static Program>,
    pub(crate) budget: Duration,
    pub(crate) quick: bool,
    /// The targets are sampled.
    pub(crate) lines: bool,
    /// Nothing is wrapped.
    pub(crate) unwrapped: bool,
    /// With real-time priority, on processors that are kept awake.
    pub(crate) quiet_machine: bool,
    /// Of each runtime.
    pub(crate) workers: usize,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Reads the command line. With `--help` it prints the help and ends the program.
    pub(crate) fn read() -> Result<Mode, lexopt::Error> {
        let mut args = lexopt::Parser::from_env();
        let (mut quick, mut lines, mut list, mut quiet_machine) = (false, false, false, false);
        let mut only = Vec::new();
        let (mut budget, mut json, mut pace, mut one) = (None, None, None, None);
        let mut workers = 2;
        while let Some(arg) = args.next()? {
            match arg {
                Long("quick") => quick = true,
                Long("lines") => {
                    lines = true;
                    program::sample();
                }
                Long("sampling-cost") => return Ok(Mode::SamplingCost),
                Long("unwrapped") if !cfg!(tokio_unstable) => {
                    return Err(
                        "`--unwrapped` needs a build with RUSTFLAGS=\"--cfg tokio_unstable\": \
                                tasks that nobody wrapped are not seen otherwise"
                            .into(),
                    );
                }
                Long("unwrapped") => program::unwrap(),
                Long("quiet-machine") => quiet_machine = true,
                Long("workers") => workers = args.value()?.parse_with(even)?,
                Long("real-clock") => program_clock::keep_real(),
                Long("steady") => outside::be_steady(),
                Long("list") => list = true,
                Long("only") => only.push(args.value()?.string()?),
                Long("budget") => budget = Some(args.value()?.parse_with(seconds)?),
                Long("json") => json = Some(args.value()?.into()),
                // `cargo bench` says so.
                Long("bench") => {}
                Long("outside-world") => return Ok(Mode::Outside),
                Long("one") => one = Some(args.value()?.parse_with(program)?),
                Long("pace") => pace = Some(Pace::new(args.value()?.parse()?)),
                Short('h') | Long("help") => {
                    println!("{HELP}");
                    std::process::exit(0);
                }
                _ => return Err(arg.unexpected()),
            }
        }
        if list {
            return Ok(Mode::List);
        }
        let budget = budget.unwrap_or(Duration::from_secs(if quick { 18 } else { 180 }));
        if let Some(program) = one {
            let pace = pace.unwrap_or_else(Pace::measure);
            return Ok(Mode::One(program, Turns { pace, budget, quick, quiet_machine, workers }));
        }
        let programs: Vec<_> = programs::timed()
            .chain(programs::unmarked().filter(|_| lines))
            .enumerate()
            .filter(|(number, _)| !quick || !only.is_empty() || number % 3 == 0)
            .map(|(_, program)| program)
            // Threads are spawned by nobody but std.
            .filter(|it| !program::unwrapped() || it.runtime != Runtime::None)
            .filter(|it| only.is_empty() || only.iter().any(|name| it.name.contains(name)))
            .collect();
        if programs.is_empty() {
            return Err("no program is left to run: `--list` names them".into());
        }
        let unwrapped = program::unwrapped();
        Ok(Mode::Bench(Options {
            programs,
            budget,
            quick,
            lines,
            unwrapped,
            quiet_machine,
            workers,
            json,
        }))
    }
}

fn program(name: &str) -> Result<&'static Program, String> {
    programs::timed()
        .chain(programs::unmarked())
        .find(|program| program.name == name)
        .ok_or_else(|| format!("there is no program `{name}`: `--list` names them"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("`{text}` is no whole number of seconds above zero")),
    }
}

fn even(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(workers) if workers > 0 && workers % 2 == 0 => Ok(workers),
        _ => Err(format!("`{text}` is no even number above zero")),
    }
}

// The two arguments are also read above, by their names.
const _: () = assert!(matches!(outside::ARGUMENT.as_bytes(), b"--outside-world"));
const _: () = assert!(matches!(ONE.as_bytes(), b"--one"));
