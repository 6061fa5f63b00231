//! The poll that a thread is in, as another thread sees it.

use crate::sync::atomic::{
    AtomicI64, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sync::const_fn;
use crate::time::Real;

/// `since` where there is no poll.
const NONE: i64 = 0;

/// The poll that a thread is in. One thread, the owner, begins and ends polls; one other looks.
#[derive(Debug)]
pub(crate) struct WatchedPoll {
    /// When it began; [`NONE`] outside of polls.
    since: AtomicI64,
    /// Id of the kind of task.
    target: AtomicU32,
    /// Begin of the poll whose end is to be told; [`NONE`] if none is.
    caught: AtomicI64,
    /// When that ended.
    ended: AtomicI64,
}

impl WatchedPoll {
    const_fn! {
    pub(super) fn new() -> WatchedPoll {
        WatchedPoll {
            since: AtomicI64::new(NONE),
            target: AtomicU32::new(0),
            caught: AtomicI64::new(NONE),
            ended: AtomicI64::new(NONE),
        }
    }
    }

    /// The owner begins a poll of this kind of task. False inside of another one, which goes on to
    /// be the one that is seen.
    #[inline]
    pub(crate) fn begin(&self, target: u32, since: Real) -> bool {
        // Relaxed: only the owner writes it.
        if self.since.load(Relaxed) != NONE {
            return false;
        }
        // Relaxed: published by the next one.
        self.target.store(target, Relaxed);
        // Release: pairs with the acquire in `going_on`.
        self.since.store(since.0, Release);
        true
    }

    /// The owner ends the poll that it began at `since`.
    #[inline]
    pub(crate) fn end(&self, since: Real, now: Real) {
        // Relaxed: nothing is published by it.
        self.since.store(NONE, Relaxed);
        // Relaxed: of a poll that is caught at this very moment the end is not told.
        if self.caught.load(Relaxed) == since.0 {
            self.tell_end(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_end(&self, now: Real) {
        // Relaxed: published by the next one.
        self.ended.store(now.0, Relaxed);
        // Release: pairs with the acquire in `take_end`.
        self.caught.store(NONE, Release);
    }

    /// The kind of task and the begin of the poll that the owner is in.
    pub(crate) fn going_on(&self) -> Option<(u32, Real)> {
        // Acquire: pairs with the release in `begin`.
        let since = self.since.load(Acquire);
        // Relaxed: it may be that of the next poll, which the next look tells.
        let target = self.target.load(Relaxed);
        // Relaxed: as above.
        let is_same = self.since.load(Relaxed) == since;
        (since != NONE && is_same).then_some((target, Real(since)))
    }

    /// Whether the owner, which is the calling thread, is in the poll that began then.
    pub(crate) fn is_since(&self, since: Real) -> bool {
        // Relaxed: only the owner writes it.
        self.since.load(Relaxed) == since.0
    }

    /// Has the end told of the poll that began then.
    pub(crate) fn catch(&self, since: Real) {
        // Relaxed: see `end`.
        self.caught.store(since.0, Relaxed);
    }

    /// The end of the poll that was [caught](WatchedPoll::catch); `None` where it was over by then.
    pub(crate) fn take_end(&self) -> Option<Real> {
        // Acquire: pairs with the release in `tell_end`.
        let is_told = self.caught.swap(NONE, Acquire) == NONE;
        // Relaxed: published by `caught`.
        is_told.then(|| Real(self.ended.load(Relaxed)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_outer_poll_is_seen_and_its_end_is_told_if_it_is_caught() {
        let poll = WatchedPoll::new();
        assert_eq!(poll.going_on(), None);
        assert!(poll.begin(7, Real(10)) && !poll.begin(8, Real(12)));
        assert_eq!(poll.going_on(), Some((7, Real(10))));
        poll.catch(Real(10));
        poll.end(Real(10), Real(90));
        assert_eq!((poll.going_on(), poll.take_end()), (None, Some(Real(90))));
        // The next one ends before it is caught.
        assert!(poll.begin(7, Real(100)));
        poll.end(Real(100), Real(110));
        poll.catch(Real(100));
        assert_eq!(poll.take_end(), None);
    }
}
