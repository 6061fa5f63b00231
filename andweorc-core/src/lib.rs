//! **Internal to `andweorc`: no stability.** All of this crate is for its sibling crates, and any
//! version may change any of it. Its modules are hidden from the documentation; depend on the
//! facade crate `andweorc`, which exports what is for users.
//!
//! The core of andweorc, a causal profiler: clock and ledger, delays, points and targets, sampling
//! and experiments. What is measured goes into a profile, which [`andweorc_profile`] writes, reads
//! and estimates effects from. The core knows neither tokio nor tracing.
//!
//! | module | what |
//! |---|---|
//! | [`ledger`] | the virtual clock: who owes how much delay; plain logic |
//! | [`thread`](mod@thread) | what the calling thread is to the ledger of the process |
//! | [`defer`] | tasks held back until the virtual clock gets to where they are ready |
//! | [`pause`] | precise sleeps |
//! | [`program_clock`] | the clock that the program itself reads |
//! | [`point`](mod@point), [`target`](mod@target), [`wait`] | what is measured, and what is virtually sped up |
//! | [`experiment`], [`session`] | what is held, for how long, in which order; a run from start to report |
//! | [`sampler`], [`symbols`] | where threads spend their time, and what lines that is |
//! | [`unwrapped`] | tasks that nobody wrapped, as a runtime reports them |
//! | [`fork`](mod@fork), [`own_thread`] | what a child of fork must not do; threads of andweorc's own |
//! | [`hints`], [`unstarted`] | what to say where nothing is seen, and where nothing was started |
//! | [`runner`] | the classic API, for programs without a runtime |
//! | [`settings`] | the environment, or code |

mod asked;
mod background_thread;
mod binary;
#[doc(hidden)]
pub mod budget;
mod catch_up_signal;
#[doc(hidden)]
pub mod clock;
mod copies;
mod counter;
#[doc(hidden)]
pub mod defer;
mod descriptors;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod experiment;
#[doc(hidden)]
pub mod fork;
#[doc(hidden)]
pub mod hints;
#[doc(hidden)]
pub mod late_events;
mod latency;
#[doc(hidden)]
pub mod ledger;
mod loaded;
#[doc(hidden)]
pub mod own_thread;
#[doc(hidden)]
pub mod pause;
mod plain_thread_local;
#[doc(hidden)]
pub mod point;
mod process;
#[doc(hidden)]
pub mod program_clock;
#[doc(hidden)]
pub mod runner;
#[doc(hidden)]
pub mod sampler;
mod schedstat;
#[doc(hidden)]
pub mod session;
#[doc(hidden)]
pub mod settings;
mod signal;
mod spelled;
mod stall;
#[doc(hidden)]
pub mod stderr;
#[doc(hidden)]
pub mod symbols;
mod sync;
#[doc(hidden)]
pub mod target;
#[doc(hidden)]
pub mod thread;
#[doc(hidden)]
pub mod time;
#[doc(hidden)]
pub mod unstarted;
#[doc(hidden)]
pub mod unwrapped;
#[doc(hidden)]
pub mod wait;
#[doc(hidden)]
pub mod weak_symbol;
#[doc(hidden)]
pub mod yields;

#[doc(hidden)]
pub use thread::enabled;
