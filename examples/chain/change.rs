//! Changes of figures, in percent.

use crate::interval::mean;
use andweorc_profile::estimate::Effect;
use std::fmt;

/// A change in percent, with its 95 % interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) percent: f64,
    low: f64,
    high: f64,
}

impl Change {
    /// Mean of logarithms of ratios.
    pub(crate) fn of(logs: &[f64]) -> Change {
        let (mean, margin) = mean(logs);
        let percent = |log: f64| 100.0 * log.exp_m1();
        Change { percent: percent(mean), low: percent(mean - margin), high: percent(mean + margin) }
    }

    /// A predicted change; `None` where too few experiments tell how it scatters.
    pub(crate) fn predicted(effect: &Effect) -> Option<Change> {
        let (low, high) = effect.ci_low.zip(effect.ci_high)?;
        Some(Change { percent: effect.effect_pct, low, high })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { percent, low, high } = self;
        f.pad(&format!("{percent:+.1} % [{low:+.1}, {high:+.1}]"))
    }
}

/// Changes of the gateway's figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changes {
    pub(crate) throughput: Change,
    pub(crate) p50: Change,
    pub(crate) p99: Change,
}
