//! **Internal to `andweorc`: no stability.** All of this crate is for its sibling crates, and any
//! version may change any of it. Its modules are hidden from the documentation; depend on the
//! facade crate `andweorc`, which exports what is for users.
//!
//! The core of andweorc, a causal profiler: clock and ledger, delays, points and targets, sampling
//! and experiments. What is measured goes into a profile, which [`andweorc_profile`] writes, reads
//! and estimates effects from; call chains come from [`andweorc_sampling`]. The core knows neither
//! tokio nor tracing.
//!
//! | module | what |
//! |---|---|
//! | [`ledger`] | the virtual clock: who owes how much delay; plain logic |
//! | [`thread`](mod@thread) | what the calling thread is to the ledger of the process |
//! | [`defer`] | tasks held back until the virtual clock gets to where they are ready |
//! | `pause` | precise sleeps |
//! | [`program_clock`] | the clock that the program itself reads |
//! | [`point`](mod@point), [`target`](mod@target), [`wait`] | what is measured, and what is virtually sped up |
//! | [`experiment`], [`session`] | what is held, for how long, in which order; a run from start to report |
//! | [`sampler`] | where threads spend their time: what [`andweorc_sampling`] samples, credited to targets |
//! | [`allocations`] | what is allocated, by target |
//! | [`unwrapped`] | tasks that nobody wrapped, as a runtime reports them |
//! | `fork`, [`own_thread`] | what a child of fork must not do; threads of andweorc's own |
//! | `hints`, `unstarted` | what to say where nothing is seen, and where nothing was started |
//! | [`hooks`] | all that sibling crates use of these |
//! | `runner` | the classic API, for programs without a runtime |

#[doc(hidden)]
pub mod allocations;
mod asked;
mod background_thread;
mod budget;
mod cache_padded;
mod catch_up_signal;
mod counter;
#[doc(hidden)]
pub mod defer;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod experiment;
mod fork;
mod hints;
#[doc(hidden)]
pub mod hooks;
#[doc(hidden)]
pub mod late_events;
mod latency;
#[doc(hidden)]
pub mod ledger;
mod long_polls;
#[doc(hidden)]
pub mod own_thread;
mod pause;
#[doc(hidden)]
pub mod point;
mod proc_stat;
mod process;
#[doc(hidden)]
pub mod program_clock;
mod runner;
#[doc(hidden)]
pub mod sampler;
mod schedstat;
#[doc(hidden)]
pub mod session;
mod spelled;
mod stall;
mod stderr;
mod sync;
#[doc(hidden)]
pub mod target;
#[doc(hidden)]
pub mod thread;
mod unstarted;
#[doc(hidden)]
pub mod unwrapped;
#[doc(hidden)]
pub mod wait;
#[doc(hidden)]
pub mod wall;
mod yields;

#[doc(hidden)]
pub use andweorc_profile::{settings, time};
#[doc(hidden)]
pub use andweorc_sampling::signal::signals_of_others;
#[doc(hidden)]
pub use andweorc_sampling::{clock, plain_thread_local, symbols, weak_symbol};
#[doc(hidden)]
pub use thread::enabled;
