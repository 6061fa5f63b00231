//! **andweorc** is a causal profiler for tokio services. It tells what would make a service faster:
//! *"if `stock` were 25 % faster, your throughput would rise by 15 % and your p99 fall by 12 %; and
//! `render`, which burns most of your CPU, would change nothing."* It finds out by experiments
//! inside the running program: while the target runs, everything else is delayed, which is the same
//! as having made the target faster (virtual speedup: Curtsinger & Berger, *Coz*, SOSP 2015). What
//! that takes for async tasks is in the book, under *virtual time*.
//!
//! # From nothing to a ranking
//!
//! **1.** Add `tracing = "0.1"`, `andweorc = { path = "../andweorc" }`, and three lines to the
//! service:
//!
//! ```no_run
//! #[andweorc::main] // in the place of #[tokio::main]
//! async fn main() {
//!     andweorc::subscriber().init(); // times spans, and can speed them up
//!     andweorc::spawn(serve()).await.unwrap(); // in the place of tokio::spawn
//! }
//!
//! async fn serve() {
//!     loop {
//!         answer().await;
//!     }
//! }
//!
//! #[tracing::instrument] // a request, or a part of one that you wonder about
//! async fn answer() {}
//! ```
//!
//! **2.** Install the command, in andweorc's folder: `cargo install --profile dist --path
//! cargo-andweorc`.
//!
//! **3.** Profile, in the service's folder, with any load that lasts for a minute:
//!
//! ```sh
//! cargo andweorc run --load 'wrk -d 60s http://127.0.0.1:3000/'
//! ```
//!
//! **4.** Read the ranking that is printed. These lines are of a shop:
//!
//! ```text
//! MAKE FASTER             at 25 %  rate at 50 % faster   then  p99 at 50 %
//!   stock service.rs:129  +12.3 %  +34.6 % [32.4,39.1]  933/s  -30 % [-38,-22]
//! ```
//!
//! If `stock` took half of its time, the service would do 34.6 % more, 933 requests a second, and
//! its p99 would fall by 30 %; in brackets are 95 % intervals.
//!
//! Without the command, start the service with `ANDWEORC_ENABLED=1` and put load on it: the same
//! report goes to stderr when the run is settled, when the time is up, when `main` returns, or on
//! Ctrl-C. When it is not enabled, a wrapped poll costs one load and a branch.
//!
//! # Other programs
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
//! # What is measured, and what is sped up
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
//! | `ANDWEORC_EVENTS` | events to count by target, e.g. `cycles,instructions,cache-misses` | none |
//! | `ANDWEORC_POINTS` | names of the points, the one to rank by first | root spans of your own crates |
//! | `ANDWEORC_SPEEDUPS` | speedups to test, e.g. `0.25,0.5` | `0.25,0.5` |
//! | `ANDWEORC_CLOCK` | whether the program's own clock is delayed with it: `virtual` or `real` | `virtual` |
//! | `ANDWEORC_MAX_SLOWDOWN` | by how much an experiment may slow the program | `2` |
//! | `ANDWEORC_SCOPE` | which lines and functions can be targets | the workspace's own crates |
//! | `ANDWEORC_LONG_POLL` | a poll that lasts so long is reported with its place, or `off` | `10ms` |
//! | `ANDWEORC_ORDER` | seed of the order of experiments; runs that are combined need different ones | `0` |
//! | `ANDWEORC_COORDINATOR`, `ANDWEORC_TOKEN`, `ANDWEORC_SERVICE` | the run of several services that the program takes part in | none |
//!
//! The same in code: [`Settings`] and [`Session`], whose outcome is an [analysis].
//!
//! # Features
//!
//! | feature | by default | what it adds |
//! |---|---|---|
//! | `clock` | yes | a clock of the program that is virtual, and `threads` |
//! | `layer` | yes | [`layer`], for a tracing subscriber that is there, by tracing-subscriber |
//! | `sampling` | yes | lines and functions as targets, by the crates that read debug information |
//! | `threads` | by `clock` | plain threads that block each other are seen to |
//! | `alloc` | no | `Alloc`, an allocator that counts by target |
//! | `axum`, `hyper`, `tower` | no | the modules of these names, for tasks that libraries spawn |
//! | `remote` | no | `remote`: delays travel with requests to other services that are profiled |
//! | `test-util` | no | `start_paused` in [`main`](macro@main) and [`test`](macro@test) |
//!
//! # Where next
//!
//! - [`spawn`], [`JoinSet`], [`task`] and [`Profile`] for tasks; [`runtime`] for runtimes that are
//!   built by hand; [`io::Outside`] for connections of clients; [`blocked`] for threads.
//! - [`Session`] to start and end a profile in code, and [`analysis`] for its findings.
//! - [`runner`] for programs of plain threads.
//! - The book, `docs/book/src` in the repository, has a tutorial, a page for each framework, what
//!   the reports mean, what goes wrong and what happens then, and how right predictions are.

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

#[cfg(feature = "alloc")]
pub use andweorc_alloc::Alloc;
#[cfg(feature = "clock")]
use andweorc_clock as _;
pub use andweorc_core::hooks::experiment::Status;
pub use andweorc_core::hooks::sampler::{CountedEvent, Event, PerfError};
pub use andweorc_core::hooks::session::{Outcome, Session, StartError};
pub use andweorc_core::hooks::settings::{ProgramClock, Scope, ScopeError, SettingError, Settings};
pub use andweorc_core::hooks::thread::blocked;
pub use andweorc_core::hooks::time::Speedup;
pub use andweorc_macros::{main, test};
pub use andweorc_profile::WriteError;
#[cfg(feature = "threads")]
use andweorc_threads as _;
#[cfg(feature = "hyper")]
pub use andweorc_tokio::hyper;
#[cfg(feature = "remote")]
pub use andweorc_tokio::remote;
#[cfg(feature = "tower")]
pub use andweorc_tokio::tower;
pub use andweorc_tokio::{InProcess, JoinSet, Profile, Profiled, io, spawn, spawn_blocking, task};
#[cfg(feature = "layer")]
pub use andweorc_tracing::Layer;
pub use andweorc_tracing::Subscriber;
pub use classic::{init, run_experiments, start_profiling};
#[cfg(feature = "layer")]
pub use start::layer;
pub use start::subscriber;

/// For the macros and attributes; no part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::start::rt;
    pub use andweorc_core::hooks::enabled;
    pub use andweorc_core::hooks::point::{Point, point};
    pub use andweorc_core::hooks::thread::{catch_up, was_enabled};
    pub use andweorc_profile::PointKind;
    pub use tokio;
}
