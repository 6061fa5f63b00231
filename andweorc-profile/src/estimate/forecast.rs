//! How much longer a target must be tested until it has a verdict.
//!
//! Not from its present effect alone: half of the way to a verdict is that the effect comes nearer
//! to the truth, and a first effect is most often farther from zero than the truth is; nor from its
//! error alone, which is an estimate too. So the forecast goes by what the truth may be, given the
//! effect, its error and a belief in how effects are spread. For each of these truths it is known
//! when the interval will be narrow enough, with the luck that further experiments may have. Only
//! where most truths agree there is a forecast.

use crate::estimate::verdict::says;
use crate::stats::normal_quantile;
use std::array;
use std::sync::LazyLock;

/// All that is known of the effect that a target is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    /// The effect, in points.
    pub(crate) effect: f64,
    /// Half the width of its interval.
    pub(crate) half: f64,
    /// Degrees of freedom of the interval.
    pub(crate) df: f64,
    /// Experiments that it is from.
    pub(crate) n: usize,
}

/// Beliefs in how effects are spread about zero: how many of ten, with which standard deviation in
/// points. Most parts of a program change next to nothing.
const BELIEFS: [(f64, f64); 2] = [(7.0, 0.3), (3.0, 8.0)];

/// Truths that are looked at of each belief.
const TRUTHS: usize = 20;

/// So many truths, of which one is as likely as another, in standard deviations from their middle.
static STANDARD: LazyLock<[f64; TRUTHS]> =
    LazyLock::new(|| array::from_fn(|i| normal_quantile((i as f64 + 0.5) / TRUTHS as f64)));

/// By how many standard deviations the scatter of experiments, which is an estimate too, may be
/// off: the middle of three equal parts.
const SCATTERS: [f64; 3] = [-0.967, 0.0, 0.967];

/// By how many standard errors further experiments may be off. It is less than the middle of five
/// equal parts, since luck changes from look to look and the first one that tells ends it.
const LUCKS: [f64; 5] = [-0.85, -0.35, 0.0, 0.35, 0.85];

/// Times are looked at in steps of so much, up to so many times the experiments that there are.
const STEP: f64 = 1.1;
const FARTHEST: f64 = 300.0;

/// A forecast is right within this factor, and is made where so much of the belief is within.
const FACTOR: f64 = 2.0;
const SURE: f64 = 0.8;

/// How many experiments there will be when the target has a verdict; `None` where that can't be
/// told within a factor of two.
pub(crate) fn experiments(judged: Judged) -> Option<f64> {
    let error = judged.half / quantile(judged.df);
    if !(error.is_finite() && error > 0.0 && judged.effect.is_finite()) {
        return None;
    }
    let mut all: Vec<(f64, f64)> = BELIEFS
        .into_iter()
        .flat_map(|(weight, spread)| {
            let variance = spread.powi(2) + error.powi(2);
            let likely = weight * (-judged.effect.powi(2) / variance / 2.0).exp() / variance.sqrt();
            let centre = judged.effect * spread.powi(2) / variance;
            let width = spread * error / variance.sqrt();
            let each = (0..TRUTHS).flat_map(|i| SCATTERS.map(|off| (i, off)));
            each.map(move |(i, off)| {
                let error = error * really(off, judged.df);
                let truth = centre + width * STANDARD[i];
                let mut all = LUCKS.map(|luck| until(truth, luck, judged, error));
                all.sort_by(f64::total_cmp);
                (all[LUCKS.len() / 2], likely)
            })
        })
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let whole: f64 = all.iter().map(|(_, weight)| weight).sum();
    let mut below = 0.0;
    let (middle, _) = *all.iter().find(|(_, weight)| {
        below += weight;
        below >= whole / 2.0
    })?;
    let n = judged.n as f64;
    let more = |experiments: f64| experiments - n;
    let near = |experiments: f64| {
        let times = more(experiments) / more(middle);
        (1.0 / FACTOR..=FACTOR).contains(&times)
    };
    let agree: f64 = all.iter().filter(|it| near(it.0)).map(|(_, weight)| weight).sum();
    (middle.is_finite() && agree >= SURE * whole).then_some(middle)
}

/// With how many experiments an interval would say something if this were the truth, and further
/// experiments were off it by so many of their standard errors; infinite if it is very many.
fn until(truth: f64, luck: f64, judged: Judged, error: f64) -> f64 {
    let n = judged.n as f64;
    let mut times = (n + 1.0).max(2.0) / n;
    while times < FARTHEST {
        let off = luck * error * (times - 1.0).sqrt() / times;
        let effect = truth + (judged.effect - truth) / times + off;
        let half = error / times.sqrt() * quantile(judged.df + (times - 1.0) * n);
        if says(effect - half, effect + half) {
            return times * n;
        }
        times *= STEP;
    }
    f64::INFINITY
}

/// By what factor a standard deviation that is known from so many degrees of freedom may be off, if
/// it is by so many of its own (Wilson & Hilferty).
fn really(off: f64, df: f64) -> f64 {
    let part = 2.0 / 9.0 / df;
    (1.0 - part - off * part.sqrt()).max(0.1).powf(-1.5)
}

/// The two-sided 95 % quantile of Student's t, near enough and cheap (Cornish & Fisher).
fn quantile(df: f64) -> f64 {
    1.96 + 2.372 / df + 2.823 / df.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(effect: f64, half: f64) -> Option<f64> {
        experiments(Judged { effect, half, df: 200.0, n: 8 })
    }

    #[test]
    fn forecast_for_zero_effect_grows_with_interval_width() {
        // Zero within 1.5 points: it takes more than 1.5 squared times as many.
        assert!((18.0..40.0).contains(&of(0.0, 1.5).unwrap()), "{:?}", of(0.0, 1.5));
        assert!(of(0.0, 3.0).unwrap() > 2.5 * of(0.0, 1.5).unwrap());
    }

    #[test]
    fn where_the_truth_may_be_anything_there_is_no_forecast() {
        assert_eq!(of(6.0, 40.0), None);
        assert_eq!(of(1.0, 0.2), None, "one point is neither nothing nor more");
    }
}
