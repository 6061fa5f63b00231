//! Experiments on a target, compared with the baselines beside them.

use crate::estimate::percent;

/// Experiments on a target at one speedup: one, or several that are taken together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Observation {
    /// Index of the run among those that are analysed together.
    pub(crate) run: usize,
    /// The speedup, a fraction.
    pub(crate) speedup: f64,
    /// How many experiments it is; all means weigh each alike.
    pub(crate) n: usize,
    /// Mean logarithm of the metric over the mean of the neighbouring baselines' metrics.
    pub(crate) log_ratio: f64,
    /// Real seconds that they took, with their share of the baselines.
    pub(crate) seconds: f64,
    /// How many of them share a baseline with one of the same target and speedup before.
    pub(crate) shared: usize,
    /// The mean of their reaches: by how much delays alone let a throughput rise, as a logarithm.
    pub(crate) reach: f64,
}

impl Observation {
    /// Returns a datum of the impact's regression: speedup, effect in %.
    pub(crate) fn datum(&self) -> (f64, f64) {
        (self.speedup, percent(self.log_ratio))
    }

    /// Takes in more of the same speedup.
    pub(super) fn add(&mut self, other: &Observation) {
        let (a, b) = (self.n as f64, other.n as f64);
        self.log_ratio = (self.log_ratio * a + other.log_ratio * b) / (a + b);
        self.reach = (self.reach * a + other.reach * b) / (a + b);
        self.seconds += other.seconds;
        self.n += other.n;
        self.shared += other.shared;
    }
}
