//! Experiments: what is held, for how long, in which order.
//!
//! An [`Experimenter`] holds one (target, speedup) at a time. A run ([`crate::session`]) watches
//! the program, chooses points and targets, and holds experiments with a baseline between any two,
//! so that each has a baseline before and after it and drift cancels. The experiment that narrows
//! the ranking most comes next. One that slows the program too much, or stops it, is ended early
//! (`guard`).

pub(crate) mod choose;
mod clocks;
mod diagnose;
mod disturbance;
mod early;
mod first;
mod guard;
mod hold;
mod noise;
mod plan;
mod run;
mod stop;
mod throttle;
mod unended;

pub(crate) use choose::{names, want_samples};
pub use guard::Cut;
pub use hold::{Experimenter, Outcome, Phases};
pub use run::Status;
pub(crate) use run::{ExperimentLoop, Finished, Rounds};
pub use stop::Stop;
