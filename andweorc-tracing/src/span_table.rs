//! Table of what is known of spans, by id; sharded, so that threads seldom meet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing_core::span::Id;

const SHARDS: usize = 64;

/// Span ids are unique among open spans and spread by their registry, and call sites are known by
/// their addresses: multiplying is hash enough.
#[derive(Default)]
pub(crate) struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // 2^64 over the golden ratio, as in Fibonacci hashing (Knuth, TAOCP 3, section 6.4).
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, address: usize) {
        self.write_u64(address as u64);
    }

    fn finish(&self) -> u64 {
        // The low bits of addresses are all alike, and so are those of their products.
        self.0 ^ (self.0 >> 32)
    }
}

type Shard<T> = HashMap<u64, T, BuildHasherDefault<Multiply>>;

/// Table of what is known of some spans of one subscriber.
#[derive(Debug)]
pub(crate) struct Table<T> {
    shards: [Mutex<Shard<T>>; SHARDS],
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl std::fmt::Debug for Multiply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Multiply")
    }
}

impl<T> Table<T> {
    fn shard(&self, id: &Id) -> MutexGuard<'_, Shard<T>> {
        let id = id.into_u64();
        // In the registry the low bits count up, and those from the 38th on name its thread.
        let shard = (id ^ (id >> 38)) as usize % SHARDS;
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, id: &Id, open: T) {
        self.shard(id).insert(id.into_u64(), open);
    }

    pub(crate) fn remove(&self, id: &Id) -> Option<T> {
        self.shard(id).remove(&id.into_u64())
    }

    /// Returns what `f` makes of what is known of a span.
    pub(crate) fn with<R>(&self, id: &Id, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.shard(id).get_mut(&id.into_u64()).map(f)
    }

    /// How many spans are in it.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }
}
