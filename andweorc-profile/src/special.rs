//! Special functions, as far as the [statistics](crate::stats) need them.
//!
//! They are here and not of a library, since a profiled program is built with them, and libraries
//! bring five crates more. A test compares them with one.

use std::f64::consts::PI;

/// Relative change from which on a series has converged.
const EPSILON: f64 = 1e-15;

/// Terms of a series or fraction at most. What is asked for here takes tens.
const TERMS: u32 = 10_000;

/// In the place of a zero in a denominator (Lentz's method).
const TINY: f64 = 1e-300;

/// The 0.975 quantile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;

/// Degrees of freedom from which on a quantile of Student's t is that of its expansion.
const MANY: f64 = 1e4;

/// Logarithm of the gamma function of a positive number (Lanczos, with the coefficients of Godfrey
/// for g = 7).
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Euler's reflection.
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let terms = (1..).zip(COEFFICIENTS).map(|(i, c)| c / (x + f64::from(i)));
    let sum = 0.999_999_999_999_809_9 + terms.sum::<f64>();
    let t = x + 7.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularised incomplete beta function of `x`, where `y` is 1 - `x`: both, since one of them
/// may be too small to be told from the other.
pub(crate) fn beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 || y <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * y.ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, y) / b
    }
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let off_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / off_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in (1..TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / off_zero(1.0 + term * d);
            c = off_zero(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        // Not a number stays one.
        if (change - 1.0).abs() <= EPSILON || change.is_nan() {
            break;
        }
    }
    fraction
}

/// Probability that a normal variable is above `x`.
pub(crate) fn normal_above(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - normal_above(-x);
    }
    let density = (-x * x / 2.0).exp() / (2.0 * PI).sqrt();
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in (1..TERMS).map(f64::from) {
            term *= x * x / (2.0 * n + 1.0);
            sum += term;
            if term <= EPSILON * sum {
                break;
            }
        }
        return 0.5 - density * sum;
    }
    // Laplace's fraction, from its end.
    density / (1..200).rev().map(f64::from).fold(x, |below, n| x + n / below)
}

/// The quantile of the normal distribution at `p`, which is no nearer to 0 and 1 than 1e-9.
///
/// By Newton's method on the logarithm of the tail, which is concave.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p);
    let mut x: f64 = 0.0;
    for _ in 0..100 {
        let above = normal_above(x);
        let density = (-x * x / 2.0).exp() / (2.0 * PI).sqrt();
        let step = (above / tail).ln() * above / density;
        x += step;
        if step.abs() <= 1e-14 * x.abs() {
            break;
        }
    }
    if p < 0.5 { -x } else { x }
}

/// Probability that Student's t with `df` degrees of freedom is above `t`, which is not negative.
pub(crate) fn student_above(t: f64, df: f64) -> f64 {
    if df.is_infinite() {
        return normal_above(t);
    }
    let square = t * t;
    if square.is_infinite() {
        return 0.0;
    }
    0.5 * beta(df / 2.0, 0.5, df / (df + square), square / (df + square))
}

/// The 0.975 quantile of Student's t with `df` degrees of freedom.
///
/// By Newton's method on logarithms: that of the tail is concave in that of t, so that from the
/// normal quantile, which is too small, the first step is too large and the rest come down to it.
pub(crate) fn student_quantile(df: f64) -> f64 {
    let z = NORMAL_QUANTILE;
    // Abramowitz & Stegun 26.7.5.
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    if df >= MANY {
        return z + first / df + second / (df * df);
    }
    let scale = ln_gamma((df + 1.0) / 2.0) - ln_gamma(df / 2.0) - 0.5 * (df * PI).ln();
    let mut t = z;
    for _ in 0..200 {
        let above = student_above(t, df);
        let density = (scale - (df + 1.0) / 2.0 * (t * t / df).ln_1p()).exp();
        let step = (above / 0.025).ln() * above / (t * density);
        t *= step.exp();
        if step.abs() <= 1e-14 {
            break;
        }
    }
    // With next to no degrees of freedom it is larger than any number.
    if t.is_nan() { f64::INFINITY } else { t }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

    /// Logarithms of gamma functions of `df` are rounded by so much, and their difference is as
    /// large as the rest.
    fn rounding(df: f64) -> f64 {
        let df = df.max(2.0);
        1e-10 + 4.0 * f64::EPSILON * df * df.ln()
    }

    fn assert_near(ours: f64, theirs: f64, tolerance: f64, of: &str) {
        let near = (ours - theirs).abs() <= tolerance * theirs.abs() + 1e-13;
        assert!(near, "{of}: {ours} and {theirs}");
    }

    // The library ends its fraction too soon for more.
    const DEGREES: [f64; 13] =
        [0.7, 1.0, 1.3, 2.0, 3.0, 4.5, 7.0, 12.0, 30.0, 99.5, 400.0, 3e3, 2e4];

    #[test]
    fn student_is_that_of_a_library() {
        for df in DEGREES {
            let theirs = StudentsT::new(0.0, 1.0, df).unwrap();
            for t in [0.0, 0.1, 0.7, 1.0, 1.96, 3.0, 8.0, 40.0] {
                let of = format!("t {t}, {df}");
                assert_near(student_above(t, df), theirs.sf(t), rounding(df), &of);
            }
            let back = student_above(student_quantile(df), df);
            assert_near(back, 0.025, rounding(df), &format!("back from the quantile, {df}"));
            let quantile = format!("quantile, {df}");
            assert_near(student_quantile(df), theirs.inverse_cdf(0.975), 1e-9, &quantile);
        }
        let normal = Normal::standard();
        assert_near(student_above(1.3, f64::INFINITY), normal.sf(1.3), 1e-10, "infinite");
        let theirs = normal.inverse_cdf(0.975);
        assert_near(student_quantile(f64::INFINITY), theirs, 1e-10, "infinite");
    }

    #[test]
    fn student_of_few_degrees_is_as_its_closed_form() {
        for t in [1e-9_f64, 1e-6, 1e-3, 0.5, 2.0, 1e4] {
            let (one, two) = (0.5 - t.atan() / PI, 0.5 - t / 2.0 / (2.0 + t * t).sqrt());
            // Far out the closed forms lose digits.
            let tolerance = 1e-12 * t.max(1.0).powi(2).min(1e6);
            assert_near(student_above(t, 1.0), one, tolerance, &format!("one degree, {t}"));
            assert_near(student_above(t, 2.0), two, tolerance, &format!("two degrees, {t}"));
        }
    }

    #[test]
    fn normal_is_that_of_a_library() {
        let theirs = Normal::standard();
        for x in [-6.0, -2.5, -1.0, 0.0, 0.3, 1.0, 2.0, 2.499, 2.5, 2.501, 4.0, 8.0, 30.0] {
            assert_near(normal_above(x), theirs.sf(x), 1e-10, &format!("above {x}"));
        }
        for p in [1e-9, 0.001, 0.025, 0.3, 0.5, 0.75, 0.975, 0.9999] {
            let of = format!("quantile {p}");
            assert_near(normal_quantile(p), theirs.inverse_cdf(p), 1e-10, &of);
        }
    }

    #[test]
    fn very_many_degrees_are_as_symmetry_and_the_normal_want_it() {
        for df in [3e5, 1e6] {
            let of = format!("{df}");
            assert_near(beta(df / 2.0, df / 2.0, 0.5, 0.5), 0.5, rounding(2.0 * df), &of);
            assert_near(student_above(student_quantile(df), df), 0.025, rounding(df), &of);
            assert_near(student_quantile(df), NORMAL_QUANTILE, 3.0 / df, &of);
        }
    }

    #[test]
    fn ratio_of_variances_is_that_of_a_library() {
        for above in DEGREES {
            for below in DEGREES {
                let theirs = FisherSnedecor::new(above, below).unwrap();
                for ratio in [0.0, 0.01, 0.5, 1.0, 1.7, 4.0, 50.0] {
                    let whole = below + above * ratio;
                    let ours = beta(below / 2.0, above / 2.0, below / whole, above * ratio / whole);
                    let of = format!("F {ratio}, {above}, {below}");
                    assert_near(ours, theirs.sf(ratio), rounding(above + below), &of);
                }
            }
        }
    }
}
