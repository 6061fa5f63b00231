//! How long tasks of one kind wait for the world outside.

use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Two an octave, from 2^[`SHORTEST`] ns, about 1 us, up to 17 s.
const BUCKETS: usize = 48;
const SHORTEST: u32 = 10;

/// A bucket that has counted so many forgets half of them: a service changes.
const MOST: u64 = 256;

/// The waits of tasks of one kind whose end was noticed at once: a histogram, since one task waits now for a timer, now for a database.
#[derive(Debug)]
pub struct Typical {
    buckets: [Bucket; BUCKETS],
}

#[derive(Debug, Default)]
struct Bucket {
    count: AtomicU64,
    /// ns.
    sum: AtomicU64,
}

// All accesses are Relaxed: it is a guess, and of two threads that count at once one may be forgotten.

impl Bucket {
    fn count(&self, waited: u64) {
        let (count, sum) = (self.count.load(Relaxed) + 1, self.sum.load(Relaxed) + waited);
        let half = u32::from(count >= MOST);
        self.count.store(count >> half, Relaxed);
        self.sum.store(sum >> half, Relaxed);
    }

    /// How many, and their mean.
    fn get(&self) -> Option<(u64, Nanos)> {
        let count = self.count.load(Relaxed);
        let mean = self.sum.load(Relaxed).checked_div(count)?;
        Some((count, Nanos(mean as i64)))
    }
}

impl Default for Typical {
    fn default() -> Typical {
        Typical { buckets: std::array::from_fn(|_| Bucket::default()) }
    }
}

impl Typical {
    /// Counts one.
    pub fn count(&self, waited: Nanos) {
        let waited = waited.0.max(0) as u64;
        self.buckets[index(waited)].count(waited);
    }

    /// The best guess of the length of a wait that is known to be from `least` to `most`: the mean of those that were. Where none was, the end
    /// that all were beyond, or else the middle.
    pub(crate) fn between(&self, least: Nanos, most: Nanos) -> Nanos {
        let seen = || self.buckets.iter().filter_map(Bucket::get);
        let (count, sum) = seen()
            .filter(|&(_, mean)| least <= mean && mean <= most)
            .fold((0, 0), |(count, sum), (n, mean)| (count + n, sum + n * mean.0 as u64));
        if let Some(mean) = sum.checked_div(count) {
            return Nanos(mean as i64);
        }
        match (seen().any(|(_, mean)| mean < least), seen().any(|(_, mean)| mean > most)) {
            (true, false) => least,
            (false, true) => most,
            _ => least + Nanos((most - least).0 / 2),
        }
    }
}

/// The bucket of a wait, ns.
fn index(waited: u64) -> usize {
    let octave = waited.max(1).ilog2();
    let upper_half = (waited >> octave.saturating_sub(1)) & 1;
    let from_shortest = (2 * octave + upper_half as u32).saturating_sub(2 * SHORTEST);
    (from_shortest as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: i64) -> Nanos {
        Nanos::from_micros(us)
    }

    #[test]
    fn what_is_known_of_a_wait_tells_which_one_it_was() {
        let typical = Typical::default();
        for _ in 0..10 {
            typical.count(us(400));
            typical.count(us(1000));
        }
        assert_eq!(typical.between(us(300), us(500)), us(400));
        assert_eq!(typical.between(us(500), us(2000)), us(1000), "it had not come by 500");
        assert_eq!(typical.between(us(0), us(2000)), us(700), "either");
    }

    #[test]
    fn a_wait_unlike_all_others_is_as_near_to_them_as_can_be() {
        let typical = Typical::default();
        assert_eq!(typical.between(us(100), us(200)), us(150), "nothing is known");
        typical.count(us(400));
        assert_eq!(typical.between(us(500), us(600)), us(500));
        assert_eq!(typical.between(us(100), us(200)), us(200));
        typical.count(us(50));
        assert_eq!(typical.between(us(100), us(200)), us(150));
    }

    #[test]
    fn old_waits_are_forgotten() {
        let typical = Typical::default();
        for _ in 0..10_000 {
            typical.count(us(1100));
        }
        for _ in 0..2000 {
            typical.count(us(1300));
        }
        let now = typical.between(us(1050), us(1350));
        assert!(now > us(1295), "{now:?}");
    }

    #[test]
    fn buckets_are_two_an_octave() {
        assert_eq!(index(0), 0);
        assert_eq!(index(1024), 0);
        assert_eq!(index(1535), 0);
        assert_eq!(index(1536), 1);
        assert_eq!(index(2048), 2);
        assert_eq!(index(u64::MAX), BUCKETS - 1);
    }
}
