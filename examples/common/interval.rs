//! Means and their intervals.

/// The mean and half the width of its 95 % interval.
pub(crate) fn mean(of: &[f64]) -> (f64, f64) {
    let n = of.len() as f64;
    let mean = of.iter().sum::<f64>() / n;
    let variance = of.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // The 97.5 % point of Student's distribution, by the first terms of its expansion around the
    // normal one (within 2 % from 4 on).
    let free = n - 1.0;
    let t = 1.96 + 2.37 / free + 2.82 / free.powi(2);
    (mean, t * (variance / n).sqrt())
}
