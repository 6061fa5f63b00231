//! Counters that many threads raise and one reads, without a shared cache line on the way.

use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of shards. Threads share a shard from the ninth on.
pub(crate) const SHARDS: usize = 8;

/// The calling thread's shard, given out round robin.
pub(crate) fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    SHARD.with(|cell| {
        let mut shard = cell.get();
        if shard == usize::MAX {
            // Relaxed: only uniqueness matters, and a read-modify-write gives that at any ordering.
            shard = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
            cell.set(shard);
        }
        shard
    })
}

/// A monotonic count, sharded by thread.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    shards: [CachePadded<AtomicU64>; SHARDS],
}

impl Counter {
    /// Adds `n`.
    pub(crate) fn add(&self, n: u64) {
        // Relaxed: the count publishes nothing but itself.
        self.shards[shard()].fetch_add(n, Ordering::Relaxed);
    }

    /// The sum over all threads. Adds that run at the same time may or may not be in it; none is lost or counted twice
    /// between two reads.
    pub(crate) fn get(&self) -> u64 {
        self.shards.iter().map(|shard| shard.load(Ordering::Relaxed)).sum()
    }
}
