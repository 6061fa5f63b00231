//! A word for each task, without a lock, by the number that the task is known by.

use std::sync::atomic::{AtomicU64, Ordering};

/// Places, of which a task has one: where two tasks meet in one, the first is forgotten.
const PLACES: usize = 4096;

/// Words by task: in each place the tag of the task, and its word.
#[derive(Debug)]
pub(super) struct ByTask([AtomicU64; PLACES]);

impl ByTask {
    pub(super) const fn new() -> ByTask {
        ByTask([const { AtomicU64::new(0) }; PLACES])
    }

    /// Keeps a word of a task, unless it has one.
    pub(super) fn put_first(&self, task: usize, word: u32) {
        // Relaxed: a number that stands for itself. Another thread may write meanwhile, which is
        // as if it had been first.
        if self.place(task).load(Ordering::Relaxed) >> 32 != tag_of(task) {
            self.put(task, word);
        }
    }

    /// Keeps a word of a task in the place of the one that it had.
    pub(super) fn put(&self, task: usize, word: u32) {
        // Relaxed: see `put_first`.
        self.place(task).store(tag_of(task) << 32 | u64::from(word), Ordering::Relaxed);
    }

    /// Takes the word of a task; 0 where it has none.
    pub(super) fn take(&self, task: usize) -> u32 {
        let place = self.place(task);
        // Relaxed: see `put_first`.
        let found = place.load(Ordering::Relaxed);
        if found >> 32 != tag_of(task) {
            return 0;
        }
        place.store(0, Ordering::Relaxed);
        found as u32
    }

    fn place(&self, task: usize) -> &AtomicU64 {
        &self.0[(hash(task) >> 52) as usize % PLACES]
    }
}

fn hash(task: usize) -> u64 {
    // 2^64 over the golden ratio, as in Fibonacci hashing.
    (task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Half of a task's hash that is never 0.
fn tag_of(task: usize) -> u64 {
    (hash(task) >> 16 & 0xffff_ffff) | 1
}
