//! Ends the sleep of the thread that holds experiments, for good or for the experiment alone.

use crate::sync::{Condvar, Mutex};
use std::time::Duration;

/// Tells a sleeping [`Experimenter`](crate::experiment::Experimenter) to stop.
#[derive(Debug, Default)]
pub struct Stop {
    requests: Mutex<Requests>,
    changed: Condvar,
}

/// Requests to the thread that sleeps.
#[derive(Debug, Default)]
struct Requests {
    /// To stop for good.
    stop: bool,
    /// To end the experiment that is held.
    cut: bool,
}

impl Stop {
    /// Stops whoever sleeps, now and from now on.
    pub fn stop(&self) {
        self.requests.lock().stop = true;
        self.changed.notify_all();
    }

    /// Wakes whoever sleeps in the experiment that is held.
    pub(crate) fn cut(&self) {
        self.requests.lock().cut = true;
        self.changed.notify_all();
    }

    /// Forgets that the experiment before was cut.
    pub(super) fn forget_cut(&self) {
        self.requests.lock().cut = false;
    }

    /// Sleeps for `length`, or until stopped. Says whether it was stopped.
    pub(crate) fn sleep(&self, length: Duration) -> bool {
        self.forget_cut();
        self.sleep_unless_cut(length)
    }

    /// Sleeps for `length`, or until stopped, or not at all once the experiment was cut. Says
    /// whether it was stopped.
    pub(super) fn sleep_unless_cut(&self, length: Duration) -> bool {
        let goes_on = |asked: &mut Requests| !asked.stop && !asked.cut;
        self.changed.wait_timeout_while(self.requests.lock(), length, goes_on).stop
    }
}
