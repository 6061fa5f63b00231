//! The statistics of a comparison: runs are clusters.
//!
//! Two runs of one build differ by more than their experiments' noise shows (other addresses,
//! another mode of the scheduler, a warmer machine), so a run counts as *one* value with a variance
//! of its own, however many experiments it holds.
//!
//! - The value of a run is the 20 % trimmed mean of its observations, which a few outliers don't
//!   move; its variance inside the run is Yuen's (1974).
//! - With few runs the drift between them can't be measured. Therefore the variance of a run's
//!   value is *moderated* (Smyth 2004): an assumed drift weighs as much as [`PRIOR_RUNS`] runs
//!   would, and every run that is added takes weight from it. With one run a side the assumption is
//!   all there is; with five it hardly counts.
//! - The interval of the difference is Student's with the sum of both degrees of freedom. Both
//!   sides share one variance.

use crate::stats;

/// Degrees of freedom that the assumed drift counts for.
const PRIOR_RUNS: f64 = 4.0;

/// Share of the observations that a trimmed mean leaves out at each end.
const TRIM: f64 = 0.2;

/// Value of one run, with its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cluster {
    /// Its value.
    pub(crate) value: f64,
    /// Variance of that value as far as the observations inside the run tell; `None` with a single
    /// one.
    pub(crate) variance: Option<f64>,
}

impl Cluster {
    /// The trimmed mean of the observations of one run. `None` without any.
    pub(crate) fn of(observations: &[f64]) -> Option<Cluster> {
        let mut sorted = observations.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let cut = (TRIM * n as f64) as usize;
        let kept = sorted.get(cut..n - cut).filter(|kept| !kept.is_empty())?;
        let (first, last, h) = (kept[0], kept[kept.len() - 1], kept.len() as f64);
        let variance = (n >= 2).then(|| {
            let winsorized: Vec<f64> = sorted.iter().map(|x| x.clamp(first, last)).collect();
            let centre = stats::mean(&winsorized);
            let squares: f64 = winsorized.iter().map(|x| (x - centre).powi(2)).sum();
            squares / (h * (h - 1.0))
        });
        Some(Cluster { value: stats::mean(kept), variance })
    }
}

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// The estimate.
    pub(crate) value: f64,
    /// Half the width of the interval.
    pub(crate) half: f64,
    /// Two-sided p-value of zero.
    pub(crate) p_value: f64,
}

/// The spread of runs of one build, moderated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    variance: f64,
    df: f64,
}

impl Spread {
    /// Of the runs of both sides. `None` when not one of them has observations enough for a
    /// variance.
    ///
    /// `drift` is the assumed standard deviation between runs, in the unit of the values.
    pub(crate) fn of(a: &[Cluster], b: &[Cluster], drift: f64) -> Option<Spread> {
        let inside: Vec<f64> = a.iter().chain(b).filter_map(|run| run.variance).collect();
        if inside.is_empty() {
            return None;
        }
        let assumed = drift * drift + stats::mean(&inside);
        let (mut squares, mut df) = (0.0, 0.0);
        for side in [a, b].into_iter().filter(|side| !side.is_empty()) {
            let centre = mean(side);
            squares += side.iter().map(|run| (run.value - centre).powi(2)).sum::<f64>();
            df += side.len() as f64 - 1.0;
        }
        let variance = (PRIOR_RUNS * assumed + squares) / (PRIOR_RUNS + df);
        Some(Spread { variance, df: PRIOR_RUNS + df })
    }

    /// The mean of some runs.
    pub(crate) fn mean(&self, runs: &[Cluster]) -> Option<Interval> {
        (!runs.is_empty()).then(|| self.interval(mean(runs), 1.0 / runs.len() as f64))
    }

    /// The mean of `b` less that of `a`.
    pub(crate) fn difference(&self, a: &[Cluster], b: &[Cluster]) -> Option<Interval> {
        let weight = 1.0 / a.len() as f64 + 1.0 / b.len() as f64;
        weight.is_finite().then(|| self.interval(mean(b) - mean(a), weight))
    }

    fn interval(&self, value: f64, weight: f64) -> Interval {
        let error = (self.variance * weight).sqrt();
        let p_value = if error > 0.0 {
            stats::p_value(value / error, self.df)
        } else {
            f64::from(value == 0.0)
        };
        Interval { value, half: stats::t_quantile(self.df) * error, p_value }
    }
}

/// Arithmetic mean of the runs' values; NaN of none.
pub(crate) fn mean(runs: &[Cluster]) -> f64 {
    runs.iter().map(|run| run.value).sum::<f64>() / runs.len() as f64
}

/// Standard deviation of the middle 90 % of the values. Single outliers don't count, a second mode
/// does. Zero below two data.
pub(crate) fn scatter(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = (0.05 * sorted.len() as f64) as usize;
    deviation(&sorted[cut..sorted.len() - cut])
}

/// Standard deviation of the runs' values; zero below two.
pub(crate) fn between(runs: &[Cluster]) -> f64 {
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    deviation(&values)
}

fn deviation(values: &[f64]) -> f64 {
    let centre = stats::mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    if values.len() < 2 { 0.0 } else { (squares / (values.len() as f64 - 1.0)).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn a_trimmed_mean_and_its_variance_are_those_worked_out_by_hand() {
        // n = 10, two cut at each end: 3..=8 is kept; winsorized to 3 3 3 4 5 6 7 8 8 8, whose
        // squares about 5.5 sum to 42.5.
        let mut data: Vec<f64> = (1..=10).map(f64::from).collect();
        data[9] = 1e6;
        let run = Cluster::of(&data).unwrap();
        near(run.value, 5.5, 1e-12);
        near(run.variance.unwrap(), 42.5 / 30.0, 1e-12);
        assert_eq!(Cluster::of(&[2.0]), Some(Cluster { value: 2.0, variance: None }));
        assert_eq!(Cluster::of(&[]), None);
    }

    #[test]
    fn one_run_a_side_rests_on_the_assumed_drift() {
        let run = |value| Cluster { value, variance: Some(0.0) };
        let spread = Spread::of(&[run(0.0)], &[run(0.1)], 0.02).unwrap();
        let difference = spread.difference(&[run(0.0)], &[run(0.1)]).unwrap();
        near(difference.value, 0.1, 1e-12);
        // t(4) is 2.776.
        near(difference.half, 2.776_445 * 0.02 * 2.0_f64.sqrt(), 1e-6);
        assert_eq!(spread.difference(&[run(0.0)], &[]), None);
    }

    #[test]
    fn many_runs_outweigh_the_assumed_drift() {
        // Runs at -0.1 and +0.1 in turns: a standard deviation of 0.1, five times what is assumed.
        let side: Vec<Cluster> = (0..100)
            .map(|i| Cluster { value: if i % 2 == 0 { -0.1 } else { 0.1 }, variance: Some(0.0) })
            .collect();
        let spread = Spread::of(&side, &side, 0.02).unwrap();
        near(spread.variance.sqrt(), 0.1, 0.003);
    }

    #[test]
    fn without_a_variance_there_is_no_interval() {
        let run = Cluster { value: 1.0, variance: None };
        assert_eq!(Spread::of(&[run], &[run], 0.02), None);
    }

    #[test]
    fn two_modes_scatter_and_a_single_outlier_does_not() {
        let mut data = vec![0.0; 40];
        data[0] = 5.0;
        assert_eq!(scatter(&data), 0.0);
        data[..20].fill(0.4);
        // Half at 0, half at 0.4: 0.2, and the root of 36/35.
        near(scatter(&data), 0.2 * (36.0_f64 / 35.0).sqrt(), 1e-12);
        assert_eq!(scatter(&[]), 0.0);
    }
}
