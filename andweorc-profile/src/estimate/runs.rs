//! Several runs as one estimate: each run is one value, however many experiments it has.
//!
//! Two runs of one program differ by more than their experiments scatter (other addresses, another
//! mode of the scheduler, a warmer machine). Experiments that are pooled as if they were of one run
//! make intervals too narrow. So each run has its own estimate with its own error, and these are
//! combined by **random effects**: runs are draws that scatter by tau about the effect that is
//! wanted. Tau is by Paule & Mandel (1982), which takes it for as large as makes the runs differ by
//! what they should. The interval is that of Hartung, Knapp, Sidik and Jonkman with its factor at
//! least 1 (Röver et al. 2015, BMC Med. Res. Methodol. 15:99): with this tau the factor is 1
//! whenever tau is above zero, and below 1 only where it is zero, so that it is always 1 here.
//! Degrees of freedom are one less than there are runs: two runs tell little of how runs differ.

use crate::estimate::scatter::Variance;
use crate::stats;

/// An effect as one run tells it, as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Said {
    /// Index of the run.
    pub(crate) run: usize,
    /// Its estimate.
    pub(crate) value: f64,
    /// Variance of that estimate as far as the run itself tells, and from how much it is known.
    pub(crate) variance: Variance,
}

/// An effect as runs tell it together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Combined {
    /// The estimate.
    pub(crate) value: f64,
    /// Its standard error.
    pub(crate) error: f64,
    /// Degrees of freedom of the error.
    pub(crate) df: f64,
    /// Standard deviation between runs; none of one run.
    pub(crate) tau: Option<f64>,
}

impl Combined {
    /// Half the width of its 95 % interval.
    pub(crate) fn half(&self) -> f64 {
        stats::t_quantile(self.df) * self.error
    }

    /// Two-sided p-value of zero.
    pub(crate) fn p_value(&self) -> f64 {
        stats::p_of(self.value, self.error, self.df)
    }
}

/// A variance of nothing has no weight: no estimate is known better than to a billionth.
const LEAST: f64 = 1e-18;

/// Halvings of the range in which tau is searched.
const HALVINGS: usize = 60;

/// Runs that do not differ are said to at most so often, for each target.
const DIFFER: f64 = 0.01;

/// At most so often one of the runs of a report is called odd where none is.
const ODD: f64 = 0.05;

/// The effect as these runs tell it together. `None` of no run.
pub(crate) fn combine(runs: &[Said]) -> Option<Combined> {
    if let [one] = runs {
        let Variance { of_one, df } = one.variance;
        return Some(Combined { value: one.value, error: of_one.sqrt(), df, tau: None });
    }
    let df = runs.len().checked_sub(1)? as f64;
    let between = paule_mandel(runs);
    let (value, weight) = weighted_mean(runs, between);
    Some(Combined { value, error: weight.powf(-0.5), df, tau: Some(between.sqrt()) })
}

/// Whether runs differ by more than chance (Cochran's Q with variances that are estimates: Welch
/// 1951, "On the comparison of several mean values").
pub(crate) fn differ(runs: &[Said]) -> bool {
    let count = runs.len() as f64;
    let q = squares(runs, 0.0);
    // Runs of which none scatters may differ by the last digit.
    if count < 2.0 || q < 1e-6 {
        return false;
    }
    let (_, weights) = weighted_mean(runs, 0.0);
    let unknown = |one: &Said| (1.0 - weight(one, 0.0) / weights).powi(2) / one.variance.df;
    let unknown: f64 = runs.iter().map(unknown).sum();
    let squares = count.powi(2) - 1.0;
    let expected = 1.0 + 2.0 * (count - 2.0) / squares * unknown;
    let ratio = q / (count - 1.0) / expected;
    stats::p_of_ratio(ratio, count - 1.0, squares / (3.0 * unknown)) < DIFFER
}

/// The runs that lie outside of what all others let expect, by a rule that names a run of one in
/// twenty reports falsely at most. `targets` is how many targets are asked about.
pub(crate) fn odd(runs: &[Said], targets: usize) -> Vec<usize> {
    let level = ODD / (runs.len() * targets.max(1)) as f64;
    let is_odd = |&index: &usize| {
        let mut others = runs.to_vec();
        let one = others.remove(index);
        let Some(Combined { value, error, df, tau: Some(tau) }) = combine(&others) else {
            return false;
        };
        let expected = error.powi(2) + tau.powi(2) + one.variance.of_one;
        let df = df.min(one.variance.df);
        stats::p_of(one.value - value, expected.max(LEAST).sqrt(), df) < level
    };
    (0..runs.len()).filter(is_odd).map(|index| runs[index].run).collect()
}

/// The variance between runs with which they scatter about their mean by what they should.
fn paule_mandel(runs: &[Said]) -> f64 {
    let df = runs.len() as f64 - 1.0;
    if squares(runs, 0.0) <= df {
        return 0.0;
    }
    let centre = runs.iter().map(|one| one.value).sum::<f64>() / runs.len() as f64;
    let largest = runs.iter().map(|one| (one.value - centre).powi(2)).sum::<f64>() / df;
    let (mut low, mut high) = (0.0, largest);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if squares(runs, middle) > df { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The sum of weighted squares about the weighted mean.
fn squares(runs: &[Said], between: f64) -> f64 {
    let (centre, _) = weighted_mean(runs, between);
    runs.iter().map(|one| weight(one, between) * (one.value - centre).powi(2)).sum()
}

/// The weighted mean, and the sum of the weights.
fn weighted_mean(runs: &[Said], between: f64) -> (f64, f64) {
    let (sum, weights) = runs.iter().fold((0.0, 0.0), |(sum, weights), one| {
        let weight = weight(one, between);
        (sum + weight * one.value, weights + weight)
    });
    (sum / weights, weights)
}

fn weight(one: &Said, between: f64) -> f64 {
    1.0 / (one.variance.of_one + between).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(values: &[(f64, f64)]) -> Vec<Said> {
        let one = |(run, &(value, of_one)): (usize, &(f64, f64))| Said {
            run,
            value,
            variance: Variance { of_one, df: 30.0 },
        };
        values.iter().enumerate().map(one).collect()
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }

    #[test]
    fn one_run_is_as_it_is() {
        let one = combine(&said(&[(0.2, 0.04)])).unwrap();
        assert_eq!(one, Combined { value: 0.2, error: 0.2, df: 30.0, tau: None });
        assert_eq!(combine(&[]), None);
    }

    #[test]
    fn runs_of_one_error_are_combined_as_by_hand() {
        // Mean 2, variance 4 of the values; 1 of it is their errors'.
        let three = combine(&said(&[(0.0, 1.0), (2.0, 1.0), (4.0, 1.0)])).unwrap();
        near(three.value, 2.0);
        near(three.tau.unwrap(), 3.0_f64.sqrt());
        near(three.error, (4.0_f64 / 3.0).sqrt());
        near(three.df, 2.0);
    }

    #[test]
    fn runs_that_are_alike_by_chance_are_no_surer_than_their_errors() {
        let alike = combine(&said(&[(1.0, 1.0), (1.0, 1.0), (1.0, 4.0)])).unwrap();
        near(alike.tau.unwrap(), 0.0);
        near(alike.error, (1.0_f64 / 2.25).sqrt());
    }

    #[test]
    fn runs_without_any_error_differ_or_not() {
        let same = combine(&said(&[(1.0, 0.0), (1.0, 0.0)])).unwrap();
        assert!(same.error < 1e-8 && same.tau == Some(0.0), "{same:?}");
        assert!(!differ(&said(&[(1.0, 0.0), (1.0, 0.0)])));
        assert!(differ(&said(&[(1.0, 0.0), (2.0, 0.0)])));
    }

    #[test]
    fn a_run_far_from_all_others_is_odd() {
        let mut values: Vec<(f64, f64)> = (0..12).map(|i| (f64::from(i % 4), 0.5)).collect();
        assert_eq!(odd(&said(&values), 3), Vec::<usize>::new());
        values[7].0 = 30.0;
        assert_eq!(odd(&said(&values), 3), [7]);
        assert_eq!(odd(&said(&values[..2]), 1), Vec::<usize>::new(), "two can't tell");
    }
}
