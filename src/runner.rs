//! The classic API beyond its [defaults](crate::run_experiments): line targets for programs without
//! a runtime.
//!
//! Threads [start profiling](crate::start_profiling); work is counted by
//! [progress points](crate::progress!); [`Runner::run`] finds the hottest lines and holds
//! experiments on them. Threads that lag are told to pay by a signal, and pay at progress points.
//!
//! Lines are sampled, by the feature `sampling`, which is on by default. Without it
//! [`Runner::run`] is an error.
//!
//! A thread that blocks on another through std's locks or channels absorbs delay meanwhile, and
//! would pay it again without the feature `threads`: wrap such calls in
//! [`blocked`](crate::blocked).

pub use andweorc_core::hooks::runner::{ProfilingResults, RunError, Runner, RunnerConfig};
pub use andweorc_core::hooks::symbols::{Place, SymbolError};
pub use andweorc_profile::stats::Regression;
