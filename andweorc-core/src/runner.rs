//! The classic API: line targets for programs without a runtime.
//!
//! Threads register with [`thread::register`](crate::thread::register); work is counted by
//! progress points; [`Runner::run`] finds the hottest lines and holds experiments on them. Threads
//! that lag are told to pay by a signal (`catch_up_signal`), and pay at progress points.
//!
//! # Limits
//!
//! A thread that blocks on another through std's locks or channels absorbs delay meanwhile, and
//! would pay it again: wrap such calls in [`thread::blocked`](crate::thread::blocked).

use crate::experiment::{Finished, Rounds};
use crate::point::points;
use crate::sampler::{Event, PerfError, Sampling, line_target};
use crate::session::{hold_rounds, provisional};
use crate::settings::{Scope, Settings};
use crate::symbols::{Place, SymbolError, Symbols};
use crate::time::Speedup;
use andweorc_profile::estimate::{Analysis, Metric};
use andweorc_profile::plain;
use andweorc_profile::stats::Regression;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// How often each speedup is held.
const PASSES: u32 = 3;

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
/// use andweorc_core::hooks::runner::Runner;
/// let results = Runner::new().run("request")?;
/// for (line, regression) in results.significant_impacts() {
///     println!("{line}: {:.2}", regression.slope);
/// }
/// # Ok::<(), andweorc_core::hooks::runner::RunError>(())
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
        let experimenter = provisional::experimenter().ok_or(RunError::AlreadyRunning)?;
        let symbols = Symbols::of_this_program().map_err(RunError::Symbols)?;
        symbols.lines().map_err(RunError::Symbols)?;
        let symbols = symbols.with_scope(self.scope.clone());
        let sampling = Sampling::start(symbols, Event::default()).map_err(RunError::Sampler)?;
        let (settings, rounds) = self.settings(progress_point_name);
        let finished = hold_rounds(settings, experimenter, rounds, sampling);
        if finished.has_lost_signal {
            return Err(RunError::Sampler(PerfError::signal_is_taken()));
        }
        if finished.run.held() > 0 {
            return Ok(ProfilingResults::of(&finished));
        }
        let name = plain::cut_name(progress_point_name);
        let is_hit = points().iter().any(|point| point.name() == name && point.count() > 0);
        Err(if is_hit {
            RunError::NoSamples(finished.samples.samples)
        } else {
            RunError::NoProgress(progress_point_name.to_owned())
        })
    }

    /// The session that this is a face of: it ranks the hottest lines by this point, and ends when
    /// all rounds were held.
    fn settings(&self, progress_point_name: &str) -> (Settings, Rounds) {
        let percents = self.config.speedup_percentages.iter();
        let mut settings = Settings::default();
        settings.duration = Duration::MAX;
        settings.targets = vec!["lines".to_owned()];
        settings.points = vec![progress_point_name.to_owned()];
        settings.speedups = percents.filter_map(|percent| Speedup::new(percent / 100.0)).collect();
        settings.scope = self.scope.clone();
        let rounds = Rounds {
            measure: self.config.round_duration,
            baselines: self.config.baseline_rounds.max(1),
            passes: PASSES,
            max_targets: self.config.max_ips,
        };
        (settings, rounds)
    }
}

/// A line and what experiments on it tell.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    place: Place,
    /// Part of the samples that was in it.
    share: f64,
    impact: Regression,
}

/// Findings of a [`Runner`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfilingResults {
    lines: Vec<Line>,
    lost_samples: u64,
}

impl ProfilingResults {
    fn of(finished: &Finished) -> ProfilingResults {
        let lines =
            lines(&finished.samples.lines, finished.samples.samples, &finished.run.analysis());
        ProfilingResults { lines, lost_samples: finished.samples.lost }
    }

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
        self.lines.iter().map(|line| (line.place.clone(), line.impact)).collect()
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

/// The lines that the analysis tells an impact of, ranked by the lower end of its interval, with
/// their shares of all samples.
fn lines(sampled: &HashMap<Place, u64>, samples: u64, analysis: &Analysis) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for target in &analysis.targets {
        // A line may be in several functions: of macros, or of generic ones.
        let places = sampled.iter().filter(|(place, _)| target.is(&line_target(place).to_record()));
        let places: Vec<_> = places.collect();
        let impact = target
            .impacts
            .iter()
            .find(|impact| (impact.point_index, impact.metric) == (0, Metric::Throughput));
        let hottest =
            places.iter().max_by_key(|(place, count)| (*count, std::cmp::Reverse(*place)));
        if let Some((place, _)) = hottest
            && let Some(impact) = impact.and_then(|impact| impact.to_regression())
        {
            let share =
                places.iter().map(|(_, count)| **count).sum::<u64>() as f64 / samples as f64;
            lines.push(Line { place: (*place).clone(), share, impact });
        }
    }
    lines.sort_by(|a, b| b.impact.slope_ci_lower.total_cmp(&a.impact.slope_ci_lower));
    lines
}

impl fmt::Display for ProfilingResults {
    /// The ranking, a line each: `1. src/main.rs:12 (work), 61 % of samples: 25 % faster -> +31.0 %
    /// throughput [28.1, 33.9]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Line { place, share, impact }) in self.lines.iter().enumerate() {
            let quarter = |slope: f64| slope * 25.0;
            let weight = if impact.is_significant() { "" } else { " (not significant)" };
            writeln!(
                f,
                "{:>3}. {}, {:.0} % of samples: 25 % faster -> {:+.1} % throughput [{:.1}, {:.1}]{weight}",
                i + 1,
                plain::name(&place.to_string()),
                share * 100.0,
                quarter(impact.slope),
                quarter(impact.slope_ci_lower),
                quarter(impact.slope_ci_upper)
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

/// Each says its cause by itself.
impl std::error::Error for RunError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::point;
    use crate::session::header;
    use crate::target::Target;
    use andweorc_profile::estimate::analyse;
    use andweorc_profile::{ExperimentRecord, PointCount, PointKind, Record, Run};

    fn place(line: u32) -> Place {
        Place { file: "src/main.rs".into(), line, function: "work".into() }
    }

    /// A run in which line 1 has no effect, and line 2 four fifths of its speedup.
    fn results() -> ProfilingResults {
        let mut run = Run::new(header(&Settings::default()));
        let item = point(PointKind::Progress, "runner: item", None, None, true).to_record(0);
        let id = item.id;
        run.push(Record::Point(item));
        let mut hold = |target: Option<&Target>, speedup: f64, count: f64| {
            let (seq, count) = (run.experiments.len() as u32, count as u64);
            let start_ns = u64::from(seq) * 1_000_000_000;
            let mut record = ExperimentRecord::new(seq, start_ns, 1_000_000_000);
            (record.target, record.speedup) = (target.map(Target::id), speedup);
            record.points = vec![PointCount::new(id, count)];
            run.push(Record::Experiment(record));
        };
        let targets = [1, 2].map(|number| line_target(&place(number)));
        for (target, effect) in targets.into_iter().zip([0.0, 0.8]) {
            for i in 0..9 {
                let speedup = f64::from(i % 3 + 1) * 0.25;
                let wiggle = f64::from(30 * (i % 2) - 15);
                hold(None, 0.0, 10_000.0);
                hold(Some(target), speedup, 10_000.0 * (1.0 + effect * speedup) + wiggle);
            }
        }
        hold(None, 0.0, 10_000.0);
        run.targets.extend(targets.map(Target::to_record));
        let sampled = HashMap::from([(place(1), 30), (place(2), 50)]);
        ProfilingResults { lines: lines(&sampled, 100, &analyse(&[run])), lost_samples: 3 }
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
    fn a_point_that_is_never_hit_is_named() {
        let error = RunError::NoProgress("nope".into()).to_string();
        assert!(error.contains("`nope`") && error.contains("progress!"), "{error}");
    }
}
