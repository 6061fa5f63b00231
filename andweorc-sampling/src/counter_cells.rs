//! The counters of a thread, as the handler of its signal knows them.

use andweorc_profile::settings::CountedEvent;
use std::os::fd::RawFd;
use std::slice;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Counters of a thread at most.
pub const MOST: usize = CountedEvent::ALL.len();

/// The counters of a thread, in the order of the events.
#[derive(Debug)]
pub(crate) struct Cells([CounterCell; MOST]);

/// A counter of a thread.
#[derive(Debug)]
pub(crate) struct CounterCell {
    /// The descriptor; -1 where there was none yet.
    file: AtomicI32,
    /// Events that an overflow stands for; 0 while none count.
    period: AtomicU64,
    /// Overflows whose samples found room, all told.
    seen: AtomicU64,
}

// Relaxed, all of these: numbers that stand for themselves. An overflow at the moment at which one
// changes counts by the one before or by the new one.
impl Cells {
    pub(crate) fn new() -> Cells {
        Cells(std::array::from_fn(|_| CounterCell {
            file: AtomicI32::new(-1),
            period: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        }))
    }

    pub(crate) fn each(&self) -> slice::Iter<'_, CounterCell> {
        self.0.iter()
    }

    /// The counter of this number.
    pub(crate) fn number(&self, number: usize) -> &CounterCell {
        &self.0[number]
    }

    /// The number of the counter with this descriptor. Async-signal-safe.
    pub(crate) fn find(&self, file: RawFd) -> Option<usize> {
        if file < 0 {
            return None;
        }
        self.0.iter().position(|cell| cell.file.load(Ordering::Relaxed) == file)
    }

    /// The descriptor is none of a counter any more. Until then it stays known, so that an overflow
    /// that was on its way when the counter was closed is taken for nothing else.
    pub(crate) fn forget(&self, file: RawFd) {
        if let Some(number) = self.find(file) {
            self.0[number].file.store(-1, Ordering::Relaxed);
        }
    }
}

impl CounterCell {
    /// The counter has this descriptor from now on.
    pub(crate) fn open(&self, file: RawFd, period: u64) {
        self.file.store(file, Ordering::Relaxed);
        self.set_period(period);
    }

    /// Sets the events that an overflow stands for; none counts with 0.
    pub(crate) fn set_period(&self, period: u64) {
        self.period.store(period, Ordering::Relaxed);
    }

    /// Events that an overflow stands for; 0 where it does not count. Async-signal-safe.
    pub(crate) fn period(&self) -> u64 {
        self.period.load(Ordering::Relaxed)
    }

    /// An overflow is a sample. Async-signal-safe.
    pub(crate) fn saw(&self) {
        self.seen.fetch_add(1, Ordering::Relaxed);
    }

    /// Overflows that were samples, all told.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }
}

/// Readings of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Events so far.
    pub(crate) count: u64,
    /// Time for which the thread ran, ns.
    pub(crate) enabled: u64,
    /// Of that, the time for which the event was counted, ns.
    pub(crate) running: u64,
}

impl Reading {
    pub(crate) fn since(self, before: Reading) -> Reading {
        Reading {
            count: self.count.saturating_sub(before.count),
            enabled: self.enabled.saturating_sub(before.enabled),
            running: self.running.saturating_sub(before.running),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_of_a_closed_counter_is_known_until_another_event_has_it() {
        let cells = Cells::new();
        assert_eq!(cells.find(-1), None);
        cells.number(2).open(9, 7);
        cells.number(2).set_period(0);
        assert_eq!((cells.find(9), cells.number(2).period()), (Some(2), 0));
        cells.forget(9);
        assert_eq!(cells.find(9), None);
    }
}
