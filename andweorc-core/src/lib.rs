//! The core of andweorc, a causal profiler: clock and ledger, delays, points and targets, sampling
//! and experiments. What is measured goes into a profile, which [`andweorc_profile`] writes, reads
//! and estimates effects from. The core knows neither tokio nor tracing; users depend on the facade
//! crate `andweorc`.
//!
//! | module | what |
//! |---|---|
//! | [`ledger`] | the virtual clock: who owes how much delay; plain logic |
//! | [`thread`](mod@thread) | the process-wide ledger, and what the calling thread is to it |
//! | [`defer`] | tasks held back until the virtual clock gets to where they are ready |
//! | [`pause`] | precise sleeps |
//! | [`program_clock`] | the clock that the program itself reads |
//! | [`point`](mod@point), [`target`](mod@target), [`wait`] | what is measured, and what is virtually sped up |
//! | [`experiment`], [`session`] | what is held, for how long, in which order; a run from start to report |
//! | [`sampler`], [`symbols`] | where threads spend their time, and what lines that is |
//! | [`foreign`] | tasks that nobody wrapped, as a runtime reports them |
//! | [`fork`](mod@fork), [`own_thread`] | what a child of fork must not do; threads of andweorc's own |
//! | [`hints`], [`unstarted`] | what to say where nothing is seen, and where nothing was started |
//! | [`runner`] | the classic API, for programs without a runtime |
//! | [`settings`] | the environment, or code |

mod asked;
mod binary;
pub mod budget;
pub mod clock;
mod copies;
mod counter;
pub mod defer;
mod descriptors;
pub mod engine;
pub mod experiment;
pub mod foreign;
pub mod fork;
mod helper;
pub mod hints;
pub mod late_events;
mod latency;
pub mod ledger;
mod loaded;
mod nudge;
pub mod own_thread;
pub mod pause;
mod plain_thread_local;
pub mod point;
mod process_ledger;
pub mod program_clock;
pub mod runner;
pub mod sampler;
mod schedstat;
pub mod session;
pub mod settings;
mod signal;
mod spelled;
mod stall;
pub mod stderr;
pub mod symbols;
mod sync;
pub mod target;
pub mod thread;
pub mod time;
pub mod unstarted;
pub mod wait;
#[doc(hidden)]
pub mod weak_symbol;
pub mod yields;

pub use thread::enabled;
