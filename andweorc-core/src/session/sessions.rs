//! The one session that a process has at a time.

use super::provisional::Stopper;
use crate::sync::{Condvar, Mutex, const_fn};
use std::sync::atomic::AtomicBool;

/// The holder of a process, of those that want to experiment with it.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// Somebody holds experiments.
    pub(crate) experimenting: AtomicBool,
    /// The provisional session, while there is one.
    pub(super) provisional: Mutex<Option<Stopper>>,
    /// Tells that there is none any more.
    pub(super) ended: Condvar,
}

impl Sessions {
    const_fn! {
    /// Nobody has it.
    pub(crate) fn new() -> Sessions {
        Sessions {
            experimenting: AtomicBool::new(false),
            provisional: Mutex::new(None),
            ended: Condvar::new(),
        }
    }
    }
}
