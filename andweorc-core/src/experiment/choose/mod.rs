//! Choosing points and targets when the user named none, and finding those that he named.

mod names;
mod points;
mod targets;
mod times;
mod waits;

pub(crate) use names::{all_of, is_named, names, want_functions_alone, want_samples};
pub(crate) use points::{Hits, choose_points, reconsidered};
pub(crate) use targets::MAX_TARGETS;
pub(crate) use times::TargetTimes;

/// A target below this share of the program's CPU time is not worth testing.
pub(crate) const MIN_SHARE: f64 = 0.02;
