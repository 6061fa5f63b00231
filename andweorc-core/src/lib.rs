//! The core of andweorc, a causal profiler: clock and ledger, delays, points and targets, experiments, statistics and
//! the profile. It knows neither tokio nor tracing; users depend on the facade crate `andweorc`.

mod counter;
pub mod clock;
pub mod experiment;
pub mod ledger;
mod nudge;
pub mod pause;
pub mod defer;
pub mod thread;
pub mod point;
pub mod profile;
pub mod target;
pub mod time;

pub use thread::enabled;
