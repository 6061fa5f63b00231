//! **andweorc** is a causal profiler for tokio services. It tells what would make a service faster:
//! *"if `stock` were 25 % faster, your throughput would rise by 15 % and your p99 fall by 12 %; and
//! `render`, which burns most of your CPU, would change nothing."* It finds out by experiments
//! inside the running program: while the target runs, everything else is delayed, which is the same
//! as having made the target faster (virtual speedup: Curtsinger & Berger, *Coz*, SOSP 2015). What
//! that takes for async tasks is in the book, under *virtual time*.
//!
//! # Adding it to a service
//!
//! ```no_run
//! #[andweorc::main]
//! async fn main() {
//!     andweorc::subscriber().init();
//!     andweorc::spawn(serve()).await.unwrap();
//! }
//!
//! #[tracing::instrument]
//! async fn serve() {}
//! ```
//!
//! A program that has a tracing subscriber already adds a [`layer`] to that one, in the place of
//! the [`subscriber`], and gives the filter of its logs to the layer that writes them:
//!
//! ```no_run
//! use tracing_subscriber::{filter::LevelFilter, fmt, prelude::*};
//!
//! // Where it was fmt().init(); with_filter(EnvFilter::from_default_env()) where RUST_LOG says.
//! let logs = fmt::layer().with_filter(LevelFilter::INFO);
//! tracing_subscriber::registry().with(logs).with(andweorc::layer()).init();
//! ```
//!
//! For programs that can't have the attribute (actix's main, a [runtime] built by hand) the layer,
//! the subscriber or [`.enable_profiling()`](runtime::BuilderExt) on the runtime's builder starts
//! to profile. The report is printed at the exit of the process at the latest.
//!
//! Start the service with `ANDWEORC_ENABLED=1` (or by `cargo andweorc run`), put load on it, and
//! read the ranking when the run is settled, when the time is up, when `main` returns, or on
//! Ctrl-C. Without it, a wrapped poll costs one load and a branch.
//!
//! - **What gets faster** - points: each tracing span is one, root spans of your own crates
//!   (requests) first; or mark a unit of work with [`progress!`].
//! - **What is virtually sped up** - targets: each tracing span, each kind of task ([`spawn`],
//!   [`task::Builder`], [`.profiled("name")`](Profile::profiled)).
//!
//! # Settings
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `ANDWEORC_ENABLED` | `1` switches profiling on | off |
//! | `ANDWEORC_OUT` | where the profile goes | `target/andweorc/<program>.jsonl` |
//! | `ANDWEORC_DURATION` | time budget, e.g. `20s` | `30s` |
//! | `ANDWEORC_TARGETS` | names of the targets to test, comma-separated | the busiest, and the longest waits |
//! | | `lines` and `functions` are the hottest, which are sampled; `line:src/main.rs:12` is one | |
//! | `ANDWEORC_EVENT` | what they are sampled by: `task-clock`, `cycles`, `instructions`, `cache-misses`, `branch-misses` | `task-clock` |
//! | `ANDWEORC_POINTS` | names of the points, the one to rank by first | root spans of your own crates |
//! | `ANDWEORC_SPEEDUPS` | speedups to test, e.g. `0.25,0.5` | `0.25,0.5` |
//! | `ANDWEORC_CLOCK` | whether the program's own clock is delayed with it: `virtual` or `real` | `virtual` |
//! | `ANDWEORC_MAX_SLOWDOWN` | by how much an experiment may slow the program | `2` |
//! | `ANDWEORC_SCOPE` | which lines and functions can be targets | the workspace's own crates |
//!
//! The same in code: [`Settings`] and [`Session`], whose outcome is an [analysis].

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod analysis;
#[cfg(feature = "axum")]
pub mod axum;
mod classic;
mod macros;
pub mod runner;
pub mod runtime;
mod start;
mod stderr;

#[cfg(feature = "clock")]
use andweorc_clock as _;
pub use andweorc_core::experiment::Status;
pub use andweorc_core::sampler::{Event, PerfError};
pub use andweorc_core::session::{Outcome, Session, StartError};
pub use andweorc_core::settings::{ProgramClock, SettingError, Settings};
pub use andweorc_core::symbols::{Scope, ScopeError};
pub use andweorc_core::thread::blocked;
pub use andweorc_core::time::Speedup;
pub use andweorc_macros::{main, test};
pub use andweorc_profile::WriteError;
#[cfg(feature = "threads")]
use andweorc_threads as _;
#[cfg(feature = "hyper")]
pub use andweorc_tokio::hyper;
#[cfg(feature = "tower")]
pub use andweorc_tokio::tower;
pub use andweorc_tokio::{InProcess, JoinSet, Profile, Profiled, io, spawn, spawn_blocking, task};
pub use andweorc_tracing::{Layer, Subscriber};
pub use classic::{init, run_experiments, start_profiling};
pub use start::{layer, subscriber};

/// For the macros and attributes; no part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::start::rt;
    pub use andweorc_core::enabled;
    pub use andweorc_core::point::{Point, point};
    pub use andweorc_core::thread::{catch_up, was_enabled};
    pub use andweorc_profile::PointKind;
    pub use tokio;
}
