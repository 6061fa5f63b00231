//! **Internal to `andweorc`: no stability.** Any version may change any of this crate. Depend on
//! the facade crate `andweorc`, which exports what is for users; what is for sibling crates alone
//! is hidden from the documentation.
//!
//! The tokio side of andweorc: profiled tasks, their wakers, and the workers that run them. On
//! stable tokio, without any cfg flag.
//!
//! # What happens around a poll
//!
//! [`spawn`], [`task::Builder`], [`JoinSet`] and [`.profiled()`](Profile::profiled) wrap a future
//! in [`Profiled`], and `Profiled` polls it with a waker of its own. So the wrapper knows who woke
//! the task (`wake` module): another task, in whose virtual time it goes on, or the world outside,
//! whose wake is held until the virtual clock gets there. Around each poll it pays what the worker
//! owes and times the poll for the task's target. Each task keeps its own clock while it waits.
//!
//! Not enabled, a wrapped poll costs one relaxed load and a branch.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod deferred;
mod driver_timer;
#[cfg(feature = "hyper")]
pub mod hyper;
mod id_number;
pub mod io;
mod join_set;
mod peer;
mod profiled;
#[cfg(feature = "remote")]
pub mod remote;
#[doc(hidden)]
pub mod runtime;
mod runtime_id;
mod spawn;
mod thread_key;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(tokio_unstable)]
mod unwrapped;
mod wait_hint;
mod wake;
mod wakers;
mod wrapped;

pub use join_set::JoinSet;
pub use profiled::{Profile, Profiled};
pub use spawn::{spawn, spawn_blocking};
#[cfg(tokio_unstable)]
#[doc(hidden)]
pub use unwrapped::install as see_all_tasks;
pub use wait_hint::InProcess;
#[doc(hidden)]
pub use wrapped::Wrapped;

/// Building tasks, as in `tokio::task`.
pub mod task {
    pub use crate::join_set::JoinSet;
    pub use crate::spawn::{Builder, spawn, spawn_blocking, spawn_local};
    pub use crate::wait_hint::yield_now;
}
