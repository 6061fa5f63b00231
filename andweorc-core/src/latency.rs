//! The latencies of a point, in little memory where there are few.
//!
//! A histogram with three significant digits has some 70 kB, and a program may have ten thousand spans, each seen by several threads. So
//! the first latencies of a stretch are kept one by one, and a histogram is made when there are many; a point that has had few over a whole stretch
//! gives its histogram back.

use crate::time::Nanos;
use hdrhistogram::Histogram;
use std::mem;
use std::sync::LazyLock;

/// So many latencies are kept one by one.
const FEW: usize = 512;

/// Latencies that one group of threads recorded, ns.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    few: Vec<Packed>,
    many: Option<Box<Histogram<u64>>>,
}

/// A latency in half the memory: its first 24 bits, and how many more there were. Those tell which place of the histogram is meant, which has
/// 11 bits to go by.
#[derive(Clone, Copy, Debug)]
struct Packed(u32);

impl Packed {
    fn new(ns: u64) -> Packed {
        let more = (u64::BITS - ns.leading_zeros()).saturating_sub(24);
        Packed(more << 24 | (ns >> more) as u32)
    }

    fn ns(self) -> u64 {
        u64::from(self.0 & 0xff_ffff) << (self.0 >> 24)
    }
}

impl Latencies {
    /// Records one.
    pub(crate) fn record(&mut self, ns: u64) {
        match &mut self.many {
            Some(many) => add(many, ns),
            None => {
                self.few.push(Packed::new(ns));
                if self.few.len() == FEW {
                    self.become_many();
                }
            }
        }
    }

    #[cold]
    fn become_many(&mut self) {
        let mut many = Box::new(histogram());
        for few in mem::take(&mut self.few) {
            add(&mut many, few.ns());
        }
        self.many = Some(many);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.few = Vec::new();
        match &mut self.many {
            Some(many) if many.len() >= FEW as u64 => many.reset(),
            _ => self.many = None,
        }
    }
}

/// What was taken from all groups of threads.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    few: Vec<u64>,
    many: Option<Histogram<u64>>,
}

impl Taken {
    /// Takes what is there.
    pub(crate) fn take(&mut self, from: &mut Latencies) {
        self.few.extend(from.few.drain(..).map(Packed::ns));
        if let Some(more) = &from.many {
            let many = self.many.get_or_insert_with(histogram);
            many.add(more.as_ref()).expect("both histograms resize themselves");
        }
        from.clear();
    }

    /// As (ns, count) pairs in rising order.
    pub(crate) fn into_pairs(self) -> Vec<(u64, u64)> {
        match self.many {
            Some(mut many) => {
                self.few.into_iter().for_each(|ns| add(&mut many, ns));
                many.iter_recorded()
                    .map(|it| (it.value_iterated_to(), it.count_since_last_iteration()))
                    .collect()
            }
            None => pairs(self.few),
        }
    }
}

/// The pairs that a histogram of these would have.
fn pairs(mut ns: Vec<u64>) -> Vec<(u64, u64)> {
    static EMPTY: LazyLock<Histogram<u64>> = LazyLock::new(histogram);
    ns.sort_unstable();
    let mut pairs: Vec<(u64, u64)> = Vec::new();
    for ns in ns {
        let value = EMPTY.highest_equivalent(ns);
        match pairs.last_mut() {
            Some((last, count)) if *last == value => *count += 1,
            _ => pairs.push((value, 1)),
        }
    }
    pairs
}

/// Not `saturating_record`: that holds a latency to be the histogram's bound when it is above it, and never resizes.
fn add(histogram: &mut Histogram<u64>, ns: u64) {
    histogram.record(ns).expect("it resizes itself");
}

/// Three significant digits, so that a change of 1 % is well above the resolution; grows by itself.
fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(
        Nanos::from_micros(1).0 as u64,
        Nanos::from_millis(100).0 as u64,
        3,
    )
    .expect("the bounds are valid");
    histogram.auto(true);
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(latencies: &mut Latencies) -> Vec<(u64, u64)> {
        let mut taken = Taken::default();
        taken.take(latencies);
        taken.into_pairs()
    }

    /// Latencies from 0 to some seconds, beyond the first bounds of the histogram too.
    fn some(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(|i| i.pow(3) * 97 % 5_000_000_000)
    }

    #[test]
    fn few_are_told_as_many_are() {
        let mut few = Latencies::default();
        some(FEW as u64 - 1).for_each(|ns| few.record(ns));
        assert!(few.many.is_none());
        let mut all = histogram();
        some(FEW as u64 - 1).for_each(|ns| add(&mut all, ns));
        let expected: Vec<_> = all
            .iter_recorded()
            .map(|it| (it.value_iterated_to(), it.count_since_last_iteration()))
            .collect();
        assert_eq!(taken(&mut few), expected);
    }

    #[test]
    fn packed_latencies_keep_their_place() {
        let empty = histogram();
        for ns in (0..64).map(|bits| u64::MAX >> bits).chain(some(1000)).chain([1 << 40]) {
            let packed = Packed::new(ns).ns();
            assert!(packed <= ns && ns - packed <= ns >> 23, "{ns}");
            assert_eq!(empty.lowest_equivalent(packed), empty.lowest_equivalent(ns), "{ns}");
        }
    }

    #[test]
    fn a_latency_of_minutes_is_one_of_minutes() {
        let minutes = 300_000_000_000_u64;
        for n in [1, 3 * FEW] {
            let mut latencies = Latencies::default();
            (0..n).for_each(|_| latencies.record(minutes));
            let pairs = taken(&mut latencies);
            assert_eq!((pairs.len(), pairs[0].1), (1, n as u64));
            assert!(pairs[0].0.abs_diff(minutes) < minutes / 1000, "{pairs:?}");
        }
    }

    #[test]
    fn few_and_many_of_different_threads_are_added_up() {
        let (mut few, mut many) = (Latencies::default(), Latencies::default());
        some(10).for_each(|ns| few.record(ns));
        some(3 * FEW as u64).for_each(|ns| many.record(ns));
        assert!(many.many.is_some());
        let mut all = Taken::default();
        all.take(&mut few);
        all.take(&mut many);
        let counts: u64 = all.into_pairs().iter().map(|&(_, count)| count).sum();
        assert_eq!(counts, 10 + 3 * FEW as u64);
    }

    #[test]
    fn what_was_taken_is_gone_and_idle_points_keep_no_memory() {
        let mut latencies = Latencies::default();
        some(FEW as u64).for_each(|ns| latencies.record(ns));
        assert!(!taken(&mut latencies).is_empty());
        assert_eq!(taken(&mut latencies), []);
        assert!(latencies.many.is_none() && latencies.few.capacity() == 0);
        latencies.record(1);
        latencies.clear();
        assert!(latencies.few.capacity() == 0);
    }
}
