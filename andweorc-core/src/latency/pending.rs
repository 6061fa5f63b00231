//! Latencies that are in no histogram yet: a short list for each shard of
//! [counters](crate::counter), that is, for each of the first threads, and for each group of those
//! beyond.
//!
//! A list is a ring of words. Only its thread writes, and tells of it by raising `written`; threads
//! that share a list do so one at a time. Whoever holds `settles` adds what was written to the
//! histograms, and tells of it by raising `settled`, after which the places are written anew. So a
//! thread takes a lock only when its list is full.

use super::Histograms;
use super::bins::Key;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Latencies of a list.
const ROOM: usize = 128;

/// The list of a shard.
#[derive(Debug)]
pub(super) struct Pending {
    /// How many were written so far.
    written: AtomicUsize,
    /// How many of those are in histograms.
    settled: AtomicUsize,
    /// The number of a point, and a [`Key`] in the last 16 bits.
    ring: [AtomicU64; ROOM],
    /// Held while writing to a list that threads share.
    writes: Mutex<()>,
    /// Held while adding to histograms.
    settles: Mutex<()>,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending {
            written: AtomicUsize::new(0),
            settled: AtomicUsize::new(0),
            ring: [const { AtomicU64::new(0) }; ROOM],
            writes: Mutex::default(),
            settles: Mutex::default(),
        }
    }
}

impl Histograms {
    /// Records a latency of the point with this number.
    #[inline]
    pub(super) fn record(&self, number: u32, key: Key) {
        let word = u64::from(number) << u16::BITS | u64::from(key.0);
        let (pending, owned) = self.pending.own();
        if owned { pending.write(self, word) } else { pending.write_alone(self, word) }
    }

    /// Adds all that were recorded before to their histograms.
    pub(super) fn settle(&self) {
        self.pending.iter().for_each(|pending| pending.settle(self));
    }
}

impl Pending {
    /// Only one thread at a time.
    #[inline]
    fn write(&self, histograms: &Histograms, word: u64) {
        // Relaxed: this thread wrote it, or the one that had the shard, or the lock, before.
        let written = self.written.load(Ordering::Relaxed);
        // Acquire, pairs with the Release in `settle`: what was in the place has been read.
        if written - self.settled.load(Ordering::Acquire) == ROOM {
            self.settle(histograms);
        }
        self.ring[written % ROOM].store(word, Ordering::Relaxed);
        // Release, pairs with the Acquire in `settle`: the word is there.
        self.written.store(written + 1, Ordering::Release);
    }

    /// Writes `word` to a list that threads share.
    #[cold]
    #[inline(never)]
    fn write_alone(&self, histograms: &Histograms, word: u64) {
        let _one_at_a_time = self.writes.lock();
        self.write(histograms, word);
    }

    #[cold]
    #[inline(never)]
    fn settle(&self, histograms: &Histograms) {
        // Acquire, pairs with the Release below: what was settled is in the histograms.
        if self.written.load(Ordering::Relaxed) == self.settled.load(Ordering::Acquire) {
            return;
        }
        let _settles = self.settles.lock();
        // Relaxed: whoever raised it held the lock.
        let settled = self.settled.load(Ordering::Relaxed);
        // Acquire, pairs with the Release in `write`.
        let written = self.written.load(Ordering::Acquire);
        let mut words = [0; ROOM];
        let words = &mut words[..written - settled];
        for (word, place) in words.iter_mut().zip(settled..) {
            *word = self.ring[place % ROOM].load(Ordering::Relaxed);
        }
        words.sort_unstable();
        let all = histograms.all.read();
        for of_a_point in words.chunk_by(|one, next| one >> u16::BITS == next >> u16::BITS) {
            let mut bins = all[(of_a_point[0] >> u16::BITS) as usize].lock();
            let before = bins.held();
            // Relaxed, here and below: whether there is much need not be known to the byte.
            let held_by_all = histograms.held.load(Ordering::Relaxed);
            bins.add(of_a_point.iter().map(|&word| Key(word as u16)), held_by_all);
            histograms.held.fetch_add(bins.held() - before, Ordering::Relaxed);
        }
        // Release, pairs with the Acquire in `write`, and with that above.
        self.settled.store(written, Ordering::Release);
    }
}
