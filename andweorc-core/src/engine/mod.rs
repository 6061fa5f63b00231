//! The engine: the rules of the virtual clock as a state machine without I/O.
//!
//! Events come in with the time at which they happen; what comes out says what the caller is to do.
//! Nothing here reads a clock, sleeps or wakes anybody. So wakers of tokio, tasks that nobody
//! wrapped and the simulation (`andweorc-core/tests/simulation`) run the same code, and what the
//! simulation shows holds for what ships.
//!
//! A [`Model`] is the ground that clocks stand on: the [ledger](crate::ledger) and the rules. Each
//! task has a [`TaskClock`], and each thread a [`ThreadState`].

mod model;
mod task_clock;
#[cfg(all(test, not(loom)))]
mod tests;
mod thread_state;

pub use model::{Model, Rules};
pub use task_clock::{
    Effect, Parking, PollBegun, PollEnded, Released, TaskClock, WaitHint, WakeSource, seldom,
};
pub use thread_state::{ThreadKind, ThreadState};
