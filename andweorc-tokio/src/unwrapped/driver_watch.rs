//! The worker that would look into the driver of one runtime, were nothing held, and when one last
//! did.

use crate::thread_key::{NOBODY, thread_key};
use andweorc_core::hooks::clock;
use andweorc_core::hooks::thread::ledger;
use andweorc_core::hooks::time::Virtual;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// Record of the worker of a runtime that would look into its driver, were nothing held.
///
/// Whoever leaves the driver has something to run, and is [idle](Watch::idle) again after it: so
/// somebody always comes to look.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The worker that would wait there, or [`NOBODY`].
    watcher: AtomicUsize,
    /// Up to when somebody would have looked, virtual ns.
    looked: AtomicI64,
}

// All accesses are Relaxed: they publish nothing else, and two workers that come to the driver at
// the same moment come there in either order.

impl Watch {
    pub(crate) const fn new() -> Watch {
        Watch { watcher: AtomicUsize::new(NOBODY), looked: AtomicI64::new(i64::MIN) }
    }

    /// The calling thread has nothing to do from now on: it looks, unless another one does.
    pub(super) fn idle(&self) {
        if self.watcher.compare_exchange(NOBODY, thread_key(), Relaxed, Relaxed).is_ok() {
            self.looks();
        }
    }

    /// Records that the calling thread has something to do, which another one had `found` in the
    /// driver, or not.
    pub(super) fn busy(&self, found: bool) {
        let watcher = self.watcher.load(Relaxed);
        if watcher == thread_key() || (found && watcher != NOBODY) {
            self.looks();
            self.watcher.compare_exchange(watcher, NOBODY, Relaxed, Relaxed).ok();
        }
    }

    /// Whether it is the calling thread that would wait there.
    pub(super) fn is_mine(&self) -> bool {
        self.watcher.load(Relaxed) == thread_key()
    }

    fn looks(&self) {
        self.looked.fetch_max(ledger().virtual_now(clock::now()).0, Relaxed);
    }

    /// Whether what lies in the driver since `ready` would have been found.
    pub(super) fn finds(&self, ready: Virtual) -> bool {
        self.watcher.load(Relaxed) != NOBODY || ready.0 <= self.looked.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andweorc_core::time::Nanos;
    use std::thread;

    /// V in a moment, which nobody has got to.
    fn soon() -> Virtual {
        ledger().virtual_now(clock::now() + Nanos::from_millis(3_600_000))
    }

    fn as_another<T: Send>(does: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(does).join().unwrap())
    }

    #[test]
    fn while_the_watcher_works_nobody_finds_what_comes() {
        let watch = Watch::new();
        watch.idle();
        assert!(watch.finds(soon()), "somebody is there");
        let before = ledger().virtual_now(clock::now());
        as_another(|| watch.idle());
        watch.busy(false);
        assert!(watch.finds(before) && !watch.finds(soon()));
        watch.idle();
        assert!(watch.finds(soon()), "it is back");
    }

    #[test]
    fn idle_worker_watches_once_the_watcher_is_busy() {
        let watch = Watch::new();
        watch.idle();
        watch.busy(false);
        as_another(|| {
            watch.idle();
            assert!(watch.finds(soon()));
            watch.busy(false);
        });
        assert!(!watch.finds(soon()));
    }

    #[test]
    fn worker_running_what_another_found_is_busy_in_its_place() {
        let watch = Watch::new();
        watch.idle();
        as_another(|| {
            watch.busy(false);
            assert!(watch.finds(soon()), "what it runs does not come from there");
            watch.busy(true);
            assert!(!watch.finds(soon()));
            watch.idle();
            assert!(watch.finds(soon()));
        });
        watch.idle();
        watch.busy(false);
        assert!(watch.finds(soon()), "the other one watches now");
    }
}
