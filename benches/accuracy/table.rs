//! Reports as text.

use crate::program::{Program, Runtime};
use crate::report::{Change, Latency, Pair, Report, Totals};
use std::fmt;

/// A program as `--list` shows it.
pub(crate) fn listed(program: &Program) -> String {
    let runtime = match program.runtime {
        Runtime::Workers => "2 workers",
        Runtime::CurrentThread => "current thread",
        Runtime::None => "plain threads",
    };
    format!("{:<22} {runtime:<15} {}", program.name, program.about)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {:.0}/s, {} turns in {:.0} s",
            self.program, self.rate, self.turns, self.seconds
        )?;
        match self.settle_s {
            Some(seconds) => write!(f, ", first target settled in {seconds:.1} s")?,
            None => write!(f, ", no target settled")?,
        }
        write!(f, ", {:.0} % busy, {}", self.busy * 100.0, self.scheduling)?;
        if self.repeated > 0 {
            write!(f, ", {} disturbed stretches repeated", self.repeated)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "  {:<12}{:>8}{:>9}{:>10}  {:<24}{:<24}{:>7}  {:<8} p50 and p99: predicted, true",
            "target", "speedup", "delayed", "overhead", "predicted", "true", "error", "covered"
        )?;
        for row in &self.rows {
            let pair = &row.throughput;
            write!(
                f,
                "  {:<12}{:>6.0} %{:>7.0} %{:>8.1} %  {:<24}{:<24}{:>+7.1}  {:<8}",
                row.target,
                row.speedup * 100.0,
                row.delayed * 100.0,
                row.overhead,
                pair.predicted.to_string(),
                pair.truth.to_string(),
                pair.error(),
                if pair.is_covered() { "yes" } else { "NO" }
            )?;
            for latency in [row.p50, row.p99].into_iter().flatten() {
                let Pair { predicted, truth } = latency;
                write!(f, " {:+.1}, {:+.1};", predicted.pct, truth.pct)?;
            }
            writeln!(f)?;
        }
        for case in &self.missing {
            writeln!(f, "  {case}: NOT MEASURED: too few stretches were undisturbed")?;
        }
        Ok(())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.1} [{:+.1}, {:+.1}]", self.pct, self.low, self.high)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "The truth lies inside the prediction's interval, its own error left out, in {:.2} of the cases. \
             {} disturbed stretches were repeated.",
            self.strict_coverage, self.repeated
        )?;
        let Latency { cases, mean, worst } = self.p50;
        write!(f, "LATENCY cases={cases} p50_mean={mean:.2} p50_worst={worst:.2}")?;
        writeln!(f, " p99_mean={:.2} p99_worst={:.2}", self.p99.mean, self.p99.worst)?;
        write!(
            f,
            "{} programs={} cases={} mean={:.2} worst={:.2} null_worst={:.2} coverage={:.2} settle_s_max={:.1}",
            self.title,
            self.programs,
            self.cases,
            self.mean,
            self.worst,
            self.null_worst,
            self.coverage,
            self.settle_s
        )
    }
}
