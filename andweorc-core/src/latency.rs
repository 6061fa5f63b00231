//! The latencies of points, in memory that is bounded whatever the number of points and threads.
//!
//! A program may have ten thousand spans, each closed on many threads. So a latency first goes to a
//! short list of its thread, one for all points, which is written without a lock and lies in the
//! cache. When it is full it is sorted by points, and added to the one [histogram](bins) that each
//! of them has. Whoever takes the latencies of a point first has all lists added.

mod bins;
mod pending;

use crate::sync::{Mutex, RwLock};
use bins::{Bins, Key};
use std::mem;

/// All histograms, by the number of their [`Latencies`].
static ALL: RwLock<Vec<&'static Mutex<Bins>>> = RwLock::new(Vec::new());

/// The latencies of a point, ns. Lives as long as the process.
#[derive(Debug)]
pub(crate) struct Latencies {
    number: u32,
    bins: &'static Mutex<Bins>,
}

impl Latencies {
    /// Without any.
    pub(crate) fn new() -> Latencies {
        let bins: &Mutex<Bins> = Box::leak(Box::default());
        let mut all = ALL.write();
        let number = u32::try_from(all.len()).expect("points are numbered by u32");
        all.push(bins);
        Latencies { number, bins }
    }

    /// Records one.
    #[inline]
    pub(crate) fn record(&self, ns: u64) {
        pending::record(self.number, Key::of(ns));
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        pending::settle();
        drop(mem::take(&mut *self.bins.lock()));
    }

    /// Takes all, as (ns, count) pairs in rising order.
    pub(crate) fn take(&self) -> Vec<(u64, u64)> {
        pending::settle();
        let taken = mem::take(&mut *self.bins.lock());
        taken.pairs()
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
        let points = [Latencies::new(), Latencies::new(), Latencies::new()];
        let all = Barrier::new(THREADS as usize + 1);
        let mut taken = [0; 3];
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    all.wait();
                    for i in 0..EACH {
                        let point = (i % 3) as usize;
                        points[point].record(1_000 << point);
                    }
                    all.wait();
                });
            }
            all.wait();
            // Some are taken while others come.
            for (point, taken) in points.iter().zip(&mut taken) {
                *taken = counts(&point.take());
            }
            all.wait();
        });
        for (i, point) in points.iter().enumerate() {
            let pairs = point.take();
            assert!(pairs.iter().all(|&(ns, _)| ns.abs_diff(1_000 << i) <= 1), "{i}: {pairs:?}");
            taken[i] += counts(&pairs);
            let i = i as u64;
            assert_eq!(taken[i as usize], THREADS * (EACH / 3 + u64::from(i < EACH % 3)));
        }
    }

    #[test]
    fn latencies_taken_or_cleared_are_gone() {
        let latencies = Latencies::new();
        latencies.record(5_000);
        assert_eq!(counts(&latencies.take()), 1);
        assert_eq!(latencies.take(), []);
        latencies.record(5_000);
        latencies.clear();
        assert_eq!(latencies.take(), []);
    }
}
