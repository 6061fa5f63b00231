//! The latencies of points, in memory that is bounded whatever the number of points and threads.
//!
//! A program may have ten thousand spans, each closed on many threads. So a latency first goes to a
//! short list of its thread, one for all points, which is written without a lock and lies in the
//! cache. When it is full it is sorted by points, and added to the one [histogram](bins) that each
//! of them has. Whoever takes the latencies of a point first has all lists added.

pub(crate) mod bins;
mod pending;

use crate::counter::PerShard;
use crate::sync::{Mutex, RwLock};
use bins::{Bins, Key};
use pending::Pending;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The histograms of the points of a process.
#[derive(Debug)]
pub(crate) struct Histograms {
    /// By the number of their [`Latencies`].
    all: RwLock<Vec<&'static Mutex<Bins>>>,
    /// Latencies that are in none yet.
    pending: PerShard<Pending>,
    /// Memory of all, bytes.
    held: AtomicUsize,
}

impl Histograms {
    /// None yet.
    pub(crate) const fn new() -> Histograms {
        Histograms {
            all: RwLock::new(Vec::new()),
            pending: PerShard::new(),
            held: AtomicUsize::new(0),
        }
    }
}

/// The latencies of a point, ns. Lives as long as the process, whose histograms each method is
/// given.
#[derive(Debug)]
pub(crate) struct Latencies {
    number: u32,
    bins: &'static Mutex<Bins>,
}

impl Latencies {
    /// Without any.
    pub(crate) fn new(histograms: &Histograms) -> Latencies {
        let bins: &Mutex<Bins> = Box::leak(Box::default());
        let mut all = histograms.all.write();
        let number = u32::try_from(all.len()).expect("points are numbered by u32");
        all.push(bins);
        Latencies { number, bins }
    }

    /// Records one.
    #[inline]
    pub(crate) fn record(&self, histograms: &Histograms, ns: u64) {
        histograms.record(self.number, Key::of(ns));
    }

    /// Forgets all.
    pub(crate) fn clear(&self, histograms: &Histograms) {
        self.take_bins(histograms);
    }

    /// Takes all, as (ns, count) pairs in rising order.
    pub(crate) fn take(&self, histograms: &Histograms) -> Vec<(u64, u64)> {
        self.take_bins(histograms).pairs()
    }

    fn take_bins(&self, histograms: &Histograms) -> Bins {
        histograms.settle();
        let taken = mem::take(&mut *self.bins.lock());
        // Relaxed: whether there is much need not be known to the byte.
        histograms.held.fetch_sub(taken.held(), Ordering::Relaxed);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    fn counts(pairs: &[(u64, u64)]) -> u64 {
        pairs.iter().map(|&(_, count)| count).sum()
    }

    #[test]
    fn no_latency_of_any_thread_is_lost_or_of_another_point() {
        const THREADS: u64 = 80;
        const EACH: u64 = 1_000;
        let histograms = Histograms::new();
        let points = [(); 3].map(|()| Latencies::new(&histograms));
        let all = Barrier::new(THREADS as usize + 1);
        let mut taken = [0; 3];
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    all.wait();
                    for i in 0..EACH {
                        let point = (i % 3) as usize;
                        points[point].record(&histograms, 1_000 << point);
                    }
                    all.wait();
                });
            }
            all.wait();
            // Some are taken while others come.
            for (point, taken) in points.iter().zip(&mut taken) {
                *taken = counts(&point.take(&histograms));
            }
            all.wait();
        });
        for (i, point) in points.iter().enumerate() {
            let pairs = point.take(&histograms);
            assert!(pairs.iter().all(|&(ns, _)| ns.abs_diff(1_000 << i) <= 1), "{i}: {pairs:?}");
            taken[i] += counts(&pairs);
            let i = i as u64;
            assert_eq!(taken[i as usize], THREADS * (EACH / 3 + u64::from(i < EACH % 3)));
        }
    }

    #[test]
    fn latencies_taken_or_cleared_are_gone() {
        let histograms = Histograms::new();
        let latencies = Latencies::new(&histograms);
        latencies.record(&histograms, 5_000);
        assert_eq!(counts(&latencies.take(&histograms)), 1);
        assert_eq!(latencies.take(&histograms), []);
        latencies.record(&histograms, 5_000);
        latencies.clear(&histograms);
        assert_eq!(latencies.take(&histograms), []);
        assert_eq!(histograms.held.load(Ordering::Relaxed), 0);
    }
}
