//! The engine: the rules of the virtual clock as a state machine without I/O.
//!
//! Events come in with the time at which they happen; what comes out says what the caller is to do.
//! Nothing here reads a clock, sleeps or wakes anybody. So wakers of tokio, tasks that nobody
//! wrapped and the simulation (`andweorc-core/tests/simulation`) run the same code, and what the
//! simulation shows holds for what ships.
//!
//! A [`Model`] is the ground that clocks stand on: the [ledger](crate::ledger) and the rules. Each
//! task has a [`TaskClock`], and each thread a [`ThreadState`].
//!
//! | module | job |
//! |---|---|
//! | `task_clock` | wakes and polls: when a task is ready, and until when it is held |
//! | `thread_state` | in whose name a thread acts, and what changes that |
//! | `thread_poll` | how a thread begins a poll, and what it is afterwards |
//! | `plain` | which threads take part of their own accord |
//! | `stay` | which time of a thread in a target is credited, and to which |
//! | `payment` | for how long a thread pauses that owes delay |
//! | `rest` | what a thread takes that was idle, or blocked by another one |
//! | `message` | what a message of another process does to who receives it |
//! | `lock_handoff` | which thread let a blocked one in |

mod lock_handoff;
mod message;
mod model;
mod payment;
mod plain;
mod rest;
mod stay;
mod task_clock;
#[cfg(all(test, not(loom)))]
mod tests;
mod thread_poll;
mod thread_state;

pub use lock_handoff::Door;
pub use message::Message;
pub use model::{Model, Rules};
pub use payment::Payment;
pub use plain::Stranger;
pub use rest::{Block, BlockEnd, LastWake, Rested};
pub use stay::{Depth, Entered, Stay};
pub use task_clock::{
    Effect, Parking, PollBegun, PollEnded, Released, TaskClock, WaitHint, WakeSource, seldom,
};
pub use thread_poll::{PollStep, ThreadPoll};
pub use thread_state::{ThreadKind, ThreadState};
