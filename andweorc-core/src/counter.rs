//! Counters that many threads raise and one reads, without a shared cache line on the way.
//!
//! Each of the first threads has a *shard* of its own: words for every set of counters, to which it
//! adds by a plain load and store. The threads beyond share a few shards, and add atomically. A
//! shard that was a thread's own becomes free when that thread ends.
//!
//! A shard lies in pages that are made when its thread first adds there, so that memory goes by
//! what a thread has met and not by threads times counters. Only one thread writes to a page, or
//! few, so that nothing in it is padded; counts that are raised together lie together. When many
//! threads have met very much, those that go on to meet more add it to the pages of a shared shard.

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Lines that threads share which have none of their own.
const SHARED: usize = 4;

/// No more threads than this have shards of their own: as many as `taken` has bits.
pub(crate) const OWNED: usize = 64;

/// Words of a page at which sets begin: as many as a `u8` has values, so that no bounds are
/// checked. 2 KiB.
const WORDS: usize = 256;

/// The most counts of a set.
const MAX_COUNTS: usize = 5;

/// Pages of a shard, enough for 200,000 span call sites. All threads share the counters beyond.
const PAGES: usize = 8192;

/// Pages that are made for threads alone, 16 MiB: 64 threads have all of 3,500 span call sites to
/// themselves, 20 threads of 11,000.
const MAX_OWNED_PAGES: usize = 8192;

/// Words of one shard; those beyond [`WORDS`] are of sets that begin before. Made once, for good.
struct Page([AtomicU64; WORDS + MAX_COUNTS - 1]);

/// The pages of one shard.
type Pages = [AtomicPtr<Page>; PAGES];

/// The shards of a process, and what was given out of them.
struct Shards {
    /// The pages of all shards: first of those that threads own, then of those that they share.
    pages: [Pages; OWNED + SHARED],
    /// How many pages were made for threads alone, or refused since there were as many.
    pages_made: AtomicUsize,
    /// The first word at which no set begins or goes on, of all the words of a shard.
    next: AtomicUsize,
    /// Which shards are a thread's own at present, a bit each.
    taken: AtomicU64,
    /// How often a shared shard was given out.
    turn: AtomicUsize,
}

/// Zeroes of the binary, in which the pages of memory that nobody needs are never there: so they
/// are apart from the [process](crate::process).
static SHARDS: Shards = Shards {
    pages: [const { [const { AtomicPtr::new(ptr::null_mut()) }; PAGES] }; OWNED + SHARED],
    pages_made: AtomicUsize::new(0),
    next: AtomicUsize::new(0),
    taken: AtomicU64::new(0),
    turn: AtomicUsize::new(0),
};

/// Where a thread adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    index: usize,
    /// No other thread writes there.
    owned: bool,
}

/// Gives the shard back when the thread ends.
struct ReturnShard;

impl Drop for ReturnShard {
    fn drop(&mut self) {
        let Shard { index, owned } = shard();
        if owned {
            SHARD.set(Some(shared()));
            OWN.set(None);
            // Release, pairs with the Acquire in `own`: the next owner goes on from what this one
            // wrote.
            SHARDS.taken.fetch_and(!(1 << index), Ordering::Release);
        }
    }
}

crate::plain_thread_local! {
    // Counted is up to a thread's last moment.
    static SHARD: Cell<Option<Shard>> = Cell::new(None);
    // Each add asks first for the pages of the shard, if it is the thread's own.
    static OWN: Cell<Option<&'static Pages>> = Cell::new(None);
}

thread_local! {
    static RETURN_SHARD: ReturnShard = const { ReturnShard };
}

/// A small number of the calling thread, as long as it lives: the first 64 threads that live at a
/// time have one of their own each, those beyond share four.
#[inline]
pub(crate) fn number() -> usize {
    const { assert!(OWNED + SHARED <= 128, "as `thread::number` says") };
    shard().index
}

/// The number of the calling thread, if it is its own, and it has one already. May be asked for
/// anywhere: nothing is made.
#[inline]
pub(crate) fn own_number() -> Option<usize> {
    SHARD.get().filter(|shard| shard.owned).map(|shard| shard.index)
}

#[inline]
fn shard() -> Shard {
    SHARD.get().unwrap_or_else(assign_shard)
}

#[cold]
fn assign_shard() -> Shard {
    // A thread that is being torn down could not give its own back.
    let shard = RETURN_SHARD.try_with(|_| own()).ok().flatten().unwrap_or_else(shared);
    SHARD.set(Some(shard));
    OWN.set(shard.owned.then(|| &SHARDS.pages[shard.index]));
    shard
}

/// Takes a shard that is nobody's.
fn own() -> Option<Shard> {
    let take = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
    // Acquire, pairs with the Release of the thread that gave the shard back.
    let before = SHARDS.taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).ok()?;
    Some(Shard { index: before.trailing_ones() as usize, owned: true })
}

/// One of the shared shards, in turn.
fn shared() -> Shard {
    // Relaxed: only that threads spread.
    Shard { index: OWNED + SHARDS.turn.fetch_add(1, Ordering::Relaxed) % SHARED, owned: false }
}

/// Monotonic counts that are raised together. Their words stay theirs when they are dropped, as
/// their targets and points are not.
#[derive(Debug)]
pub(crate) struct Counters<const N: usize> {
    page: u32,
    word: u8,
    /// In place of words, where there are no pages left.
    shared: [AtomicU64; N],
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Counters<N> {
        const { assert!(N <= MAX_COUNTS, "the counts of a set lie in one page") };
        // Relaxed: only that each word is given out once.
        let first = SHARDS.next.fetch_add(N, Ordering::Relaxed);
        Counters {
            page: u32::try_from(first / WORDS).unwrap_or(u32::MAX),
            word: (first % WORDS) as u8,
            shared: [const { AtomicU64::new(0) }; N],
        }
    }
}

impl<const N: usize> Counters<N> {
    /// Adds to the first of the counts. The first time on a thread it may allocate a page.
    #[inline]
    pub(crate) fn add<const FIRST: usize>(&self, by: [u64; FIRST]) {
        const { assert!(FIRST <= N) };
        if let Some(pages) = OWN.get()
            && let Some(page) = pages.get(self.page as usize)
            && let Some(page) = existing(page)
        {
            for (count, by) in self.within(page).iter().zip(by) {
                // Relaxed, and no read-modify-write: it changes under nobody else's hands, and
                // publishes nothing but itself.
                count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
            }
        } else {
            // Copied here, or else all that is added would go through memory each time.
            self.add_anywhere::<FIRST>(std::array::from_fn(|n| by[n]));
        }
    }

    /// Adds as [`add`](Counters::add) does, for threads that share a shard, for what a thread has
    /// not met, and where there are no pages left. Not inlined, as it would be in the way of the
    /// others.
    #[cold]
    #[inline(never)]
    fn add_anywhere<const FIRST: usize>(&self, by: [u64; FIRST]) {
        let Shard { index, owned } = shard();
        let (counts, owned) = match SHARDS.pages[index].get(self.page as usize) {
            Some(page) => {
                let (page, owned) = existing(page)
                    .map_or_else(|| first(index, owned, self.page as usize), |page| (page, owned));
                (self.within(page), owned)
            }
            None => (&self.shared, false),
        };
        for (count, by) in counts.iter().zip(by) {
            // Relaxed: the counts publish nothing but themselves. One that this thread owns changes
            // under nobody's hands.
            if owned {
                count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
            } else {
                count.fetch_add(by, Ordering::Relaxed);
            }
        }
    }

    /// The sums over all threads. Adds that run at the same time may or may not be in them; none is
    /// lost or counted twice between two reads.
    pub(crate) fn get(&self) -> [u64; N] {
        let pages =
            SHARDS.pages.iter().filter_map(|shard| existing(shard.get(self.page as usize)?));
        let shards = pages.map(|page| self.within(page)).chain([&self.shared]);
        let mut sums = [0; N];
        for shard in shards {
            for (sum, count) in sums.iter_mut().zip(shard) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        sums
    }

    /// Its words in this page.
    #[inline]
    fn within<'a>(&self, page: &'a Page) -> &'a [AtomicU64; N] {
        // There is nothing to check: `word` is below `WORDS`, and `N` at most `MAX_COUNTS`.
        page.0[usize::from(self.word)..].first_chunk().expect("the counts lie in one page")
    }
}

/// The page here, if there is one.
#[inline]
fn existing(page: &AtomicPtr<Page>) -> Option<&'static Page> {
    // Acquire, pairs with the Release in `new_page`: its words are zeroes.
    let page = page.load(Ordering::Acquire);
    // SAFETY: null, or a page that `new_page` has leaked.
    unsafe { page.as_ref() }
}

/// A page for what the shard has not met, and whether it is its alone: that of a shared shard, if
/// there are many.
#[cold]
fn first(shard: usize, owned: bool, page: usize) -> (&'static Page, bool) {
    // Relaxed: only how many there are.
    let many = || {
        SHARDS.pages_made.load(Ordering::Relaxed) >= MAX_OWNED_PAGES
            || SHARDS.pages_made.fetch_add(1, Ordering::Relaxed) >= MAX_OWNED_PAGES
    };
    let owned = owned && !many();
    let shard = if owned || shard >= OWNED { shard } else { OWNED + shard % SHARED };
    let page = &SHARDS.pages[shard][page];
    (existing(page).unwrap_or_else(|| new_page(page)), owned)
}

/// Makes the page here, unless another thread of the shard is faster.
#[cold]
fn new_page(page: &AtomicPtr<Page>) -> &'static Page {
    let new = Box::into_raw(Box::new(Page([const { AtomicU64::new(0) }; WORDS + MAX_COUNTS - 1])));
    // Release, pairs with the Acquire in `existing`; Acquire, to read what the faster one made.
    match page.compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Acquire) {
        // SAFETY: it is leaked from now on.
        Ok(_) => unsafe { &*new },
        Err(faster) => {
            // SAFETY: it comes from `Box::into_raw` above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: not null, so that another thread has leaked it here.
            unsafe { &*faster }
        }
    }
}

/// One thing for each shard, made when a thread of it first needs it.
#[derive(Debug)]
pub(crate) struct PerShard<T>([OnceLock<Box<T>>; OWNED + SHARED]);

impl<T: Default> PerShard<T> {
    /// Without any.
    pub(crate) const fn new() -> PerShard<T> {
        PerShard([const { OnceLock::new() }; OWNED + SHARED])
    }

    /// The calling thread's, and whether it is no other thread's.
    #[inline]
    pub(crate) fn own(&self) -> (&T, bool) {
        let Shard { index, owned } = shard();
        let own = &self.0[index];
        (own.get().map_or_else(|| made(own), |own| &**own), owned)
    }

    /// All that were needed so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(|own| own.get().map(|own| &**own))
    }
}

/// A shard's, made unless another thread is faster.
#[cold]
#[inline(never)]
fn made<T: Default>(own: &OnceLock<Box<T>>) -> &T {
    own.get_or_init(Box::default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};
    use std::thread;

    #[test]
    fn threads_with_and_without_a_shard_of_their_own_lose_nothing() {
        const THREADS: usize = 2 * OWNED;
        let counters = Arc::new(Counters::<2>::default());
        for _ in 0..2 {
            let all = Arc::new(Barrier::new(THREADS));
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (counters, all) = (Arc::clone(&counters), Arc::clone(&all));
                    thread::spawn(move || {
                        shard();
                        all.wait();
                        (0..1000).for_each(|_| counters.add([1, 2]));
                        all.wait();
                        shard()
                    })
                })
                .collect();
            let shards: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            let mut owned: Vec<_> =
                shards.iter().filter(|shard| shard.owned).map(|shard| shard.index).collect();
            let all = owned.len();
            assert!((1..=OWNED).contains(&all), "other tests have some");
            owned.sort_unstable();
            owned.dedup();
            assert_eq!(owned.len(), all, "two threads had one shard");
        }
        assert_eq!(counters.get(), [2 * 1000 * THREADS as u64, 4 * 1000 * THREADS as u64]);
    }

    /// Pages of the calling thread's shard.
    fn pages() -> usize {
        SHARDS.pages[shard().index].iter().filter(|page| existing(page).is_some()).count()
    }

    #[test]
    fn a_thread_has_memory_for_what_it_met_only() {
        let sets: Vec<Counters<3>> = (0..10_000).map(|_| Counters::default()).collect();
        let first = |set: &Counters<3>| set.page as usize * WORDS + usize::from(set.word);
        let apart = |two: &[Counters<3>]| first(&two[0]) + 3 <= first(&two[1]);
        assert!(sets.windows(2).all(apart), "two sets share a word");
        let (few, more) = (0..50, 0..sets.len());
        let met = |which: std::ops::Range<usize>| {
            let meet = || {
                let before = pages();
                sets[which].iter().for_each(|set| set.add([1, 2, 3]));
                pages() - before
            };
            thread::scope(|scope| scope.spawn(meet).join().unwrap())
        };
        // Another thread may have had the shard before, and other tests make sets at the same time.
        assert!(met(few) <= 3);
        assert!(met(more) <= 30_000 / WORDS + 20);
        let (twice, once) = sets.split_at(50);
        assert!(twice.iter().all(|set| set.get() == [2, 4, 6]));
        assert!(once.iter().all(|set| set.get() == [1, 2, 3]));
    }

    #[test]
    fn counters_past_the_page_limit_are_kept_in_shared_shards() {
        let sets: Vec<Counters<3>> = (0..1_000).map(|_| Counters::default()).collect();
        // Other tests may be refused pages from here on.
        SHARDS.pages_made.fetch_max(MAX_OWNED_PAGES, Ordering::Relaxed);
        let meet = || {
            let before = pages();
            sets.iter().for_each(|set| set.add([1, 2, 3]));
            assert!(pages() == before || !shard().owned);
        };
        thread::scope(|scope| (0..16).for_each(|_| drop(scope.spawn(meet))));
        assert!(sets.iter().all(|set| set.get() == [16, 32, 48]));
    }

    #[test]
    fn counter_beyond_the_pages_is_counted_too() {
        let beyond = Counters::<2> { page: PAGES as u32, word: 0, shared: Default::default() };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| beyond.add([1, 2])));
            }
        });
        assert_eq!(beyond.get(), [4000, 8000]);
    }
}
