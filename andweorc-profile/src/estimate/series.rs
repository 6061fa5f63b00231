//! One metric of one point in the experiments of a run, against their neighbouring baselines.

use crate::ExperimentRecord;
use crate::estimate::observation::Observation;
use crate::estimate::scatter::Variance;
use std::collections::HashMap;

/// An experiment that waits for the next baseline is compared with the one before it alone once so
/// many wait after it.
const WAITING: usize = 1_000;

/// An experiment on a target that could be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    /// Id of the target.
    pub(crate) target: u32,
    pub(crate) speedup: f64,
    pub(crate) real_ns: u64,
    pub(crate) delay_ns: u64,
}

impl Trial {
    /// The logarithm by which a throughput rises when the program does as much in real time as
    /// without the delays, which are taken out of the time.
    fn reach(&self) -> f64 {
        -(-(self.delay_ns as f64 / self.real_ns.max(1) as f64)).ln_1p()
    }
}

/// A trial whose next baseline is not known yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    trial: Trial,
    measured: f64,
    before: Option<f64>,
    /// The baseline before is that after another one of the same target and speedup.
    shares: bool,
}

impl Waiting {
    /// Compares it with its baselines: with none there is nothing to say.
    fn against(&self, after: Option<f64>) -> Option<Observation> {
        let baselines: Vec<f64> = self.before.into_iter().chain(after).collect();
        let log_ratio = (self.measured / crate::stats::mean(&baselines)).ln();
        (!baselines.is_empty()).then(|| Observation {
            run: 0,
            speedup: self.trial.speedup,
            n: 1,
            log_ratio,
            seconds: 2.0 * self.trial.real_ns as f64 / 1e9,
            shared: usize::from(self.shares),
            reach: self.trial.reach(),
        })
    }
}

/// The metric in all experiments so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// In the last baseline that can be used.
    before: Option<f64>,
    waiting: Vec<Waiting>,
    /// By target, in the order of the experiments.
    by_target: HashMap<u32, Vec<Observation>>,
    measured: bool,
    /// Trials of which the last baseline is the one after.
    ended: Vec<Trial>,
    baselines: Baselines,
}

/// The mean of baselines, and how much they differ from their neighbours.
#[derive(Clone, Copy, Debug, Default)]
struct Baselines {
    /// The last two in a row.
    last: [Option<f64>; 2],
    /// How many were compared with the ones before and after.
    compared: usize,
    /// The sum of the squares of the logarithms of these ratios.
    squares: f64,
    /// The sum of all that have a value, and how many these are.
    sum: f64,
    n: usize,
}

/// Of three baselines in a row the middle one is compared with the others, so two comparisons that
/// follow each other share two of them: of independent ones it takes so many fewer. (The
/// correlations of neighbours and of their neighbours are -2/3 and 1/6; 1 + 2 (4/9 + 1/36) = 1.94.)
const SHARED: f64 = 1.94;

impl Baselines {
    fn add(&mut self, value: Option<f64>) {
        if let ([Some(first), Some(middle)], Some(last)) = (self.last, value) {
            self.compared += 1;
            self.squares += (2.0 * middle / (first + last)).ln().powi(2);
        }
        self.last = [self.last[1], value];
        if let Some(value) = value {
            self.sum += value;
            self.n += 1;
        }
    }
}

impl Series {
    /// Adds an experiment, in which it had this value.
    pub(crate) fn push(&mut self, experiment: &ExperimentRecord, value: Option<f64>, most: usize) {
        let value = value.filter(|value| *value > 0.0 && value.is_finite());
        match experiment.target {
            _ if experiment.discarded.is_some() => self.discarded(value),
            None => self.baseline(value, most),
            Some(target) => {
                let ExperimentRecord { speedup, real_ns, delay_ns, .. } = *experiment;
                self.trial(Trial { target, speedup, real_ns, delay_ns }, value, most);
            }
        }
    }

    /// Whether no experiment, be it discarded, has the metric.
    pub(crate) fn is_empty(&self) -> bool {
        !self.measured
    }

    /// An experiment that is discarded has this value.
    fn discarded(&mut self, value: Option<f64>) {
        self.measured |= value.is_some();
    }

    /// A baseline that can be used has this value.
    fn baseline(&mut self, value: Option<f64>, most: usize) {
        self.measured |= value.is_some();
        self.ended.clear();
        for waiting in std::mem::take(&mut self.waiting) {
            self.ended.push(waiting.trial);
            self.settle(waiting, value, most);
        }
        self.before = value;
        self.baselines.add(value);
    }

    /// How much an experiment that changes nothing scatters: a baseline, compared with its
    /// neighbours as an experiment is.
    pub(crate) fn of_baselines(&self) -> Variance {
        let Baselines { compared, squares, .. } = self.baselines;
        let compared = compared as f64;
        Variance {
            of_one: if compared > 0.0 { squares / compared } else { 0.0 },
            df: compared / SHARED,
        }
    }

    /// The sum of the baselines that have a value, and how many these are.
    pub(crate) fn of_all_baselines(&self) -> (f64, usize) {
        (self.baselines.sum, self.baselines.n)
    }

    /// An experiment that can be used has this value.
    fn trial(&mut self, trial: Trial, value: Option<f64>, most: usize) {
        let Some(measured) = value else { return };
        self.measured = true;
        let same = |it: &Trial| it.target == trial.target && it.speedup == trial.speedup;
        let shares = self.ended.iter().any(same);
        self.waiting.push(Waiting { trial, measured, before: self.before, shares });
        if self.waiting.len() > WAITING {
            let longest = self.waiting.remove(0);
            self.settle(longest, None, most);
        }
    }

    fn settle(&mut self, waiting: Waiting, after: Option<f64>, most: usize) {
        if let Some(one) = waiting.against(after) {
            add(self.by_target.entry(waiting.trial.target).or_default(), one, most);
        }
    }

    /// All observations of the target with this id, in the order of the experiments.
    pub(crate) fn observations(&self, target: u32) -> impl Iterator<Item = Observation> + '_ {
        let settled = self.by_target.get(&target).into_iter().flatten().copied();
        let waiting = self.waiting.iter().filter(move |one| one.trial.target == target);
        settled.chain(waiting.filter_map(|one| one.against(None)))
    }
}

/// Adds an observation. Where there are `most` of its speedup, each two neighbours become one
/// first; later ones are taken together until they are as many.
fn add(all: &mut Vec<Observation>, one: Observation, most: usize) {
    let same = |it: &&mut Observation| it.speedup == one.speedup;
    if all.iter_mut().filter(same).count() >= most {
        halve(all, one.speedup);
    }
    // The first is never one that still grows, unless it is alone.
    let full = all.iter_mut().find(|it| same(it)).map_or(1, |first| first.n);
    match all.iter_mut().rfind(|it| same(it)).filter(|last| last.n < full) {
        Some(last) => last.add(&one),
        None => all.push(one),
    }
}

/// Makes one of each two neighbours of a speedup, in place.
fn halve(all: &mut Vec<Observation>, speedup: f64) {
    let mut kept = 0;
    // Where the first of two is.
    let mut first: Option<usize> = None;
    for i in 0..all.len() {
        let one = all[i];
        let same = one.speedup == speedup;
        if same && let Some(first) = first.take() {
            all[first].add(&one);
            continue;
        }
        if same {
            first = Some(kept);
        }
        all[kept] = one;
        kept += 1;
    }
    all.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::percent;

    /// A series of so many trials at two speedups, between baselines of 100; the values of the
    /// trials are `value(i)`.
    fn series(n: usize, most: usize, value: impl Fn(usize) -> f64) -> Series {
        let mut series = Series::default();
        series.baseline(Some(100.0), most);
        for i in 0..n {
            let speedup = if i % 2 == 0 { 0.25 } else { 0.5 };
            let trial = Trial { target: 7, speedup, real_ns: 500_000_000, delay_ns: 0 };
            series.trial(trial, Some(value(i)), most);
            series.baseline(Some(100.0), most);
        }
        series
    }

    #[test]
    fn merged_observations_keep_their_count_means_and_time() {
        let value = |i: usize| 100.0 + (i % 17) as f64;
        for n in [1, 7, 8, 9, 15, 16, 17, 1_000, 1_001] {
            let all: Vec<_> = series(n, usize::MAX, value).observations(7).collect();
            let few: Vec<_> = series(n, 4, value).observations(7).collect();
            assert!(all.len() == n && few.len() <= 8, "{n}: {}", few.len());
            for speedup in [0.25, 0.5] {
                let of = |these: &[Observation]| {
                    let mut sums = [0.0; 3];
                    for one in these.iter().filter(|one| one.speedup == speedup) {
                        let n = one.n as f64;
                        let each = [n, n * one.log_ratio, one.seconds];
                        sums.iter_mut().zip(each).for_each(|(sum, each)| *sum += each);
                    }
                    sums
                };
                for (all, few) in of(&all).into_iter().zip(of(&few)) {
                    assert!((all - few).abs() < 1e-9 * n as f64, "{n}: {all} became {few}");
                }
                // All are of one size, but for the last.
                let sizes: Vec<_> =
                    few.iter().filter(|one| one.speedup == speedup).map(|one| one.n).collect();
                let but_last = &sizes[..sizes.len().saturating_sub(1)];
                assert!(
                    but_last.iter().all(|&n| n == sizes[0] && n.is_power_of_two()),
                    "{sizes:?}"
                );
            }
        }
    }

    #[test]
    fn few_are_kept_one_by_one_in_their_order() {
        let found: Vec<_> = series(6, 4, |i| 100.0 + i as f64).observations(7).collect();
        let told: Vec<_> = found.iter().map(|one| one.log_ratio.exp() * 100.0 - 100.0).collect();
        assert!(
            told.iter().zip(0..).all(|(told, i)| (told - f64::from(i)).abs() < 1e-9),
            "{told:?}"
        );
        assert!(found.iter().all(|one| one.n == 1));
    }

    #[test]
    fn a_trial_is_compared_with_the_baseline_before_until_there_is_one_after() {
        let mut series = Series::default();
        let trial = Trial { target: 1, speedup: 0.5, real_ns: 1, delay_ns: 0 };
        series.trial(trial, Some(5.0), 4);
        assert_eq!(series.observations(1).count(), 0, "with none there is nothing to say");
        series.baseline(Some(10.0), 4);
        series.trial(trial, Some(20.0), 4);
        series.trial(trial, None, 4);
        let effects = |series: &Series| -> Vec<f64> {
            series.observations(1).map(|one| percent(one.log_ratio).round()).collect()
        };
        assert_eq!(effects(&series), [-50.0, 100.0]);
        series.baseline(Some(30.0), 4);
        assert_eq!(effects(&series), [-50.0, 0.0]);
        // What a baseline did not do can't be compared with.
        series.trial(trial, Some(30.0), 4);
        series.baseline(None, 4);
        series.trial(trial, Some(30.0), 4);
        assert_eq!(effects(&series), [-50.0, 0.0, 0.0]);
    }

    #[test]
    fn without_any_baseline_no_more_than_some_wait() {
        let mut series = Series::default();
        series.baseline(Some(1.0), 4);
        for _ in 0..3 * WAITING {
            series.trial(Trial { target: 1, speedup: 0.5, real_ns: 1, delay_ns: 0 }, Some(2.0), 4);
        }
        assert!(series.waiting.len() <= WAITING && series.waiting.capacity() <= 4 * WAITING);
        let n: usize = series.observations(1).map(|one| one.n).sum();
        assert_eq!(n, 3 * WAITING);
    }
}
