//! The wakes that are held back in a process, and facts about those who release them.

use super::{Guarded, Waiting};
use crate::sync::{Condvar, Mutex, const_fn};
use crate::time::Virtual;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize};
use std::sync::{OnceLock, Weak};

/// All that is held back in a process.
pub(crate) struct Deferral {
    /// When the first of the queue is due, virtual ns; [`Virtual::NEVER`] when it is empty.
    pub(super) first: AtomicI64,
    /// Workers that are idle.
    pub(super) idle: AtomicUsize,
    /// Workers tell when they are idle.
    pub(super) hooked: AtomicBool,
    /// When the thread of the queue last released something, real ns.
    pub(super) released: AtomicI64,
    /// How long a released wake takes on average to get an idle worker going, ns.
    pub(super) handoff: AtomicI64,
    /// The queue of the thread.
    pub(super) entries: Mutex<Entries>,
    /// Wakes the thread: something is due earlier.
    pub(super) earlier: Condvar,
    /// Whether there is such a thread, once it was needed.
    pub(super) runs: OnceLock<bool>,
    /// All that are guarded and may live.
    pub(super) guarded: Mutex<Vec<Weak<dyn Guarded>>>,
    /// Virtual time, ns, that the next look at them is for: what is due then or later will be seen
    /// by it.
    pub(super) next_look: crate::sync::atomic::AtomicI64,
    /// Looks at which nothing was held since something was.
    pub(super) empty_looks: AtomicU32,
    /// Wakes of executors other than tokio.
    #[cfg_attr(loom, expect(dead_code, reason = "models have one executor"))]
    pub(super) elsewhere: Elsewhere,
}

/// Wakes that the thread of the queue waits for.
pub(super) struct Entries {
    pub(super) waiting: Waiting,
    /// When the first is due of what others hold, as far as the thread knows; [`Virtual::NEVER`]
    /// where they hold nothing.
    pub(super) guarded: Virtual,
}

/// The threads that wake tasks of other executors, and how they are woken themselves.
#[cfg_attr(loom, expect(dead_code, reason = "models have one executor"))]
pub(super) struct Elsewhere {
    pub(super) threads: Mutex<Threads>,
    /// Wakes the leader: something is due earlier.
    pub(super) earlier: Condvar,
    /// Wakes a follower: it leads.
    pub(super) lead: Condvar,
}

/// Threads that wake tasks of other executors, and the wakes that they wait for.
#[cfg_attr(loom, expect(dead_code, reason = "models have one executor"))]
pub(super) struct Threads {
    pub(super) waiting: Waiting,
    /// All that live.
    pub(super) live: usize,
    /// Threads that wait until they may lead.
    pub(super) followers: usize,
    /// One waits for what is due.
    pub(super) led: bool,
}

impl Deferral {
    const_fn! {
    /// Nothing is held, and nobody is there to release it yet.
    pub(crate) fn new() -> Deferral {
        let threads = Threads { waiting: Waiting::new(), live: 0, followers: 0, led: false };
        Deferral {
            first: AtomicI64::new(Virtual::NEVER.0),
            idle: AtomicUsize::new(0),
            hooked: AtomicBool::new(false),
            released: AtomicI64::new(i64::MIN),
            handoff: AtomicI64::new(0),
            entries: Mutex::new(Entries { waiting: Waiting::new(), guarded: Virtual::NEVER }),
            earlier: Condvar::new(),
            runs: OnceLock::new(),
            guarded: Mutex::new(Vec::new()),
            next_look: crate::sync::atomic::AtomicI64::new(Virtual::NEVER.0),
            empty_looks: AtomicU32::new(0),
            elsewhere: Elsewhere {
                threads: Mutex::new(threads),
                earlier: Condvar::new(),
                lead: Condvar::new(),
            },
        }
    }
    }
}
