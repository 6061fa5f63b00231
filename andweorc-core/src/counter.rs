//! Counters that many threads raise and one reads, without a shared cache line on the way.
//!
//! The counts that are raised together lie together: a visit of a target writes one line. Each of the first threads has a line of its
//! own in every set of counters, to which it adds by a plain load and store; the threads beyond share a few lines, and add atomically. A
//! line that was a thread's own becomes free when that thread ends.

use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// Lines that threads share which have none of their own.
const SHARED: usize = 4;

/// No more threads than this have lines of their own: as many as `TAKEN` has bits.
const MOST_OWNED: usize = 64;

/// Which lines are a thread's own at present, a bit each.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// How many lines can be a thread's own: one for each worker of a runtime and some more.
static OWNED: LazyLock<usize> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    (2 * cores).clamp(4, MOST_OWNED)
});

/// The lines of each set of counters: first those that threads own, then those that they share.
fn lines() -> usize {
    *OWNED + SHARED
}

/// Where a thread adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    index: usize,
    /// No other thread writes there.
    owned: bool,
}

/// Gives the line back when the thread ends.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        let Line { index, owned } = line();
        if owned {
            LINE.set(Some(shared()));
            // Release, pairs with the Acquire in `own`: the next owner goes on from what this one wrote.
            TAKEN.fetch_and(!(1 << index), Ordering::Release);
        }
    }
}

thread_local! {
    // Without a destructor: counted is up to a thread's last moment.
    static LINE: Cell<Option<Line>> = const { Cell::new(None) };
    static GIVE_BACK: GiveBack = const { GiveBack };
}

#[inline]
fn line() -> Line {
    LINE.get().unwrap_or_else(first_line)
}

#[cold]
fn first_line() -> Line {
    // A thread that is being torn down could not give its own back.
    let line = GIVE_BACK.try_with(|_| own()).ok().flatten().unwrap_or_else(shared);
    LINE.set(Some(line));
    line
}

/// Takes a line that is nobody's.
fn own() -> Option<Line> {
    let free = |taken: u64| (taken.trailing_ones() as usize) < *OWNED;
    let take = |taken: u64| free(taken).then_some(taken | (taken + 1));
    // Acquire, pairs with the Release of the thread that gave the line back.
    let before = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).ok()?;
    Some(Line { index: before.trailing_ones() as usize, owned: true })
}

/// One of the shared lines, in turn.
fn shared() -> Line {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only that threads spread.
    Line { index: *OWNED + NEXT.fetch_add(1, Ordering::Relaxed) % SHARED, owned: false }
}

/// Monotonic counts that are raised together.
#[derive(Debug)]
pub(crate) struct Counters<const N: usize> {
    lines: Box<[CachePadded<[AtomicU64; N]>]>,
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Counters<N> {
        let line = || CachePadded::new([const { AtomicU64::new(0) }; N]);
        Counters { lines: (0..lines()).map(|_| line()).collect() }
    }
}

impl<const N: usize> Counters<N> {
    /// Adds to the first of the counts.
    #[inline]
    pub(crate) fn add<const FIRST: usize>(&self, by: [u64; FIRST]) {
        const { assert!(FIRST <= N) };
        let Line { index, owned } = line();
        for (count, by) in self.lines[index].iter().zip(by) {
            // Relaxed: the counts publish nothing but themselves. One that this thread owns changes under nobody's hands.
            if owned {
                count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
            } else {
                count.fetch_add(by, Ordering::Relaxed);
            }
        }
    }

    /// The sums over all threads. Adds that run at the same time may or may not be in them; none is lost or counted twice
    /// between two reads.
    pub(crate) fn get(&self) -> [u64; N] {
        let mut sums = [0; N];
        for line in &self.lines {
            for (sum, count) in sums.iter_mut().zip(line.iter()) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        sums
    }
}

/// One thing for each of a few groups of threads, for what has to be locked: threads seldom meet there.
#[derive(Debug, Default)]
pub(crate) struct Shards<T>([CachePadded<T>; SHARDS]);

/// Number of groups.
const SHARDS: usize = 8;

impl<T> Shards<T> {
    /// The calling thread's.
    pub(crate) fn own(&self) -> &T {
        &self.0[line().index % SHARDS]
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|shard| &**shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};
    use std::thread;

    #[test]
    fn threads_with_and_without_a_line_of_their_own_lose_nothing() {
        const THREADS: usize = 2 * MOST_OWNED;
        let counters = Arc::new(Counters::<2>::default());
        for _ in 0..2 {
            let all = Arc::new(Barrier::new(THREADS));
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (counters, all) = (Arc::clone(&counters), Arc::clone(&all));
                    thread::spawn(move || {
                        line();
                        all.wait();
                        (0..1000).for_each(|_| counters.add([1, 2]));
                        all.wait();
                        line()
                    })
                })
                .collect();
            let lines: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            let mut owned: Vec<_> =
                lines.iter().filter(|line| line.owned).map(|line| line.index).collect();
            let all = owned.len();
            assert!((1..=*OWNED).contains(&all), "other tests have some");
            owned.sort_unstable();
            owned.dedup();
            assert_eq!(owned.len(), all, "two threads had one line");
        }
        assert_eq!(counters.get(), [2 * 1000 * THREADS as u64, 4 * 1000 * THREADS as u64]);
    }
}
