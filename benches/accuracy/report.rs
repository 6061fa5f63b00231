//! Results of a program: rows, errors and totals.

use andweorc_core::target::Target;
use andweorc_core::time::Speedup;
use andweorc_profile::estimate::{Effect, Metric, analyse};
use andweorc_profile::{ExperimentRecord, Run, TargetKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Results of one program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) program: String,
    pub(crate) rows: Vec<Row>,
    /// Cases of which too few stretches were undisturbed.
    pub(crate) missing: Vec<String>,
    /// Units of work a second, without any speedup.
    pub(crate) rate: f64,
    /// For which part of the time it had its processors busy.
    pub(crate) busy: f64,
    /// Scheduling of the program's threads.
    pub(crate) scheduling: Scheduling,
    /// How often a case was measured, in all.
    pub(crate) turns: u32,
    /// How many stretches were repeated because the machine was disturbed.
    pub(crate) repeated: u32,
    /// Seconds of experiments and their baselines until the first target was settled.
    pub(crate) settle_s: Option<f64>,
    /// How long all turns took.
    pub(crate) seconds: f64,
}

/// Scheduling of a program's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scheduling {
    /// The machine's scheduler.
    Fair,
    /// They have real-time priority.
    RealTime,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheduling::Fair => "fair",
            Scheduling::RealTime => "real-time",
        })
    }
}

/// A target at a speedup: prediction and truth.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) target: String,
    pub(crate) kind: TargetKind,
    pub(crate) speedup: f64,
    /// Share of the experiments' time that all else was delayed, 0 to 1.
    pub(crate) delayed: f64,
    /// How much more CPU time a unit of work took in the experiments, %.
    pub(crate) overhead: f64,
    /// Of the throughput.
    pub(crate) throughput: Pair,
    /// Of the latency, where the program measures it.
    pub(crate) p50: Option<Pair>,
    pub(crate) p99: Option<Pair>,
}

/// A change as predicted, and as it truly is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Pair {
    pub(crate) predicted: Change,
    pub(crate) truth: Change,
}

/// A change in %, with its 95 % interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) pct: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Number of stretches that it comes from.
    pub(crate) n: usize,
}

/// A true effect within so many points is none.
const NULL: f64 = 1.0;

/// An error of the throughput is known well enough within so many points, at 95 %, ...
const KNOWN: f64 = 3.0;

/// ... where there is nothing to gain within less, ...
const KNOWN_NULL: f64 = 1.5;

/// ... and one of the 99th percentile within so many %: among the 400 requests of a stretch it is
/// the fourth longest.
const KNOWN_P99: f64 = 10.0;

impl Row {
    /// The estimates of a case. `None` when there were too few stretches for an interval.
    pub(crate) fn new(
        target: &Target,
        speedup: Speedup,
        predicted: &Run,
        truth: &Run,
    ) -> Option<Row> {
        let delayed = delayed(target, speedup, predicted);
        let (predicted, truth) = (effects(target, predicted), effects(target, truth));
        let pair = |metric| {
            Some(Pair {
                predicted: change(&predicted, metric, speedup)?,
                truth: change(&truth, metric, speedup)?,
            })
        };
        Some(Row {
            target: target.name().to_owned(),
            kind: target.kind(),
            speedup: speedup.fraction(),
            delayed,
            overhead: overhead(&predicted, speedup),
            throughput: pair(Metric::Throughput)?,
            p50: pair(Metric::P50),
            p99: pair(Metric::P99),
        })
    }

    /// How far it is from being known well enough: below one it is.
    pub(crate) fn unknown(&self) -> f64 {
        let p99 = self.p99.map_or(0.0, |p99| p99.relative_half_width() / KNOWN_P99);
        let known = if self.is_null() { KNOWN_NULL } else { KNOWN };
        p99.max(self.throughput.half_width() / known)
    }

    /// Whether making the target faster changes nothing, in truth.
    pub(crate) fn is_null(&self) -> bool {
        self.throughput.truth.pct.abs() <= NULL
    }
}

/// Share of the time of the experiments on `target` at this speedup that all else was delayed.
fn delayed(target: &Target, speedup: Speedup, run: &Run) -> f64 {
    let is_one = |one: &&ExperimentRecord| {
        (one.target, one.speedup) == (Some(target.id()), speedup.fraction())
    };
    let of_one = |one: &ExperimentRecord| (one.delay_ns, one.real_ns);
    let held = run.experiments.iter().filter(is_one).map(of_one);
    let (delay, real) = held.fold((0, 0), |(delay, real), one| (delay + one.0, real + one.1));
    delay as f64 / real as f64
}

fn effects(target: &Target, run: &Run) -> Vec<Effect> {
    let analysis = analyse(std::slice::from_ref(run)).targets;
    let summary =
        analysis.into_iter().find(|it| it.kind == target.kind() && it.name == target.name());
    summary.map_or(Vec::new(), |summary| summary.effects)
}

fn overhead(effects: &[Effect], speedup: Speedup) -> f64 {
    let of_one = effects.iter().find(|it| Speedup::new(it.speedup) == Some(speedup));
    of_one.and_then(|it| it.overhead_pct).unwrap_or(0.0)
}

fn change(effects: &[Effect], metric: Metric, speedup: Speedup) -> Option<Change> {
    let effect = effects
        .iter()
        .find(|it| it.metric == metric && Speedup::new(it.speedup) == Some(speedup))?;
    Some(Change { pct: effect.effect_pct, low: effect.ci_low?, high: effect.ci_high?, n: effect.n })
}

impl Pair {
    /// How far the prediction is from the truth, in points.
    pub(crate) fn error(&self) -> f64 {
        self.predicted.pct - self.truth.pct
    }

    /// How far what is predicted to be left is from what is truly left, in %.
    pub(crate) fn relative_error(&self) -> f64 {
        100.0 * ((100.0 + self.predicted.pct) / (100.0 + self.truth.pct) - 1.0)
    }

    /// Half of the 95 % interval of the error, in points.
    fn half_width(&self) -> f64 {
        let half = |change: &Change| (change.high - change.low) / 2.0;
        half(&self.truth).hypot(half(&self.predicted))
    }

    /// Half of the 95 % interval of the relative error, in %.
    fn relative_half_width(&self) -> f64 {
        let half =
            |change: &Change| ((change.high / 100.0).ln_1p() - (change.low / 100.0).ln_1p()) / 2.0;
        100.0 * half(&self.truth).hypot(half(&self.predicted)).exp_m1()
    }

    /// Whether the truth is where the prediction's interval says. The measured truth is uncertain
    /// as well: if both intervals are what they claim, the error exceeds the root of the sum of
    /// their squares in one of twenty cases.
    pub(crate) fn is_covered(&self) -> bool {
        let (truth, predicted) = (&self.truth, &self.predicted);
        // Towards the other: an effect's interval is not symmetric.
        let (a, b) = if truth.pct > predicted.pct {
            (predicted.high - predicted.pct, truth.pct - truth.low)
        } else {
            (predicted.pct - predicted.low, truth.high - truth.pct)
        };
        self.error().abs() <= a.hypot(b)
    }

    /// Whether the prediction's interval holds the measured truth, as if that had no error of its
    /// own.
    pub(crate) fn is_covered_strictly(&self) -> bool {
        (self.predicted.low..=self.predicted.high).contains(&self.truth.pct)
    }
}

/// All programs together.
#[derive(Debug)]
pub(crate) struct Totals {
    /// The first word of the closing line.
    pub(crate) title: &'static str,
    pub(crate) programs: usize,
    pub(crate) cases: usize,
    /// Mean of the absolute errors, in points.
    pub(crate) mean: f64,
    pub(crate) worst: f64,
    /// The worst of the cases without an effect.
    pub(crate) null_worst: f64,
    /// Share of the cases that are covered.
    pub(crate) coverage: f64,
    pub(crate) strict_coverage: f64,
    /// The longest that it took to settle the first target; infinite when a program never did.
    pub(crate) settle_s: f64,
    pub(crate) repeated: u32,
    pub(crate) p50: Latency,
    pub(crate) p99: Latency,
}

/// Errors of a latency, in %.
#[derive(Debug)]
pub(crate) struct Latency {
    pub(crate) cases: usize,
    pub(crate) mean: f64,
    pub(crate) worst: f64,
}

impl Totals {
    pub(crate) fn of(reports: &[Report]) -> Totals {
        let rows: Vec<&Row> = reports.iter().flat_map(|report| &report.rows).collect();
        let errors: Vec<f64> = rows.iter().map(|row| row.throughput.error().abs()).collect();
        let share = |of: fn(&Pair) -> bool| {
            rows.iter().filter(|row| of(&row.throughput)).count() as f64 / rows.len().max(1) as f64
        };
        let nulls = rows.iter().filter(|row| row.is_null()).map(|row| row.throughput.error().abs());
        Totals {
            title: "ACCURACY",
            programs: reports.len(),
            cases: rows.len(),
            mean: mean(&errors),
            worst: worst(errors.iter().copied()),
            null_worst: worst(nulls),
            coverage: share(Pair::is_covered),
            strict_coverage: share(Pair::is_covered_strictly),
            settle_s: worst(reports.iter().map(|it| it.settle_s.unwrap_or(f64::INFINITY))),
            repeated: reports.iter().map(|report| report.repeated).sum(),
            p50: Latency::of(rows.iter().filter_map(|row| row.p50)),
            p99: Latency::of(rows.iter().filter_map(|row| row.p99)),
        }
    }
}

impl Latency {
    fn of(pairs: impl Iterator<Item = Pair>) -> Latency {
        let errors: Vec<f64> = pairs.map(|pair| pair.relative_error().abs()).collect();
        Latency { cases: errors.len(), mean: mean(&errors), worst: worst(errors.into_iter()) }
    }
}

/// Zero of nothing.
fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len().max(1) as f64
}

/// Zero of nothing.
fn worst(of: impl Iterator<Item = f64>) -> f64 {
    of.fold(0.0, f64::max)
}
