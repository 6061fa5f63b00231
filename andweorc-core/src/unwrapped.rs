//! Tasks that nobody wrapped, as a runtime reports them: what the reporter (a tracing layer) tells,
//! and who it tells it to.
//!
//! The two are in different crates, and neither knows the other: who takes part in the tasks' polls
//! [installs](install) itself, and the layer asks for it.

mod installed;

pub use installed::{install, installed};

use std::fmt::Debug;
use std::sync::Arc;

/// The part of a runtime that runs a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A worker, or a `LocalSet`.
    Worker,
    /// A thread of the blocking pool.
    Blocking,
    /// The thread that waits for it: `block_on`.
    Root,
}

/// A task that has been spawned, by the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Spawned<'a> {
    /// The runtime's own number for it.
    pub id: u64,
    /// Part of the runtime that runs the task.
    pub how: How,
    /// Its name; empty if it has none.
    pub name: &'a str,
    /// The file of its spawn site.
    pub file: &'a str,
    /// The line of its spawn site.
    pub line: u32,
}

/// One of these tasks. What is reported of a span is not always of the task: who uses it tells the
/// two apart.
pub trait Task: Send + Sync + Debug {
    /// The calling thread begins to poll it, or to drop it.
    fn enter(self: Arc<Self>);

    /// The calling thread is done with that.
    fn exit(self: Arc<Self>);

    /// The calling thread wakes it.
    fn wake(&self);
}

/// Takes part in the polls of tasks.
pub trait Tasks: Sync + Debug {
    /// Whether the task that the calling thread spawns now is wrapped, so that nothing need be
    /// reported of it.
    fn is_wrapped(&self) -> bool;

    /// The calling thread has cloned the waker of a task.
    fn waker_cloned(&self);

    /// A task was spawned. `None` if nothing need be reported of it.
    fn spawned(&self, spawned: Spawned<'_>) -> Option<Arc<dyn Task>>;
}
