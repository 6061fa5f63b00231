//! The open spans of one subscriber, by id.
//!
//! # Places
//!
//! Most lie in *places*, half a cache line each, or one where who gives the ids out keeps
//! [more](crate::span_ids), which are found by the id alone and used without a lock. tracing's
//! registry makes ids of three numbers: where the span lies among those of its thread, which is
//! used again as soon as it is closed, its thread, and a generation. The first two choose the
//! place: so a thread meets its few places again and again, and no other thread's. Ids of another
//! kind will do; only their spans may meet in a place. A span that finds its place taken goes to
//! the [table](Table), as those beyond a thread's places do.
//!
//! A place is taken by who exchanges its id from none to [`TAKING`], and found by nobody before it
//! has its own id. An id is told to nobody before its span is in place, and not used after the span
//! was closed, which is done once. So of what a place holds only `left`, and what may be shared of
//! `more`, changes while it can be found.

use crate::site::Span;
use crate::span_table::Table;
use andweorc_core::hooks::time::{Real, Virtual};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use tracing_core::span::Id;

/// Places of a thread: 16 KiB, or 32, made when it opens its first span.
pub(crate) const PLACES: u64 = 512;

/// Threads with places of their own. Those beyond use them too.
pub(crate) const THREADS: u64 = 128;

/// The bit of an id where its thread begins, in tracing's registry.
pub(crate) const THREAD: u32 = 38;

/// The id of no span: they are not zero.
const NONE: u64 = 0;

/// The id of a place that is being filled: of no span, since a registry would have to count that
/// far.
const TAKING: u64 = u64::MAX;

/// A span that is open.
#[derive(Debug)]
struct Slot<M> {
    id: AtomicU64,
    /// Null of one that is not timed.
    site: AtomicPtr<Span>,
    /// The virtual time of its creation.
    begin: AtomicI64,
    /// When it was last left and not entered again; [`Real::NEVER`] otherwise.
    left: AtomicI64,
    more: M,
}

const _: () = assert!(size_of::<Slot<()>>() == 32, "two places are a cache line");

/// An open span that is not in its place.
#[derive(Debug)]
struct Open<M> {
    timed: Option<Timed>,
    left: Real,
    more: M,
}

/// A span that is timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) site: &'static Span,
    /// The virtual time of its creation.
    pub(crate) begin: Virtual,
}

/// The open spans, with what else is kept of each.
#[derive(Debug)]
pub(crate) struct Spans<M = ()> {
    places: [OnceLock<Box<[Slot<M>]>>; THREADS as usize],
    /// How many are in `others`.
    displaced: AtomicUsize,
    others: Table<Open<M>>,
}

impl<M> Default for Spans<M> {
    fn default() -> Spans<M> {
        Spans {
            places: [const { OnceLock::new() }; THREADS as usize],
            displaced: AtomicUsize::new(0),
            others: Table::default(),
        }
    }
}

impl<M: Default> Slot<M> {
    fn empty() -> Slot<M> {
        Slot {
            id: AtomicU64::new(NONE),
            site: AtomicPtr::new(ptr::null_mut()),
            begin: AtomicI64::new(0),
            left: AtomicI64::new(0),
            more: M::default(),
        }
    }
}

impl<M> Slot<M> {
    /// The site of its span, which must not be closed meanwhile.
    #[inline]
    fn site(&self) -> Option<&'static Span> {
        // Relaxed: as old as the id by which it was found.
        let site = self.site.load(Ordering::Relaxed);
        // SAFETY: a place that has an id got its site before, null or from a `&'static`, and keeps
        // it.
        unsafe { site.as_ref() }
    }
}

/// Makes the places of a thread, unless another thread is faster.
#[cold]
#[inline(never)]
fn make<M: Default>(places: &OnceLock<Box<[Slot<M>]>>) -> &[Slot<M>] {
    places.get_or_init(|| (0..PLACES).map(|_| Slot::empty()).collect())
}

impl<M: Default> Spans<M> {
    /// The places of the thread that a span with this id was opened on.
    #[inline]
    fn places(&self, id: u64) -> &OnceLock<Box<[Slot<M>]>> {
        &self.places[(id >> THREAD) as usize % THREADS as usize]
    }

    /// The place that holds this span. Not inlined: its code is there once for all that happens to
    /// a span.
    #[inline(never)]
    fn find(&self, id: u64) -> Option<&Slot<M>> {
        let place = &self.places(id).get()?[(id % PLACES) as usize];
        // Acquire, pairs with the Release in `take`.
        (place.id.load(Ordering::Acquire) == id).then_some(place)
    }

    /// Whether a span that is not in its place may be in the table.
    #[inline]
    fn any_displaced(&self) -> bool {
        // Relaxed: whoever knows an id knows what was counted before it was told.
        self.displaced.load(Ordering::Relaxed) > 0
    }

    /// A span begins, and takes the place of this id if that is free. `set` what else is kept of
    /// it. Says whether it was.
    #[inline]
    pub(crate) fn take(&self, key: u64, timed: Option<Timed>, set: impl FnOnce(&M)) -> bool {
        let places = self.places(key);
        let places = places.get().map_or_else(|| make(places), |made| &**made);
        let place = &places[(key % PLACES) as usize];
        // Acquire, pairs with the Release in `remove`: its last span is read no more.
        let taken = place.id.compare_exchange(NONE, TAKING, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            return false;
        }
        if let Some(Timed { site, begin }) = timed {
            place.site.store(ptr::from_ref(site).cast_mut(), Ordering::Relaxed);
            place.begin.store(begin.0, Ordering::Relaxed);
            place.left.store(Real::NEVER.0, Ordering::Relaxed);
        } else {
            place.site.store(ptr::null_mut(), Ordering::Relaxed);
        }
        set(&place.more);
        // Release, pairs with the Acquire in `find`.
        place.id.store(key, Ordering::Release);
        true
    }

    /// A span begins that found no place, and goes to the table.
    #[cold]
    #[inline(never)]
    pub(crate) fn displace(&self, id: &Id, timed: Option<Timed>, set: impl FnOnce(&M)) {
        let open = Open { timed, left: Real::NEVER, more: M::default() };
        set(&open.more);
        self.displaced.fetch_add(1, Ordering::Relaxed);
        self.others.insert(id, open);
    }

    /// Returns what `f` makes of what else is kept of a span. `None` if it is not open.
    #[inline]
    pub(crate) fn more<R>(&self, id: &Id, f: impl FnOnce(&M) -> R) -> Option<R> {
        match self.find(id.into_u64()) {
            Some(place) => Some(f(&place.more)),
            None if self.any_displaced() => self.others.with(id, |open| f(&open.more)),
            None => None,
        }
    }

    /// A span is entered. Returns its site, if it is timed, and since when it was left, if it was
    /// and is not entered elsewhere.
    #[inline]
    pub(crate) fn enter(&self, id: &Id) -> Option<(&'static Span, Option<Real>)> {
        let (site, left) = match self.find(id.into_u64()) {
            Some(place) => {
                let site = place.site()?;
                // Relaxed: a time that publishes nothing else. No swap, which costs as much as all
                // the rest here: of threads that enter the span at the same moment more than one
                // may be told.
                let left = Real(place.left.load(Ordering::Relaxed));
                if left != Real::NEVER {
                    place.left.store(Real::NEVER.0, Ordering::Relaxed);
                }
                (site, left)
            }
            None if self.any_displaced() => self.others.with(id, |open| {
                Some((open.timed?.site, std::mem::replace(&mut open.left, Real::NEVER)))
            })??,
            None => return None,
        };
        Some((site, (left != Real::NEVER).then_some(left)))
    }

    /// A span was left at `now`. Returns its site, if it is timed.
    #[inline]
    pub(crate) fn leave(&self, id: &Id, now: Real) -> Option<&'static Span> {
        match self.find(id.into_u64()) {
            Some(place) => {
                place.left.store(now.0, Ordering::Relaxed);
                place.site()
            }
            None if self.any_displaced() => self.others.with(id, |open| {
                open.left = now;
                open.timed.map(|timed| timed.site)
            })?,
            None => None,
        }
    }

    /// A span is closed, which is open no more. Returns what it was if it was timed.
    #[inline]
    pub(crate) fn remove(&self, id: &Id) -> Option<Timed> {
        match self.find(id.into_u64()) {
            Some(place) => {
                let begin = Virtual(place.begin.load(Ordering::Relaxed));
                let closed = place.site().map(|site| Timed { site, begin });
                // Release, pairs with the Acquire in `take`.
                place.id.store(NONE, Ordering::Release);
                closed
            }
            None if self.any_displaced() => {
                let open = self.others.remove(id)?;
                self.displaced.fetch_sub(1, Ordering::Relaxed);
                open.timed
            }
            None => None,
        }
    }

    /// How many are open.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let places = self.places.iter().filter_map(OnceLock::get).flatten();
        places.filter(|place| place.id.load(Ordering::Relaxed) != NONE).count() + self.others.len()
    }
}

#[cfg(feature = "layer")]
impl Spans {
    /// A span begins, to which somebody else gave this id.
    #[inline]
    pub(crate) fn insert(&self, id: &Id, timed: Timed) {
        if !self.take(id.into_u64(), Some(timed), |()| {}) {
            self.displace(id, Some(timed), |()| {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Span;
    use std::thread;
    use tests_support::kept;

    fn site(name: &str) -> &'static Span {
        kept(Span::new(name, None, None))
    }

    fn id(id: u64) -> Id {
        Id::from_u64(id)
    }

    #[test]
    fn spans_that_meet_in_a_place_are_told_apart() {
        let (spans, a, b) = (<Spans>::default(), site("open a"), site("open b"));
        // As the registry would give them out: one place, three generations.
        let ids = [1, 1 | 1 << 51, 1 | 2 << 51].map(id);
        for (i, (id, site)) in ids.iter().zip([a, b, a]).enumerate() {
            spans.insert(id, Timed { site, begin: Virtual(i as i64) });
        }
        assert_eq!(spans.len(), 3);
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(spans.enter(id).unwrap().1, None);
            spans.leave(id, Real(10 + i as i64)).unwrap();
        }
        for (i, (id, site)) in ids.iter().zip([a, b, a]).enumerate() {
            let (entered, left) = spans.enter(id).unwrap();
            assert!(ptr::eq(entered, site));
            assert_eq!(left, Some(Real(10 + i as i64)));
            assert_eq!(spans.enter(id).unwrap().1, None, "it was told once");
            let Timed { site: closed, begin } = spans.remove(id).unwrap();
            assert!(ptr::eq(closed, site));
            assert_eq!(begin, Virtual(i as i64));
            assert!(spans.enter(id).is_none() && spans.remove(id).is_none());
        }
        assert_eq!((spans.len(), spans.any_displaced()), (0, false));
    }

    #[test]
    fn threads_that_meet_in_places_get_their_own_spans() {
        let spans = <Spans>::default();
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (spans, site) = (&spans, site(&format!("open {thread}")));
                scope.spawn(move || {
                    for i in 1..5_000_u64 {
                        // The places of one thread, and generations of each.
                        let ids = [0, 1, 2].map(|n| id((1 + i % 8 + n) | ((4 * i + thread) << 51)));
                        for id in &ids {
                            spans.insert(id, Timed { site, begin: Virtual(i as i64) });
                        }
                        for id in &ids {
                            assert!(ptr::eq(spans.leave(id, Real(i as i64)).unwrap(), site));
                            assert_eq!(spans.enter(id).unwrap().1, Some(Real(i as i64)));
                            let Timed { site: closed, begin } = spans.remove(id).unwrap();
                            assert!(ptr::eq(closed, site) && begin == Virtual(i as i64));
                        }
                    }
                });
            }
        });
        assert_eq!((spans.len(), spans.any_displaced()), (0, false));
    }
}
