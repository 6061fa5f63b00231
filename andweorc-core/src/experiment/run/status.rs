//! State of a run, for a progress bar.

use std::time::Duration;

/// State of a run, for a progress bar.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Phase of the run: `observing`, `experimenting`, `done`.
    pub phase: &'static str,
    /// The experiment that is held, in words: ``stock 25 % faster`` or `baseline`.
    pub experiment: Option<String>,
    /// Experiments held so far, baselines included.
    pub held: u32,
    /// Time since the run began.
    pub elapsed: Duration,
    /// Time that it may take.
    pub budget: Duration,
}

impl Status {
    /// The state of a run that begins.
    pub(crate) fn new(budget: Duration) -> Status {
        Status { phase: "observing", experiment: None, held: 0, elapsed: Duration::ZERO, budget }
    }
}
