//! A task's clock while it waits.

use crate::time::{Nanos, Real, Virtual};

/// A task's clock while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Its virtual time when it parked.
    pub at: Virtual,
    /// The delay that it had taken by then.
    pub taken: Nanos,
}

impl Parked {
    /// When it becomes ready if a participant wakes it whose virtual time is `waker`: not before it
    /// parked, and not before its waker. It cannot have absorbed more than the real time for which
    /// it waited.
    #[inline]
    pub fn woken_by(self, waker: Virtual) -> Virtual {
        self.at.max(waker)
    }

    /// When it becomes ready if the world outside (a timer, a socket) wakes it at `now`: that world
    /// was not sped up, so the wait is stretched by what D grew meanwhile. `floor` is
    /// [`Ledger::forgiven_delay`](super::Ledger::forgiven_delay).
    #[inline]
    pub fn woken_outside(self, now: Real, floor: Nanos) -> Virtual {
        self.at.max(now.less(self.taken.max(floor)))
    }
}
