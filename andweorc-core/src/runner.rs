//! The classic API: line targets for programs without a runtime.
//!
//! Threads register with [`sampler::register`](crate::sampler::register); work is counted by
//! progress points; [`Runner::run`] finds the hottest lines and holds experiments on them. Threads
//! that lag are told to pay by a signal (`nudge`), and pay at progress points.
//!
//! # Limits
//!
//! A thread that blocks on another through std's locks or channels absorbs delay meanwhile, and
//! would pay it again: wrap such calls in [`thread::blocked`](crate::thread::blocked).

use crate::experiment::{Experimenter, Lengths};
use crate::point::points;
use crate::sampler::{Event, PerfError, Sampling, line_target};
use crate::session::provisional;
use crate::symbols::{Place, Scope, SymbolError, Symbols};
use crate::target::Target;
use crate::time::Speedup;
use andweorc_profile::ExperimentRecord;
use andweorc_profile::plain;
use andweorc_profile::stats::{Regression, mean};
use std::fmt;
use std::time::Duration;

/// How long the program is sampled before lines are chosen.
const DISCOVERY: Duration = Duration::from_secs(1);

/// A line below this share of the samples is not worth testing.
const LEAST_SHARE: f64 = 0.02;

/// How experiments are run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerConfig {
    /// Length of the measured stretch of a round.
    pub round_duration: Duration,
    /// Baseline rounds before each round with a speedup; at least one is run.
    pub baseline_rounds: usize,
    /// The speedups, in percent, 0 to 100. Others are left out.
    pub speedup_percentages: Vec<f64>,
    /// How many lines are tested at most, the hottest first.
    pub max_ips: usize,
}

impl Default for RunnerConfig {
    /// Rounds of 250 ms, one baseline each, 25, 50 and 75 %, five lines.
    fn default() -> RunnerConfig {
        RunnerConfig {
            round_duration: Duration::from_millis(250),
            baseline_rounds: 1,
            speedup_percentages: vec![25.0, 50.0, 75.0],
            max_ips: 5,
        }
    }
}

/// Runs experiments on the hottest lines of the registered threads.
///
/// ```no_run
/// use andweorc_core::runner::Runner;
/// let results = Runner::new().run("request")?;
/// for (line, regression) in results.significant_impacts() {
///     println!("{line}: {:.2}", regression.slope);
/// }
/// # Ok::<(), andweorc_core::runner::RunError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Runner {
    config: RunnerConfig,
    scope: Scope,
}

impl Runner {
    /// With the default configuration.
    pub fn new() -> Runner {
        Runner::default()
    }

    /// With this configuration.
    pub fn with_config(config: RunnerConfig) -> Runner {
        Runner { config, scope: Scope::default() }
    }

    /// With lines of this scope only; by default those of the workspace's own crates.
    pub fn with_scope(mut self, scope: Scope) -> Runner {
        self.scope = scope;
        self
    }

    /// Finds the hottest lines and holds [rounds](RunnerConfig) on each. Blocks meanwhile; call it
    /// beside the program's own threads.
    ///
    /// # Errors
    ///
    /// When other experiments are under way, when the program has no line information, when threads
    /// can't be sampled, when nothing was sampled, and when the point is not hit.
    pub fn run(&self, progress_point_name: &str) -> Result<ProfilingResults, RunError> {
        let mut experimenter = provisional::experimenter().ok_or(RunError::AlreadyRunning)?;
        let symbols = Symbols::of_this_program().map_err(RunError::Symbols)?;
        symbols.lines().map_err(RunError::Symbols)?;
        let symbols = symbols.with_scope(self.scope.clone());
        let sampling = Sampling::start(symbols, Event::default()).map_err(RunError::Sampler)?;
        std::thread::sleep(DISCOVERY);
        let found = sampling.take();
        let point = points()
            .into_iter()
            .find(|point| point.name() == plain::cut_name(progress_point_name) && point.count() > 0)
            .ok_or_else(|| RunError::NoProgress(progress_point_name.to_owned()))?
            .id();
        let lines = hottest(found.lines, found.samples, self.config.max_ips);
        if lines.is_empty() {
            return Err(RunError::NoSamples(found.samples));
        }
        sampling.refine(&lines.iter().map(|(place, _)| line_target(place)).collect::<Vec<_>>());
        let mut results =
            ProfilingResults { lost_samples: found.lost, ..ProfilingResults::default() };
        for (place, share) in lines {
            let target = line_target(&place);
            let rounds = self.rounds(&mut experimenter, target, point);
            results.lines.push(Line { place, share, rounds });
        }
        results.lost_samples += sampling.take().lost;
        if sampling.is_over() {
            return Err(RunError::Sampler(PerfError::signal_is_taken()));
        }
        Ok(results)
    }

    /// Rounds on one line: baselines between any two speedups.
    fn rounds(&self, experimenter: &mut Experimenter, target: &Target, point: u32) -> Vec<Round> {
        let lengths = Lengths {
            settle: Duration::from_millis(50),
            measure: self.config.round_duration,
            recover: Duration::from_millis(20),
        };
        let mut rounds = Vec::new();
        let mut hold = |target, speedup: Speedup| {
            if let Some(record) = experimenter.hold(target, speedup, lengths).record()
                && record.spoiled.is_none()
            {
                rounds.push(Round::new(&record, point));
            }
        };
        for _ in 0..ROUNDS {
            for &percent in &self.config.speedup_percentages {
                let Some(speedup) = Speedup::new(percent / 100.0) else { continue };
                for _ in 0..self.config.baseline_rounds.max(1) {
                    hold(None, Speedup::ZERO);
                }
                hold(Some(target), speedup);
            }
        }
        hold(None, Speedup::ZERO);
        rounds
    }
}

/// How often each speedup is held.
const ROUNDS: usize = 3;

/// The hottest lines with their shares of all samples.
fn hottest(
    lines: impl IntoIterator<Item = (Place, u64)>,
    samples: u64,
    most: usize,
) -> Vec<(Place, f64)> {
    let mut lines: Vec<(Place, f64)> =
        lines.into_iter().map(|(place, n)| (place, n as f64 / samples as f64)).collect();
    lines.retain(|(_, share)| *share >= LEAST_SHARE);
    lines.sort_by(|(p, a), (q, b)| b.total_cmp(a).then(p.cmp(q)));
    lines.truncate(most);
    lines
}

/// One round.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    /// Fraction; 0 in a baseline.
    speedup: f64,
    /// Hits of the point per virtual second.
    throughput: f64,
}

impl Round {
    fn new(record: &ExperimentRecord, point: u32) -> Round {
        let hits = record.points.iter().find(|count| count.point == point).map_or(0, |c| c.count);
        let virtual_ns = record.real_ns.saturating_sub(record.delay_ns).max(1);
        Round { speedup: record.speedup, throughput: hits as f64 * 1e9 / virtual_ns as f64 }
    }
}

/// A line and its rounds.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    place: Place,
    share: f64,
    rounds: Vec<Round>,
}

impl Line {
    /// (speedup, relative change of the throughput against the neighbouring baselines) of each
    /// round; baselines themselves are at (0, change against the mean of all).
    fn data(&self) -> Vec<(f64, f64)> {
        let is_baseline = |round: &&Round| round.speedup == 0.0;
        let baselines: Vec<f64> =
            self.rounds.iter().filter(is_baseline).map(|round| round.throughput).collect();
        let level = mean(&baselines);
        let change = |round: &Round, level: f64| (round.speedup, round.throughput / level - 1.0);
        let mut data = Vec::new();
        for (i, round) in self.rounds.iter().enumerate() {
            if round.speedup == 0.0 {
                data.push(change(round, level));
                continue;
            }
            let before = self.rounds[..i].iter().rev().find(is_baseline);
            let after = self.rounds[i..].iter().find(is_baseline);
            let near: Vec<f64> = before.into_iter().chain(after).map(|r| r.throughput).collect();
            data.push(change(round, if near.is_empty() { level } else { mean(&near) }));
        }
        data.retain(|(_, y)| y.is_finite());
        data
    }
}

/// Findings of a [`Runner`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfilingResults {
    lines: Vec<Line>,
    lost_samples: u64,
}

impl ProfilingResults {
    /// The impact of each line, the greatest first: the change of throughput, as a fraction, for a
    /// speedup of 100 %. Lines with too few rounds for a regression are left out.
    pub fn calculate_impacts(&self) -> Vec<(Place, f64)> {
        self.calculate_impacts_with_stats()
            .into_iter()
            .map(|(place, fit)| (place, fit.slope))
            .collect()
    }

    /// The impact of each line with its regression, ranked by the lower end of the slope's
    /// interval.
    pub fn calculate_impacts_with_stats(&self) -> Vec<(Place, Regression)> {
        let fit = |line: &Line| Some((line.place.clone(), Regression::fit(&line.data())?));
        let mut impacts: Vec<(Place, Regression)> = self.lines.iter().filter_map(fit).collect();
        impacts.sort_by(|(_, a), (_, b)| b.slope_ci_lower.total_cmp(&a.slope_ci_lower));
        impacts
    }

    /// The impacts whose interval leaves out zero.
    pub fn significant_impacts(&self) -> Vec<(Place, Regression)> {
        let mut impacts = self.calculate_impacts_with_stats();
        impacts.retain(|(_, fit)| fit.is_significant());
        impacts
    }

    /// Samples that were lost: their time was credited to no line.
    pub fn lost_samples(&self) -> u64 {
        self.lost_samples
    }
}

impl fmt::Display for ProfilingResults {
    /// The ranking, a line each: `1. src/main.rs:12 (work), 61 % of samples: 25 % faster -> +31.0 %
    /// throughput [28.1, 33.9]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (place, fit)) in self.calculate_impacts_with_stats().iter().enumerate() {
            let share =
                self.lines.iter().find(|line| line.place == *place).map_or(0.0, |l| l.share);
            let quarter = |slope: f64| slope * 25.0;
            let weight = if fit.is_significant() { "" } else { " (not significant)" };
            writeln!(
                f,
                "{:>3}. {}, {:.0} % of samples: 25 % faster -> {:+.1} % throughput [{:.1}, {:.1}]{weight}",
                i + 1,
                plain::name(&place.to_string()),
                share * 100.0,
                quarter(fit.slope),
                quarter(fit.slope_ci_lower),
                quarter(fit.slope_ci_upper)
            )?;
        }
        if self.lost_samples > 0 {
            writeln!(f, "{} samples were lost", self.lost_samples)?;
        }
        Ok(())
    }
}

/// Why a [`Runner`] found nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// Other experiments of this process are under way.
    AlreadyRunning,
    /// The program's symbols can't be used.
    Symbols(SymbolError),
    /// Threads can't be sampled.
    Sampler(PerfError),
    /// No point of this name was hit.
    NoProgress(String),
    /// No line in scope was sampled, of so many samples.
    NoSamples(u64),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::AlreadyRunning => {
                f.write_str("other experiments of this process are under way; wait for them to end")
            }
            RunError::Symbols(error) => error.fmt(f),
            RunError::Sampler(error) => error.fmt(f),
            RunError::NoProgress(name) => {
                let seen = points();
                let seen = crate::experiment::names(seen.iter().map(|point| point.name()));
                let (name, seen) = (plain::name(name), plain::sentence(&seen));
                write!(
                    f,
                    "no progress point named `{name}` was hit (points seen: {seen}): mark a unit of work with \
                     `andweorc::progress!(\"{name}\")`"
                )
            }
            RunError::NoSamples(samples) => write!(
                f,
                "none of {samples} samples was in your own code: call `andweorc::start_profiling()` on each thread that works, and \
                 see that the kernel allows perf events"
            ),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Symbols(error) => Some(error),
            RunError::Sampler(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32) -> Place {
        Place { file: "src/main.rs".into(), line, function: "work".into() }
    }

    fn results() -> ProfilingResults {
        let line = |number, factor: f64| {
            let mut rounds = Vec::new();
            for i in 0..9 {
                let speedup = f64::from(i % 3 + 1) * 0.25;
                let wiggle = 1.0 + 0.001 * f64::from(i % 2);
                rounds.push(Round { speedup: 0.0, throughput: 100.0 * wiggle });
                rounds.push(Round { speedup, throughput: 100.0 * (1.0 + factor * speedup) });
            }
            rounds.push(Round { speedup: 0.0, throughput: 100.0 });
            Line { place: place(number), share: 0.5, rounds }
        };
        ProfilingResults { lines: vec![line(1, 0.0), line(2, 0.8)], lost_samples: 3 }
    }

    #[test]
    fn impacts_are_slopes_ranked_by_their_lower_end() {
        let results = results();
        let impacts = results.calculate_impacts();
        assert_eq!(impacts[0].0, place(2));
        assert!((impacts[0].1 - 0.8).abs() < 0.01 && impacts[1].1.abs() < 0.01);
        let significant = results.significant_impacts();
        assert_eq!(significant.len(), 1);
        assert!(significant[0].1.has_good_fit());
        let text = results.to_string();
        assert!(
            text.starts_with("  1. src/main.rs:2 (work), 50 % of samples: 25 % faster -> +20."),
            "{text}"
        );
        assert!(
            text.contains("(not significant)") && text.contains("3 samples were lost"),
            "{text}"
        );
    }

    #[test]
    fn the_hottest_lines_come_first_and_trifles_not_at_all() {
        let lines = [(place(1), 10), (place(2), 60), (place(3), 1), (place(4), 29)];
        let hottest = |most| {
            super::hottest(lines.clone(), 100, most).iter().map(|(p, _)| p.line).collect::<Vec<_>>()
        };
        assert_eq!(hottest(5), [2, 4, 1]);
        assert_eq!(hottest(1), [2]);
    }

    #[test]
    fn a_point_that_is_never_hit_is_named() {
        let error = RunError::NoProgress("nope".into()).to_string();
        assert!(error.contains("`nope`") && error.contains("progress!"), "{error}");
    }
}
