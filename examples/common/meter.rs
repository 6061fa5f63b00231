//! Counts what a program gets done, and how long each took.

use hdrhistogram::Histogram;
use std::sync::Mutex;
use std::time::Instant;

/// Latencies of what got done since they were taken last.
#[derive(Debug)]
pub(crate) struct Meter(Mutex<Histogram<u64>>);

impl Meter {
    pub(crate) fn new() -> Meter {
        Meter(Mutex::new(histogram()))
    }

    /// One more is done, begun at `start`.
    pub(crate) fn done(&self, start: Instant) {
        let us = start.elapsed().as_micros() as u64;
        self.0.lock().expect("no one panics with the meter").saturating_record(us);
    }

    /// Takes what came together since the last time, in microseconds.
    pub(crate) fn take(&self) -> Histogram<u64> {
        std::mem::replace(&mut *self.0.lock().expect("no one panics with the meter"), histogram())
    }
}

/// A histogram of microseconds, up to a minute.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in order")
}
