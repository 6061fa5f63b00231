//! Statistics: Student's t, regressions, false discovery rate.

mod distributions;

pub(crate) use distributions::{ln_gamma, normal_quantile};

use distributions::{fisher_tail, student_tail, student_upper};

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// The two-sided 95 % quantile of Student's t with `df` degrees of freedom.
pub(crate) fn t_quantile(df: f64) -> f64 {
    if df > 0.0 { student_upper((1.0 - CONFIDENCE) / 2.0, df) } else { f64::INFINITY }
}

/// Two-sided p-value of `t` under Student's t with `df` degrees of freedom.
pub(crate) fn p_value(t: f64, df: f64) -> f64 {
    if df > 0.0 { 2.0 * student_tail(t.abs(), df) } else { 1.0 }
}

/// Two-sided p-value of an estimate with this standard error: of no effect.
pub(crate) fn p_of(estimate: f64, error: f64, df: f64) -> f64 {
    if error > 0.0 {
        p_value(estimate / error, df)
    } else if estimate != 0.0 {
        0.0
    } else {
        1.0
    }
}

/// p-value of a ratio of two variances that are alike, of which the upper is known from `above`
/// degrees of freedom and the lower from `below`: of one that is no larger.
pub(crate) fn p_of_ratio(ratio: f64, above: f64, below: f64) -> f64 {
    let is_known = |df: f64| df.is_finite() && df > 0.0;
    if is_known(above) && is_known(below) { fisher_tail(ratio, above, below) } else { 1.0 }
}

/// Arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Slope of the regression of y on x through the origin. Zero when all x are zero.
pub(crate) fn slope_through_origin(data: &[(f64, f64)]) -> f64 {
    let (xy, xx) = data.iter().fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
    if xx == 0.0 { 0.0 } else { xy / xx }
}

/// R2 of the regression through the origin: the share of the sum of squares about zero (not about
/// the mean, which a line through the origin does not estimate) that the line explains. One when
/// there is nothing to explain. Data have their weights.
pub(crate) fn r2_through_origin(data: &[((f64, f64), f64)], slope: f64) -> f64 {
    let total: f64 = data.iter().map(|((_, y), w)| w * y * y).sum();
    let residual: f64 = data.iter().map(|((x, y), w)| w * (y - slope * x).powi(2)).sum();
    if total == 0.0 { 1.0 } else { 1.0 - residual / total }
}

/// Which of the p-values are discoveries at this false discovery rate (Benjamini & Hochberg 1995).
pub(crate) fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let bound = |rank: usize| rate * (rank + 1) as f64 / p_values.len() as f64;
    let last = (0..order.len()).rev().find(|&rank| p_values[order[rank]] <= bound(rank));
    let mut found = vec![false; p_values.len()];
    if let Some(last) = last {
        for &i in &order[..=last] {
            found[i] = true;
        }
    }
    found
}

/// A regression through the origin, as the classic API tells an impact.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Regression {
    /// Change of y for one of x.
    pub slope: f64,
    /// y at x = 0: zero, since the line goes through the origin.
    pub intercept: f64,
    /// Share of the sum of squares of y, about zero, that the line explains, 0 to 1.
    pub r_squared: f64,
    /// Standard error of the slope.
    pub slope_std_error: f64,
    /// Lower end of the slope's 95 % interval.
    pub slope_ci_lower: f64,
    /// Upper end of the slope's 95 % interval.
    pub slope_ci_upper: f64,
    /// Two-sided p-value of a slope of zero.
    pub p_value: f64,
    /// Number of data.
    pub n: usize,
}

impl Regression {
    /// Whether the slope's 95 % interval leaves out zero.
    pub fn is_significant(&self) -> bool {
        self.slope_ci_lower > 0.0 || self.slope_ci_upper < 0.0
    }

    /// Whether the line explains more than half of the sum of squares.
    pub fn has_good_fit(&self) -> bool {
        self.r_squared > 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn regression_through_the_origin() {
        let data = [(1.0, 1.0), (2.0, 3.0)];
        let slope = slope_through_origin(&data);
        near(slope, 1.4, 1e-12);
        let alike = data.map(|datum| (datum, 1.0));
        near(r2_through_origin(&alike, slope), 1.0 - (0.16 + 0.04) / 10.0, 1e-12);
        assert_eq!(slope_through_origin(&[(0.0, 5.0)]), 0.0);
    }

    #[test]
    fn a_weight_of_two_is_as_twice_the_datum() {
        let (a, b) = ((1.0, 1.0), (2.0, 3.0));
        let twice = [(a, 1.0), (b, 1.0), (b, 1.0)];
        near(r2_through_origin(&[(a, 1.0), (b, 2.0)], 1.4), r2_through_origin(&twice, 1.4), 1e-12);
    }

    #[test]
    fn discoveries_follow_benjamini_and_hochberg() {
        // The example of their paper (section 3.2): 4 of 15 at 5 %.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        assert_eq!(discoveries(&p, 0.05).iter().filter(|&&found| found).count(), 4);
        // A step-up procedure: the second is found because the third is.
        assert_eq!(discoveries(&[0.04, 0.041, 0.001], 0.05), [true, true, true]);
        assert_eq!(discoveries(&[], 0.05), Vec::<bool>::new());
    }
}
