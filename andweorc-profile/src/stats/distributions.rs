//! Distributions that estimates need: normal, Student's t, and Fisher's F.
//!
//! Gamma and error functions are those of libm. A tail of t or F is an incomplete beta function,
//! and a quantile is found by Newton's method from the middle of its distribution: the upper tail
//! is convex from there on, so that each step goes towards the quantile and none beyond it.

use std::f64::consts::{PI, SQRT_2};

/// More degrees of freedom than that, infinitely many too, are taken to be so many: t is as good as
/// normal by then.
const MANY: f64 = 1e7;

/// Steps that a quantile may take. Some ten do for those of an interval.
const STEPS: usize = 1000;

/// Logarithm of the gamma function, of a number above zero.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Quantile of the standard normal distribution, for a probability between 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let tail = |x: f64| libm::erfc(x / SQRT_2) / 2.0;
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * PI).sqrt();
    if p < 0.5 { -upper(p, tail, density) } else { upper(1.0 - p, tail, density) }
}

/// Probability of more than `t`, which is not negative, under Student's t with `df` degrees of
/// freedom.
pub(crate) fn student_tail(t: f64, df: f64) -> f64 {
    let df = df.min(MANY);
    beta_tail(t * t / df, df / 2.0, 0.5) / 2.0
}

/// The value that Student's t with `df` degrees of freedom exceeds with this probability, which is
/// between 0 and a half.
pub(crate) fn student_upper(p: f64, df: f64) -> f64 {
    let df = df.min(MANY);
    let scale = (ln_gamma(df / 2.0 + 0.5) - ln_gamma(df / 2.0)).exp() / (df * PI).sqrt();
    let density = |t: f64| scale * (-(df + 1.0) / 2.0 * (t * t / df).ln_1p()).exp();
    upper(p, |t| student_tail(t, df), density)
}

/// Probability of more than `ratio`, which is not negative, under Fisher's F with these degrees of
/// freedom.
pub(crate) fn fisher_tail(ratio: f64, above: f64, below: f64) -> f64 {
    beta_tail(above * ratio / below, below / 2.0, above / 2.0)
}

/// The value from zero on that is exceeded with probability `p`, of at most a half, by a symmetric
/// distribution with this upper tail and density.
fn upper(p: f64, tail: impl Fn(f64) -> f64, density: impl Fn(f64) -> f64) -> f64 {
    let mut x = 0.0;
    for _ in 0..STEPS {
        let next = x + (tail(x) - p) / density(x);
        // Rounding alone makes a step go back.
        if next <= x {
            break;
        }
        x = next;
    }
    x
}

/// The regularized incomplete beta function of x = 1 / (1 + `odds`). So given, neither x nor 1 - x
/// loses digits.
fn beta_tail(odds: f64, a: f64, b: f64) -> f64 {
    let (x, rest) = (1.0 / (1.0 + odds), 1.0 / (1.0 + 1.0 / odds));
    if x <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return 1.0;
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * rest.ln();
    // The fraction converges fast on this side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front.exp() / a / beta_fraction(x, a, b)
    } else {
        1.0 - front.exp() / b / beta_fraction(rest, b, a)
    }
}

/// Denominator of the continued fraction of the incomplete beta function (Abramowitz & Stegun
/// 26.5.8), by Lentz's method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    // Stands in for a denominator of zero.
    const TINY: f64 = 1e-300;
    const TERMS: u32 = 100_000;
    let term = |n: u32| {
        let m = f64::from(n / 2);
        if n.is_multiple_of(2) {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        }
    };
    let or_tiny = |value: f64| if value == 0.0 { TINY } else { value };
    let (mut value, mut above, mut below) = (1.0, 1.0, 0.0);
    for n in 1..TERMS {
        let term = term(n);
        below = 1.0 / or_tiny(1.0 + term * below);
        above = or_tiny(1.0 + term / above);
        let factor = above * below;
        value *= factor;
        if (factor - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

    /// Degrees of freedom that occur: few experiments of one run, many of some, fractions between.
    const DF: [f64; 12] =
        [0.5, 1.0, 1.7, 2.0, 3.0, 4.5, 10.0, 29.3, 100.0, 777.7, 1_000.0, 10_000.0];

    fn near(ours: f64, theirs: f64, of: impl std::fmt::Debug) {
        let off = (ours - theirs).abs() / theirs.abs().max(1e-300);
        assert!(off < 1e-10, "{of:?}: {ours} is not {theirs}, off by {off:e}");
    }

    #[test]
    fn tails_are_those_of_statrs() {
        for df in DF {
            let student = StudentsT::new(0.0, 1.0, df).unwrap();
            for t in [0.01, 0.3, 1.0, 1.96, 2.5, 4.0, 12.7, 60.0] {
                near(student_tail(t, df), student.sf(t), (t, df));
            }
            assert_eq!(student_tail(0.0, df), 0.5);
            assert_eq!(student_tail(f64::INFINITY, df), 0.0);
            for below in DF {
                let fisher = FisherSnedecor::new(df, below).unwrap();
                for ratio in [0.01, 0.4, 1.0, 1.3, 3.0, 20.0] {
                    let (ours, theirs) = (fisher_tail(ratio, df, below), fisher.sf(ratio));
                    // Below that nobody can tell the difference, in verdicts at 1 in 1000.
                    if theirs > 1e-12 {
                        near(ours, theirs, (ratio, df, below));
                    }
                }
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_statrs() {
        let normal = Normal::new(0.0, 1.0).unwrap();
        for p in [1e-9, 0.001, 0.025, 0.2, 0.475, 0.5, 0.525, 0.975, 0.999] {
            let (ours, theirs) = (normal_quantile(p), normal.inverse_cdf(p));
            assert!((ours - theirs).abs() < 1e-10, "{p}: {ours} is not {theirs}");
        }
        for df in DF {
            let student = StudentsT::new(0.0, 1.0, df).unwrap();
            for p in [0.4, 0.1, 0.025, 0.001] {
                let t = student_upper(p, df);
                near(student.sf(t), p, (p, df));
                // statrs stops its search for a quantile sooner than at the last digit.
                let off = t / student.inverse_cdf(1.0 - p) - 1.0;
                assert!(off.abs() < 1e-7, "{p}, {df}: off by {off:e}");
            }
        }
    }

    #[test]
    fn with_infinitely_many_degrees_of_freedom_t_is_normal() {
        let t = student_upper(0.025, f64::INFINITY);
        assert!((t - normal_quantile(0.975)).abs() < 1e-6, "{t}");
        assert!((student_tail(t, f64::INFINITY) - 0.025).abs() < 1e-8);
    }

    #[test]
    fn gamma_is_that_of_statrs() {
        for x in [0.25, 0.5, 1.5, 2.5, 7.0, 50.5, 1_000.25] {
            near(ln_gamma(x), statrs::function::gamma::ln_gamma(x), x);
        }
    }
}
