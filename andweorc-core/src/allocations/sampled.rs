//! Call chains of sampled allocations, counted where the allocator is asked: in a table that has a
//! place for each chain, by its hash.
//!
//! A thread counts down the bytes that it allocates; the allocation that passes zero is
//! [sampled](super::poisson), if the program is just then observed. Nothing is allocated and no
//! lock is taken. Counts only rise, so that a stretch is the difference of two snapshots. A chain
//! that finds no place is counted as lost.

#[cfg(doc)]
use super::poisson::PARTS;
use super::poisson::{draw, seed, weight};
use crate::process::asked::Switches;
use crate::process::process;
use andweorc_sampling::own_chain::own_chain;
use andweorc_sampling::thread_name::ThreadName;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Frames that are kept of a chain: the allocator's own and those of std take some.
pub(super) const DEPTH: usize = 48;

/// Chains that are told apart: 1.8 MB.
const PLACES: usize = 4096;

/// So many places a chain looks at.
const PROBES: usize = 16;

crate::plain_thread_local! {
    /// Bytes until the next sample.
    static LEFT: Cell<i64> = Cell::new(0);
    /// State of the draws; 0 before the first.
    static STATE: Cell<u64> = Cell::new(0);
}

/// Bytes and parts of blocks that the samples of a chain stand for, and how many samples these are.
pub(super) type Sums = [u64; 3];

/// A chain, and where it was.
#[derive(Debug)]
struct Place {
    /// Hash of all that tells it apart; 0 while it is free.
    key: AtomicU64,
    /// Frames of the chain; 0 until they are written.
    length: AtomicU32,
    /// Id of the innermost target; 0 outside of all.
    target: AtomicU32,
    /// The name of the thread, outside of all targets.
    thread: [AtomicU64; 2],
    sums: [AtomicU64; 3],
    chain: [AtomicU64; DEPTH],
}

/// Zeroes of the binary, in which the pages of memory that nobody needs are never there.
static TABLE: Table = Table {
    places: [const {
        Place {
            key: AtomicU64::new(0),
            length: AtomicU32::new(0),
            target: AtomicU32::new(0),
            thread: [const { AtomicU64::new(0) }; 2],
            sums: [const { AtomicU64::new(0) }; 3],
            chain: [const { AtomicU64::new(0) }; DEPTH],
        }
    }; PLACES],
    lost: AtomicU64::new(0),
};

#[derive(Debug)]
struct Table {
    places: [Place; PLACES],
    /// Samples without a place.
    lost: AtomicU64,
}

/// The calling thread, of this number and none of andweorc's own, has allocated so many bytes in
/// this target.
#[inline]
pub(super) fn allocated(thread: u32, size: usize, target: u32) {
    let left = LEFT.get().wrapping_sub(size as i64);
    LEFT.set(left);
    if left < 0 {
        due(thread, size, target);
    }
}

#[cold]
#[inline(never)]
fn due(thread: u32, size: usize, target: u32) {
    let mut state = STATE.get();
    if state == 0 {
        // The first allocation of the thread is as likely as others to be sampled.
        let (next, left) = draw(seed(thread));
        state = next;
        LEFT.set(left.saturating_sub(size as i64));
        STATE.set(state);
        if LEFT.get() >= 0 {
            return;
        }
    }
    let (state, left) = draw(state);
    STATE.set(state);
    LEFT.set(left);
    if process().asked.is_any_on(Switches::RECORDS_WALL) {
        sample(size, target);
    }
}

fn sample(size: usize, target: u32) {
    let thread = if target == 0 { ThreadName::own() } else { ThreadName::default() };
    let mut chain = [0; DEPTH];
    let length = own_chain(&mut chain);
    TABLE.count(&chain[..length], target, thread, weight(size));
}

/// A hash of words: FNV-1a by words, with a mix at the end, and never 0.
fn hash(words: impl Iterator<Item = u64>) -> u64 {
    let hash = words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    });
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

impl Table {
    fn count(&self, chain: &[u64], target: u32, thread: ThreadName, [bytes, parts]: [u64; 2]) {
        let words = thread.words();
        let key = hash(chain.iter().copied().chain(words).chain([u64::from(target)]));
        // The lowest bits are those that the places differ in; the lowest of all is always set.
        let first = (key >> 1) as usize % PLACES;
        for at in (first..first + PROBES).map(|at| &self.places[at % PLACES]) {
            // Relaxed, both: nothing but the key itself is read by it.
            let found = match at.key.load(Ordering::Relaxed) {
                0 => at.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed),
                other => Err(other),
            };
            match found {
                Ok(_) => at.describe(chain, target, words),
                Err(other) if other == key => {}
                Err(_) => continue,
            }
            for (sum, more) in at.sums.iter().zip([bytes, parts, 1]) {
                // Relaxed: a count.
                sum.fetch_add(more, Ordering::Relaxed);
            }
            return;
        }
        // Relaxed: a count.
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl Place {
    /// Writes down what was sampled, on the thread that took the place.
    fn describe(&self, chain: &[u64], target: u32, thread: [u64; 2]) {
        // Relaxed, all of these: published by the length.
        self.target.store(target, Ordering::Relaxed);
        let frames = self.chain.iter().zip(chain);
        frames.for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        self.thread.iter().zip(thread).for_each(|(to, from)| to.store(from, Ordering::Relaxed));
        // Release: pairs with the acquire in `read`.
        self.length.store(chain.len() as u32, Ordering::Release);
    }

    /// Reads the chain, if it is written down already.
    fn read(&self) -> Option<SampledChain> {
        // Acquire: pairs with the release in `describe`.
        let length = self.length.load(Ordering::Acquire) as usize;
        // Relaxed, the rest: published by the length, or counts.
        let words = self.thread.each_ref().map(|word| word.load(Ordering::Relaxed));
        (length > 0).then(|| SampledChain {
            target: self.target.load(Ordering::Relaxed),
            thread: ThreadName::of_words(words),
            chain: self.chain[..length].iter().map(|it| it.load(Ordering::Relaxed)).collect(),
            sums: [0; 3],
        })
    }
}

/// A chain that allocated in a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SampledChain {
    /// Id of the innermost target; 0 outside of all.
    pub(super) target: u32,
    /// The thread, outside of all targets.
    pub(super) thread: ThreadName,
    /// An instruction, then for each caller an address in its call.
    pub(super) chain: Vec<u64>,
    pub(super) sums: Sums,
}

/// Samples so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledSnapshot {
    sums: HashMap<usize, Sums>,
    lost: u64,
}

impl SampledSnapshot {
    /// Reads what was sampled so far.
    pub(crate) fn read() -> SampledSnapshot {
        SampledSnapshot::of(&TABLE)
    }

    fn of(table: &Table) -> SampledSnapshot {
        // Relaxed: counts.
        let sums = |place: &Place| place.sums.each_ref().map(|sum| sum.load(Ordering::Relaxed));
        let taken = table.places.iter().map(sums).enumerate().filter(|(_, sums)| sums[2] > 0);
        SampledSnapshot { sums: taken.collect(), lost: table.lost.load(Ordering::Relaxed) }
    }

    /// The chains that were sampled since `before`, and how many samples were lost.
    pub(super) fn since(&self, before: &SampledSnapshot) -> (Vec<SampledChain>, u64) {
        self.since_in(before, &TABLE)
    }

    fn since_in(&self, before: &SampledSnapshot, table: &Table) -> (Vec<SampledChain>, u64) {
        let mut lost = self.lost - before.lost;
        let mut chains = Vec::new();
        for (at, now) in &self.sums {
            let before = before.sums.get(at).copied().unwrap_or_default();
            let sums = std::array::from_fn(|i| now[i].saturating_sub(before[i]));
            match table.places[*at].read() {
                _ if sums[2] == 0 => {}
                Some(chain) => chains.push(SampledChain { sums, ..chain }),
                // Another thread is just writing it down.
                None => lost += sums[2],
            }
        }
        chains.sort_by(|a, b| (a.target, &a.chain).cmp(&(b.target, &b.chain)));
        (chains, lost)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed};

    fn table() -> Box<Table> {
        let layout = Layout::new::<Table>();
        // SAFETY: the layout has a size. All of a table is integers, for which zeroes are what it
        // begins with; on the heap, as a stack has no room for it.
        unsafe {
            let zeroes = alloc_zeroed(layout);
            assert!(!zeroes.is_null());
            Box::from_raw(zeroes.cast())
        }
    }

    fn thread(name: &str) -> ThreadName {
        ThreadName::from(name.as_bytes())
    }

    #[test]
    fn chain_is_counted_by_target_and_thread_and_over_a_stretch() {
        let table = table();
        let none = ThreadName::default();
        table.count(&[1, 2, 3], 7, none, [100, 10]);
        let before = SampledSnapshot::of(&table);
        table.count(&[1, 2, 3], 7, none, [200, 20]);
        table.count(&[1, 2, 3], 7, none, [200, 20]);
        table.count(&[1, 2], 8, none, [1, 1]);
        table.count(&[1, 2], 0, thread("a"), [2, 1]);
        table.count(&[1, 2], 0, thread("b"), [3, 1]);
        let (chains, lost) = SampledSnapshot::of(&table).since_in(&before, &table);
        let mut shown: Vec<_> = chains
            .iter()
            .map(|it| (it.target, it.thread.to_string(), it.chain.len(), it.sums))
            .collect();
        shown.sort();
        let expected = [
            (0, "a".to_owned(), 2, [2, 1, 1]),
            (0, "b".to_owned(), 2, [3, 1, 1]),
            (7, String::new(), 3, [400, 40, 2]),
            (8, String::new(), 2, [1, 1, 1]),
        ];
        assert_eq!((shown.as_slice(), lost), (&expected[..], 0));
        let now = SampledSnapshot::of(&table);
        assert_eq!(now.since_in(&now, &table), (vec![], 0));
    }

    #[test]
    fn chains_beyond_the_places_are_counted_as_lost() {
        let table = table();
        let many = 2 * PLACES as u64;
        for at in 0..many {
            table.count(&[at], 1, ThreadName::default(), [1, 1]);
        }
        let (chains, lost) = SampledSnapshot::of(&table).since_in(&Default::default(), &table);
        assert!(chains.len() > PLACES / 2, "{} found a place", chains.len());
        assert_eq!(chains.len() as u64 + lost, many);
    }

    #[test]
    fn threads_that_meet_in_a_place_lose_nothing() {
        let table = table();
        const THREADS: u64 = 4;
        const SAMPLES: u64 = 20_000;
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for at in 0..SAMPLES {
                        let chain = [at % 64, 5, 6];
                        table.count(&chain, 3, ThreadName::default(), [10, 2]);
                    }
                });
            }
        });
        let (chains, lost) = SampledSnapshot::of(&table).since_in(&Default::default(), &table);
        let sums = chains
            .iter()
            .fold([0; 3], |sum: Sums, it| std::array::from_fn(|i| sum[i] + it.sums[i]));
        let all = THREADS * SAMPLES;
        assert_eq!((chains.len(), sums, lost), (64, [10 * all, 2 * all, all], 0));
        assert!(chains.iter().all(|it| it.chain[1..] == [5, 6] && it.chain.len() == 3));
    }
}
