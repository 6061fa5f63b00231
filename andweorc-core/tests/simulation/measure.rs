//! Prediction against truth.

use crate::engine::{Outcome, Setup, simulate};
use crate::program::{Program, Target};
use crate::rules::Rules;
use andweorc_core::time::Speedup;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One target of one program with one speedup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) target: Target,
    pub(crate) speedup: Speedup,
}

/// A case as predicted and as it is.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) case: Case,
    /// Effects on the rate, in percent.
    pub(crate) predicted: f64,
    pub(crate) truth: f64,
    /// Relative errors of mean and p99 latency, in percent, if the program has a latency point.
    pub(crate) latency: Option<(f64, f64)>,
}

impl Comparison {
    /// In points.
    pub(crate) fn error(&self) -> f64 {
        (self.predicted - self.truth).abs()
    }
}

/// Results of several runs of one setup, taken together.
#[derive(Clone, Copy, Debug)]
struct Mean {
    rate: f64,
    latency: Option<(f64, f64)>,
}

fn mean_and_p99(sorted: &[i64]) -> Option<(f64, f64)> {
    let p99 = *sorted.get((sorted.len().saturating_sub(1)) * 99 / 100)?;
    Some((sorted.iter().sum::<i64>() as f64 / sorted.len() as f64, p99 as f64))
}

/// Runs a program with each of its seeds. The latencies are pooled.
fn simulate_all(
    program: &Program,
    rules: Rules,
    virtually: Option<(Target, Speedup)>,
    really: Option<(Target, Speedup)>,
) -> Result<Mean, String> {
    let (mut rate, mut latencies) = (0.0, Vec::new());
    for seed in 0..program.seeds {
        let outcome: Outcome = simulate(&Setup { program, rules, virtually, really, seed })?;
        rate += outcome.rate / program.seeds as f64;
        latencies.extend(outcome.latencies);
    }
    latencies.sort_unstable();
    Ok(Mean { rate, latency: mean_and_p99(&latencies) })
}

/// The truths of a program's cases: they hold for every set of rules.
pub(crate) struct Truth<'a> {
    program: &'a Program,
    base: Mean,
    faster: Vec<(Case, Mean)>,
}

impl<'a> Truth<'a> {
    /// # Errors
    ///
    /// When the program gets stuck.
    pub(crate) fn of(
        program: &'a Program,
        speedups: &[Speedup],
        rules: Rules,
    ) -> Result<Truth<'a>, String> {
        let base = simulate_all(program, rules, None, None)?;
        let mut faster = Vec::new();
        for &target in &program.targets {
            for &speedup in speedups {
                let mean = simulate_all(program, rules, None, Some((target, speedup)))?;
                faster.push((Case { target, speedup }, mean));
            }
        }
        Ok(Truth { program, base, faster })
    }

    /// Predicts the cases with the wanted speedups by these rules.
    ///
    /// # Errors
    ///
    /// When the program gets stuck.
    pub(crate) fn compare(
        &self,
        rules: Rules,
        wanted: impl Fn(Speedup) -> bool,
    ) -> Result<Vec<Comparison>, String> {
        let effect = |rate: f64| (rate / self.base.rate - 1.0) * 100.0;
        let off = |(predicted, truth): (f64, f64)| ((predicted / truth - 1.0) * 100.0).abs();
        let mut comparisons = Vec::new();
        for &(case, truth) in self.faster.iter().filter(|(case, _)| wanted(case.speedup)) {
            let virtually = Some((case.target, case.speedup));
            let predicted = simulate_all(self.program, rules, virtually, None)?;
            let latency = predicted.latency.zip(truth.latency);
            comparisons.push(Comparison {
                case,
                predicted: effect(predicted.rate),
                truth: effect(truth.rate),
                latency: latency.map(|(p, t)| (off((p.0, t.0)), off((p.1, t.1)))),
            });
        }
        Ok(comparisons)
    }
}

/// Mean, 95th percentile and worst of some errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    pub(crate) cases: usize,
    pub(crate) mean: f64,
    pub p95: f64,
    pub(crate) worst: f64,
}

impl Errors {
    pub(crate) fn of(errors: impl IntoIterator<Item = f64>) -> Errors {
        let mut errors: Vec<f64> = errors.into_iter().collect();
        errors.sort_by(f64::total_cmp);
        let cases = errors.len();
        let at = |share: f64| {
            let last = cases.saturating_sub(1) as f64;
            errors.get((last * share).round() as usize).copied().unwrap_or(0.0)
        };
        let mean = errors.iter().sum::<f64>() / cases.max(1) as f64;
        Errors { cases, mean, p95: at(0.95), worst: at(1.0) }
    }
}

/// Does `f` for each of `items` on as many threads as there are cores; the answers are in the
/// items' order.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(HashMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let i = next.fetch_add(1, Ordering::SeqCst)
                    && let Some(item) = items.get(i)
                {
                    let answer = f(item);
                    done.lock().expect("no thread panics with it").insert(i, answer);
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics with it");
    (0..items.len()).map(|i| done.remove(&i).expect("every item was done")).collect()
}
