//! `cargo andweorc ci`: a guard against regressions. See `docs/book/src/how-to/ci.md`.

use crate::cli::ProgramOptions;
use crate::console::{self, Console};
use crate::diff::{self, Verdict};
use crate::sides::{self, Side, SidesOptions};
use crate::web::{PageOptions, Sources};
use crate::{project, report, revisions};
use andweorc_profile::compare::{Comparison, Limits, OutcomeChange, State, narrowest};
use andweorc_profile::estimate::{Load, Metric};
use clap::Args;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// By this a comment is found again, to be updated instead of repeated.
const MARKER: &str = "<!-- andweorc ci -->";

/// The options of `ci`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc ci --compare origin/main --bin shop --load 'wrk -d 60s http://127.0.0.1:8080/'
  cargo andweorc ci --baseline main target/andweorc/shop.jsonl --max-regression 3%
  cargo andweorc ci runs/before runs/after --markdown comment.md --json result.json --html diff.html

A regression must be sure (its 95 % interval leaves out zero) and large enough.
Exit codes: 0 no regression, 2 the command can't do what was asked, 3 regression, 4 inconclusive.")]
pub(crate) struct CiOptions {
    #[command(flatten)]
    pub(crate) sides: SidesOptions,
    /// From this loss of throughput on it is a regression
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub(crate) max_regression: f64,
    /// From this rise of the p99 on it is a regression; `off` leaves the p99 out of the verdict
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent_or_off)]
    pub(crate) max_p99_regression: Guard,
    /// Write a Markdown comment to this file; `-` prints it in the place of the text
    #[arg(long, value_name = "PATH")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the result as JSON to this file; `-` prints it in the place of the text
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the result as a page for a browser to this file; `-` prints it in the place of the
    /// text
    #[arg(long, value_name = "PATH")]
    pub(crate) html: Option<PathBuf>,
    /// The page.
    #[command(flatten)]
    pub(crate) page: PageOptions,
    /// Build this git revision and the checkout, run both in turns and judge, in the place of
    /// profiles that are there; `REV..REV` compares two revisions
    #[arg(long, value_name = "REV", conflicts_with = "SidesOptions")]
    pub(crate) compare: Option<String>,
    /// With `--compare`: how often each of the two is run
    #[arg(long, value_name = "N", default_value_t = RUNS, requires = "compare", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// The program that is built and run for `--compare`.
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
}

/// So many runs a side show that equal versions are equal in nine pairs of ten, with the limits as
/// they are by default (docs/book/src/reference/comparisons.md).
const RUNS: u32 = 4;

/// Whether a metric is guarded, and by which limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Guard {
    /// From this change on, %.
    From(f64),
    /// Not at all.
    Off,
}

fn percent(value: &str) -> Result<f64, &'static str> {
    let number = value.trim().trim_end_matches('%').trim_end();
    match number.parse() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err("not a percentage above 0 and up to 100, such as `5%`"),
    }
}

fn percent_or_off(value: &str) -> Result<Guard, &'static str> {
    if value == "off" { Ok(Guard::Off) } else { percent(value).map(Guard::From) }
}

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ok,
    /// The new version lost less than the limit, but whether it improved is not known.
    NotWorse,
    Regression,
    Inconclusive,
    /// There is but a throughput, and before the change it was that of the load: a slower program
    /// could look the same.
    Blind,
}

impl Outcome {
    /// By the worst of the guarded metrics.
    fn of(comparison: &Comparison) -> Outcome {
        let any = |wanted: fn(&OutcomeChange) -> bool| comparison.outcomes.iter().any(wanted);
        if any(|outcome| outcome.state == State::Regressed) {
            Outcome::Regression
        } else if any(|outcome| matches!(outcome.state, State::Erratic { .. }))
            || any(|outcome| outcome.state == State::Inconclusive && !is_within_limit(outcome))
        {
            Outcome::Inconclusive
        } else if matches!(comparison.load[0], Some(Load::Open | Load::Mixed))
            && comparison.outcomes.iter().all(|outcome| outcome.metric == Metric::Throughput)
        {
            Outcome::Blind
        } else if any(|outcome| outcome.state == State::Inconclusive) {
            Outcome::NotWorse
        } else {
            Outcome::Ok
        }
    }

    fn verdict(self) -> Verdict<'static> {
        let (result, exit_code) = match self {
            Outcome::Ok | Outcome::NotWorse => ("ok", 0),
            Outcome::Regression => ("regression", 3),
            Outcome::Inconclusive | Outcome::Blind => ("inconclusive", 4),
        };
        Verdict { result, exit_code }
    }

    fn sentence(self) -> &'static str {
        match self {
            Outcome::Ok => "No regression.",
            Outcome::NotWorse => "No regression: what is inconclusive is only whether it improved.",
            Outcome::Regression => "A regression.",
            Outcome::Inconclusive => {
                "Inconclusive: neither a regression nor its absence is shown. More runs of A and B in turns would tell."
            }
            Outcome::Blind => {
                "Inconclusive: the throughput is bounded by the load, and no latency was judged, so that a regression would not be seen."
            }
        }
    }
}

/// Whether the worse end of the interval is within the limit: a regression is then ruled out.
fn is_within_limit(outcome: &OutcomeChange) -> bool {
    let worse = match outcome.metric {
        Metric::Throughput => outcome.ci_low.map(|low| -low),
        _ => outcome.ci_high,
    };
    worse.is_some_and(|loss| loss <= outcome.limit_pct)
}

/// Why so many runs of A and of B can't rule a regression out, however well they agree; `None` when
/// they can.
fn cannot_pass(runs: [usize; 2], options: &CiOptions) -> Option<String> {
    let p99 = match options.max_p99_regression {
        Guard::From(limit) => Some((Metric::P99, limit)),
        Guard::Off => None,
    };
    let guarded =
        || [Some((Metric::Throughput, options.max_regression)), p99].into_iter().flatten();
    let can = |runs| guarded().all(|(metric, limit)| narrowest(metric, runs) <= limit);
    if can(runs) {
        return None;
    }
    let enough = (2..=100).find(|&runs| can([runs; 2]));
    let enough =
        enough.map_or("larger limits".to_owned(), |runs| format!("{runs} runs a side or more"));
    let [a, b] = runs;
    Some(format!(
        "with {a} and {b} runs of A and B a regression can be shown, but none can be ruled out: `ci` can't pass; it takes {enough}"
    ))
}

/// Compares, writes what was asked for, and exits with the verdict.
pub(crate) fn ci(options: &CiOptions, console: Console) -> Result<ExitCode, Box<dyn Error>> {
    let mut limits = Limits::default();
    limits.throughput = options.max_regression;
    if let Guard::From(limit) = options.max_p99_regression {
        limits.p99 = limit;
    }
    project::are_writable([&options.markdown, &options.json, &options.html].into_iter().flatten())?;
    let say = |runs| cannot_pass(runs, options).into_iter().for_each(|why| console.hint(why));
    let sides = match &options.compare {
        Some(revisions) => {
            say([options.runs as usize; 2]);
            revisions::run(revisions, options.runs, &options.program, console)?
        }
        None => options.sides.read()?,
    };
    let mut comparison = diff::comparison(&sides, &limits)?;
    if options.max_p99_regression == Guard::Off {
        comparison.outcomes.truncate(1);
    }
    if options.compare.is_none() {
        say(sides.each_ref().map(|side| side.runs.len()));
    }
    let outcome = Outcome::of(&comparison);
    let files = sides::files_of(&sides);
    let mut printed = false;
    let forms: [(&Option<PathBuf>, &dyn Fn() -> String); 3] = [
        (&options.markdown, &|| comment(&sides, &comparison, outcome)),
        (&options.json, &|| diff::json(&sides, &comparison, Some(outcome.verdict()))),
        (&options.html, &|| {
            let sources = Sources::near(&files, &options.page.editor);
            diff::html(&sides, &comparison, Some(outcome.sentence()), &sources)
        }),
    ];
    for (path, content) in forms {
        let Some(path) = path else { continue };
        report::put(Some(path), &content(), &files)?;
        printed |= path == Path::new("-");
    }
    if !printed {
        console::print(&format!("{}\n{}\n", diff::text(&sides, &comparison), outcome.sentence()))?;
    }
    Ok(ExitCode::from(outcome.verdict().exit_code))
}

fn comment(sides: &[Side; 2], comparison: &Comparison, outcome: Outcome) -> String {
    let tables = diff::markdown(sides, comparison);
    format!("{MARKER}\n### andweorc: {}\n\n{tables}", outcome.sentence())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_with_and_without_their_sign() {
        assert_eq!((percent("5%"), percent("2.5 %"), percent("7")), (Ok(5.0), Ok(2.5), Ok(7.0)));
        for bad in ["", "%", "-5%", "0", "101%", "NaN", "inf", "5%%x"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        assert_eq!(percent_or_off("off"), Ok(Guard::Off));
        assert_eq!(percent_or_off("10%"), Ok(Guard::From(10.0)));
    }
}
