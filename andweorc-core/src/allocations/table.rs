//! Counts of allocations by target, in shards: plain logic over numbers.
//!
//! A thread that has a number of its own counts in a shard of its own, by plain loads and stores;
//! the others share a few shards, and count atomically. What a target allocated and what was freed
//! of it only rise, so that sums over the shards are exact: a block that another thread frees is
//! freed in that thread's shard. Zeroes of the binary, in which the pages of memory that nobody
//! needs are never there.
//!
//! How much a target holds at most can't be told from sums. Each shard tells a common count what
//! its target holds more or less by the time that it is [`STEP`] bytes, and the highest that this
//! had is the peak: too low by at most a step for each thread that takes part, and never below what
//! is held as it is read.

use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
#[cfg(not(loom))]
use crate::thread::NUMBERS;
use andweorc_profile::TargetAllocations;

/// Shards that threads own. Under loom there are few, as each atomic is one of the model's.
#[cfg(not(loom))]
const OWNED: usize = NUMBERS;
#[cfg(loom)]
const OWNED: usize = 2;

/// Shards that other threads share: a power of two.
#[cfg(not(loom))]
const SHARED: usize = 16;
#[cfg(loom)]
const SHARED: usize = 1;

/// Targets that are told apart, by their ids; the last place is that of all others.
#[cfg(not(loom))]
pub(super) const TARGETS: usize = 4096;
#[cfg(loom)]
pub(super) const TARGETS: usize = 2;

/// By so many bytes what a target holds changes before it is told to all.
#[cfg(not(loom))]
const STEP: i64 = 64 << 10;
#[cfg(loom)]
const STEP: i64 = 10;

/// The place of a target in the table.
#[inline]
pub(super) fn place(target: u32) -> usize {
    (target as usize).min(TARGETS - 1)
}

/// Where a thread counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shard {
    index: usize,
    /// No other thread writes there.
    owned: bool,
}

impl Shard {
    /// The shard of the thread that owns this number.
    #[inline]
    pub(super) fn owned(number: usize) -> Shard {
        // The remainder takes no time, and no bounds are checked after it.
        Shard { index: number % OWNED, owned: true }
    }

    /// The shard of a thread that owns none.
    #[inline]
    pub(super) fn shared(thread: u32) -> Shard {
        Shard { index: OWNED + thread as usize % SHARED, owned: false }
    }
}

/// Counts of one target in one shard: a cache line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Counts {
    bytes: AtomicU64,
    count: AtomicU64,
    freed_bytes: AtomicU64,
    freed_count: AtomicU64,
    churned_bytes: AtomicU64,
    churned_count: AtomicU64,
    /// Bytes allocated less those freed that were not told to [`Held`] yet.
    untold: AtomicI64,
}

/// Bytes that one target holds, as far as they were told.
#[derive(Debug)]
struct Held {
    now: AtomicI64,
    peak: AtomicI64,
}

/// The counts of all shards and targets.
#[derive(Debug)]
pub(super) struct Table {
    shards: [[Counts; TARGETS]; OWNED + SHARED],
    held: [Held; TARGETS],
}

/// Adds to a count that only this thread writes to. Returns its new value.
// Relaxed, as are all accesses here: the counts publish nothing but themselves.
macro_rules! add_alone {
    ($to:expr, $by:expr) => {{
        let sum = $to.load(Ordering::Relaxed).wrapping_add($by);
        $to.store(sum, Ordering::Relaxed);
        sum
    }};
}

impl Counts {
    crate::sync::const_fn! {
    fn new() -> Counts {
        Counts {
            bytes: AtomicU64::new(0),
            count: AtomicU64::new(0),
            freed_bytes: AtomicU64::new(0),
            freed_count: AtomicU64::new(0),
            churned_bytes: AtomicU64::new(0),
            churned_count: AtomicU64::new(0),
            untold: AtomicI64::new(0),
        }
    }
    }
}

/// Counts that a shard is read by.
const COUNTS: usize = 6;

/// How often a shard is read again whose thread counted meanwhile.
const TRIES: usize = 8;

impl Counts {
    /// Counts a block in a shard of several threads. Returns what is untold.
    fn allocated_among_others(&self, size: u64) -> i64 {
        self.bytes.fetch_add(size, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.untold.fetch_add(size as i64, Ordering::Relaxed) + size as i64
    }

    /// Counts that a block is freed, in a shard of several threads. Returns what is untold.
    fn freed_among_others(&self, size: u64, churned: bool) -> i64 {
        self.freed_bytes.fetch_add(size, Ordering::Relaxed);
        self.freed_count.fetch_add(1, Ordering::Relaxed);
        if churned {
            self.churned_bytes.fetch_add(size, Ordering::Relaxed);
            self.churned_count.fetch_add(1, Ordering::Relaxed);
        }
        self.untold.fetch_sub(size as i64, Ordering::Relaxed) - size as i64
    }

    /// Bytes and blocks that were freed, of them those that churned, and those allocated. Read
    /// again where the thread counted meanwhile, so that as a rule bytes and blocks differ by one
    /// block at most.
    fn read(&self) -> [u64; COUNTS] {
        let read = || {
            let counts = [
                &self.freed_bytes,
                &self.freed_count,
                &self.churned_bytes,
                &self.churned_count,
                &self.bytes,
                &self.count,
            ];
            counts.map(|count| count.load(Ordering::Relaxed))
        };
        let mut last = read();
        for _ in 0..TRIES {
            let again = read();
            if again == last {
                break;
            }
            last = again;
        }
        last
    }
}

impl Held {
    crate::sync::const_fn! {
    fn new() -> Held {
        Held { now: AtomicI64::new(0), peak: AtomicI64::new(0) }
    }
    }
}

impl Table {
    /// A table in which nothing was counted.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Table {
        Table {
            shards: [const { [const { Counts::new() }; TARGETS] }; OWNED + SHARED],
            held: [const { Held::new() }; TARGETS],
        }
    }

    /// A table in which nothing was counted.
    #[cfg(loom)]
    pub(super) fn new() -> Table {
        use std::array::from_fn;
        Table { shards: from_fn(|_| from_fn(|_| Counts::new())), held: from_fn(|_| Held::new()) }
    }

    /// A block of so many bytes was allocated by the target at this place.
    #[inline]
    pub(super) fn allocated(&self, shard: Shard, place: usize, size: u64) {
        let counts = &self.shards[shard.index][place];
        let untold = if shard.owned {
            add_alone!(counts.bytes, size);
            add_alone!(counts.count, 1);
            add_alone!(counts.untold, size as i64)
        } else {
            counts.allocated_among_others(size)
        };
        self.tell_from(untold, counts, place);
    }

    /// A block of so many bytes that the target at this place allocated was freed, in the visit in
    /// which it was made if it `churned`.
    #[inline]
    pub(super) fn freed(&self, shard: Shard, place: usize, size: u64, churned: bool) {
        let counts = &self.shards[shard.index][place];
        let untold = if shard.owned {
            add_alone!(counts.freed_bytes, size);
            add_alone!(counts.freed_count, 1);
            if churned {
                add_alone!(counts.churned_bytes, size);
                add_alone!(counts.churned_count, 1);
            }
            add_alone!(counts.untold, -(size as i64))
        } else {
            counts.freed_among_others(size, churned)
        };
        self.tell_from(untold, counts, place);
    }

    #[inline]
    fn tell_from(&self, untold: i64, counts: &Counts, place: usize) {
        if untold.unsigned_abs() >= STEP as u64 {
            self.tell(counts, place);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell(&self, counts: &Counts, place: usize) {
        let held = &self.held[place];
        // A swap: of threads that share the shard, each tells what the others have not.
        let untold = counts.untold.swap(0, Ordering::Relaxed);
        let now = held.now.fetch_add(untold, Ordering::Relaxed) + untold;
        held.peak.fetch_max(now, Ordering::Relaxed);
    }

    /// The sums of what was counted of the target with this id; `None` where nothing was. What is
    /// counted at the same time may or may not be in them.
    pub(super) fn read(&self, target: u32) -> Option<TargetAllocations> {
        let place = place(target);
        let mut sums = [0; COUNTS];
        for shard in &self.shards {
            for (sum, count) in sums.iter_mut().zip(shard[place].read()) {
                *sum += count;
            }
        }
        let [freed_bytes, freed_count, churned_bytes, churned_count, bytes, count] = sums;
        if count == 0 {
            return None;
        }
        let live_bytes = bytes.saturating_sub(freed_bytes);
        let live = i64::try_from(live_bytes).unwrap_or(i64::MAX);
        let peak = self.held[place].peak.fetch_max(live, Ordering::Relaxed).max(live);
        Some(TargetAllocations {
            target: (target != 0).then_some(target),
            bytes,
            count,
            freed_bytes,
            freed_count,
            churned_bytes,
            churned_count,
            live_bytes,
            live_count: count.saturating_sub(freed_count),
            peak_bytes: u64::try_from(peak).unwrap_or(0),
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed};
    use std::thread;

    fn table() -> Box<Table> {
        let layout = Layout::new::<Table>();
        // SAFETY: the layout has a size. All of a table is integers, for which zeroes are what
        // `new` makes; on the heap, as a stack has no room for it.
        unsafe {
            let zeroes = alloc_zeroed(layout);
            assert!(!zeroes.is_null());
            Box::from_raw(zeroes.cast())
        }
    }

    #[test]
    fn block_freed_on_another_thread_is_taken_off_who_allocated_it() {
        let table = table();
        table.allocated(Shard::owned(3), 7, 100);
        table.allocated(Shard::owned(3), 7, 20);
        table.freed(Shard::owned(4), 7, 100, false);
        table.freed(Shard::shared(1), 7, 20, true);
        let of = table.read(7).unwrap();
        assert_eq!((of.bytes, of.count, of.live_bytes, of.live_count), (120, 2, 0, 0));
        assert_eq!((of.freed_bytes, of.freed_count), (120, 2));
        assert_eq!((of.churned_bytes, of.churned_count), (20, 1));
        assert_eq!(table.read(8), None);
    }

    #[test]
    fn counts_of_many_threads_are_exact_and_the_peak_is_never_below_what_is_held() {
        const THREADS: usize = 8;
        const BLOCKS: u64 = 20_000;
        let table = table();
        thread::scope(|scope| {
            for number in 0..THREADS {
                let table = &table;
                scope.spawn(move || {
                    let (own, next) = if number % 2 == 0 {
                        (Shard::owned(number), Shard::shared(number as u32))
                    } else {
                        (Shard::shared(number as u32), Shard::shared(number as u32 + 1))
                    };
                    for size in 1..=BLOCKS {
                        table.allocated(own, 1, size);
                        // Each keeps one block in four.
                        if size % 4 != 0 {
                            table.freed(next, 1, size, false);
                        }
                    }
                });
            }
            for _ in 0..1_000 {
                if let Some(of) = table.read(1) {
                    assert!(of.peak_bytes >= of.live_bytes, "{of:?}");
                }
            }
        });
        let of = table.read(1).unwrap();
        let (all, kept) = (BLOCKS * (BLOCKS + 1) / 2, 4 * (BLOCKS / 4) * (BLOCKS / 4 + 1) / 2);
        let threads = THREADS as u64;
        assert_eq!((of.bytes, of.count), (threads * all, threads * BLOCKS));
        assert_eq!((of.live_bytes, of.live_count), (threads * kept, threads * BLOCKS / 4));
        assert!(of.peak_bytes >= of.live_bytes);
    }

    #[test]
    fn peak_is_low_by_less_than_a_step_for_each_shard() {
        let table = table();
        let most = 10 * STEP as u64 - 1;
        for shard in [0, 1, 2] {
            (0..most).step_by(1000).for_each(|_| table.allocated(Shard::owned(shard), 2, 1000));
        }
        let held = table.shards.iter().map(|it| it[2].bytes.load(Ordering::Relaxed)).sum::<u64>();
        for shard in [0, 1, 2] {
            (0..most).step_by(1000).for_each(|_| table.freed(Shard::owned(shard), 2, 1000, false));
        }
        let of = table.read(2).unwrap();
        assert_eq!(of.live_bytes, 0);
        assert!(held - 3 * STEP as u64 <= of.peak_bytes && of.peak_bytes <= held, "{of:?}");
    }

    #[test]
    fn targets_beyond_the_table_are_counted_together() {
        let table = table();
        table.allocated(Shard::owned(0), place(u32::MAX), 5);
        table.allocated(Shard::owned(0), place(TARGETS as u32), 6);
        assert_eq!(table.read(TARGETS as u32 - 1).unwrap().bytes, 11);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_threads_of_one_shard_lose_nothing_and_the_peak_is_not_below_what_is_held() {
        loom::model(|| {
            let table = Arc::new(Table::new());
            let other = Arc::clone(&table);
            // Both count in one shard, and tell what they hold, each of both.
            let thread = loom::thread::spawn(move || other.allocated(Shard::shared(0), 1, 16));
            table.allocated(Shard::shared(0), 1, 12);
            thread.join().unwrap();
            let of = table.read(1).unwrap();
            assert_eq!((of.bytes, of.count, of.live_bytes), (28, 2, 28));
            assert!(of.peak_bytes >= 28, "{of:?}");
            table.freed(Shard::shared(0), 1, 16, false);
            table.freed(Shard::owned(0), 1, 12, false);
            assert_eq!(table.read(1).unwrap().live_bytes, 0);
        });
    }
}
