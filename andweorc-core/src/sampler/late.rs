//! How late the signal of a sample comes: by the time that the interrupt before it takes, some 25 us on a virtual machine.
//!
//! What the thread was doing when it was interrupted is known, but by the time that the handler can read a clock it is later, by so much that a
//! course would not be inside the target for as long. So it is measured, where it can be: a thread that spins at the end of a pause reads
//! the clock all the time, and if it is sampled there, its last look was when the interrupt came.

use crate::time::{Nanos, Real};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// By how much the median is moved for each one that is on either side of it.
const STEP: i64 = 500;

thread_local! {
    // Without a destructor, so that a signal handler may read it.
    static SPINS: Cell<Option<Real>> = const { Cell::new(None) };
}

/// The median, ns.
static LATE: AtomicI64 = AtomicI64::new(0);

/// The calling thread, which spins, has looked at the clock: it is `now`. `None` when it spins no more.
#[inline]
pub(crate) fn spins(now: Option<Real>) {
    SPINS.set(now);
}

/// The calling thread is in the handler of a sample. It is `now`. Async-signal-safe.
pub(crate) fn sampled(now: Real) {
    if let Some(spun) = SPINS.get() {
        count(&LATE, now - spun);
    }
}

/// How late a sample is, as far as that is known. Async-signal-safe.
pub(crate) fn late() -> Nanos {
    Nanos(LATE.load(Ordering::Relaxed))
}

// Relaxed, all: an estimate that publishes nothing else, and that may well miss one of two that come at once.
fn count(median: &AtomicI64, late: Nanos) {
    let so_far = median.load(Ordering::Relaxed);
    median.store(so_far + STEP * (late.0 - so_far).signum(), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_found_whatever_the_rest() {
        let median = AtomicI64::new(0);
        for i in 0..1000 {
            let late =
                if i % 4 == 0 { Nanos::from_millis(3) } else { Nanos::from_micros(20 + i % 3) };
            count(&median, late);
        }
        let median = median.load(Ordering::Relaxed);
        assert!((20_000..24_000).contains(&median), "{median}");
    }
}
