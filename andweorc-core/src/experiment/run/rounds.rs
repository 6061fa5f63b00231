//! Experiments of a fixed number and length, as the classic API holds them.

use crate::experiment::hold::Phases;
use crate::time::Nanos;
use std::time::Duration;

/// Queues settle before an experiment is measured, and back after it.
const WARMUP: Duration = Duration::from_millis(50);
const COOLDOWN: Duration = Duration::from_millis(20);

/// How long points and targets are waited for.
const PATIENCE: Nanos = Nanos::from_millis(1000);

/// Rounds in the place of what the estimates would choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// Length of the measured stretch.
    pub(crate) measure: Duration,
    /// Baselines between any two experiments.
    pub(crate) baselines: usize,
    /// How often each target is tested at each speedup, disturbed or not.
    pub(crate) passes: u32,
    /// How many targets are tested at most.
    pub(crate) max_targets: usize,
}

impl Rounds {
    pub(super) fn phases(&self) -> Phases {
        Phases { warmup: WARMUP, measure: self.measure, cooldown: COOLDOWN }
    }

    /// Whether a program in which nothing to test was seen for so long is given up.
    pub(super) fn is_over(&self, observed: Nanos) -> bool {
        observed >= PATIENCE
    }
}
