//! Hits of points, by threads of this process.

use super::Point;
use crate::process::{ledger, process};
use crate::thread;
use crate::time::Virtual;
use std::cell::RefCell;
use std::sync::atomic::Ordering;

thread_local! {
    /// Intervals begun on this thread and not ended.
    static BEGUN: RefCell<Vec<(u32, Virtual)>> = const { RefCell::new(Vec::new()) };
}

fn with_begun<R>(f: impl FnOnce(&mut Vec<(u32, Virtual)>) -> R) -> Option<R> {
    BEGUN.try_with(|begun| Some(f(&mut *begun.try_borrow_mut().ok()?))).ok().flatten()
}

impl Point {
    /// Counts one unit of work.
    #[inline]
    pub fn hit(&self) {
        self.count.add([1]);
        thread::hits(self.id);
    }

    /// Counts one unit of work that took from `begin` to `end`, both in the virtual time of whoever
    /// did it then. How long that was is recorded while an experiment or a baseline is held: nobody
    /// else asks for it.
    pub fn hit_interval(&self, begin: Virtual, end: Virtual) {
        self.count.add([1]);
        if ledger().is_held() {
            let ns = u64::try_from((end - begin).0).unwrap_or(0);
            self.latencies.record(&process().points.histograms, ns);
        }
        thread::hits(self.id);
    }

    /// Forgets the latencies recorded since the last call.
    pub(crate) fn discard_latencies(&self) {
        self.latencies.clear(&process().points.histograms);
    }

    /// Takes the latencies recorded since the last call, as (ns, count) pairs in rising order.
    pub fn take_latencies(&self) -> Vec<(u64, u64)> {
        self.latencies.take(&process().points.histograms)
    }

    /// Begins an interval of this latency point on the calling thread.
    pub fn begin(&self) {
        let now = thread::virtual_now();
        // In a thread's last destructors, and in an allocator that is called from here, there is no
        // place to keep it: its end will be unmatched.
        with_begun(|begun| begun.push((self.id, now))).unwrap_or_default();
    }

    /// Ends the interval of this latency point that began last on the calling thread. Without one
    /// it is counted as [`unmatched`](super::unmatched). While andweorc is off neither is, but the
    /// interval is over.
    pub fn end(&self) {
        let begin = with_begun(|begun| {
            let last = begun.iter().rposition(|&(id, _)| id == self.id)?;
            Some(begun.remove(last).1)
        });
        if !thread::enabled() {
            return;
        }
        match begin.flatten() {
            Some(begin) => self.hit_interval(begin, thread::virtual_now()),
            None => {
                // Relaxed: a count that publishes nothing else.
                process().points.unmatched.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
