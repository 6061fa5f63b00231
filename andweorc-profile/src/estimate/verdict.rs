//! Verdicts, and which intervals say something.

use serde::Serialize;
use std::fmt;

/// The verdict on a target, by the 95 % interval of its effect at the largest speedup that was
/// tested, turned so that more is better. One experiment at that speedup makes no verdict, nor does
/// a throughput under a load that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The interval is above one point. Of many targets it also stands out from what chance would
    /// show.
    Matters,
    /// The interval is below minus one point: faster, it lowers the throughput, or raises the
    /// latency.
    Hurts,
    /// By how repeats scatter the effect is within one point of zero. What the experiments
    /// [cost](crate::estimate::Effect::overhead_pct) the program is not in that: the interval may
    /// be wider.
    Nothing,
    /// Neither of the three above is known yet.
    Inconclusive {
        /// About how many more seconds of experiments on it would tell; `None` when even that is
        /// unknown, and of several runs, where more runs would tell.
        more_seconds: Option<f64>,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Matters => "matters",
            Verdict::Hurts => "hurts",
            Verdict::Nothing => "nothing",
            Verdict::Inconclusive { .. } => "inconclusive",
        })
    }
}

/// Bound within which an effect counts as none, points.
pub(crate) const NOTHING: f64 = 1.0;

/// Whether an interval says what there is: nothing, or an effect of more than a point.
pub(crate) fn says(low: f64, high: f64) -> bool {
    is_nothing(low, high) || is_something(low, high)
}

pub(crate) fn is_nothing(low: f64, high: f64) -> bool {
    low >= -NOTHING && high <= NOTHING
}

pub(crate) fn is_something(low: f64, high: f64) -> bool {
    low > NOTHING || high < -NOTHING
}
