//! Open spans to which andweorc gives the ids itself, where there is no registry: with who holds
//! them.
//!
//! An id names the place of its span and the thread that opened it, as one of tracing's registry
//! does, and how many that thread has opened before. A thread takes the place that it has left
//! last, or one of those that follow: it goes on to use the same few. A span that finds none free
//! gets an id that names no place.

use crate::span_refs::{PLACES, Spans, THREAD, THREADS, Timed};
use andweorc_core::hooks::thread;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use tracing_core::Metadata;
use tracing_core::span::Id;

/// In the ids that name a place.
const PLACED: u64 = 1 << 61;

/// In those that name none.
const DISPLACED: u64 = 1 << 62;

/// How many places are tried.
const TRIES: usize = 4;

const _: () =
    assert!(THREADS << THREAD <= PLACED, "an id names its thread below what tells its kind");

andweorc_core::hooks::plain_thread_local! {
    /// Which place the calling thread tries next, below, and above it how many spans it has opened.
    static NEXT: Cell<u64> = Cell::new(0);
}

/// Record that is kept of an open span.
#[derive(Debug, Default)]
pub(crate) struct SpanRefs {
    /// How many handles and open children it has.
    by: AtomicUsize,
    /// The id of the span that it holds; 0 for none.
    parent: AtomicU64,
    /// Null before its first span.
    metadata: AtomicPtr<Metadata<'static>>,
}

impl SpanRefs {
    /// A span begins, which holds its parent.
    fn set(&self, parent: Option<&Id>, metadata: &'static Metadata<'static>) {
        // Relaxed, all three: told to nobody before the span's id is.
        self.by.store(1, Ordering::Relaxed);
        self.parent.store(parent.map_or(0, Id::into_u64), Ordering::Relaxed);
        self.metadata.store(ptr::from_ref(metadata).cast_mut(), Ordering::Relaxed);
    }

    fn parent(&self) -> Option<Id> {
        // Relaxed: as old as the id by which this was found.
        let parent = self.parent.load(Ordering::Relaxed);
        (parent != 0).then(|| Id::from_u64(parent))
    }

    fn metadata(&self) -> Option<&'static Metadata<'static>> {
        // Relaxed, as above.
        let metadata = self.metadata.load(Ordering::Relaxed);
        // SAFETY: null, or from a `&'static`.
        unsafe { metadata.as_ref() }
    }
}

/// Returns what the ids of the calling thread have in common, from bit [`THREAD`] on.
#[inline]
fn own() -> u64 {
    (PLACED >> THREAD) | thread::number() as u64
}

/// The id of the place that the calling thread tries next.
#[inline]
fn next() -> u64 {
    let next = NEXT.get();
    NEXT.set(next.wrapping_add(PLACES + 1));
    (own() << THREAD) | (next & ((1 << THREAD) - 1))
}

impl Spans<SpanRefs> {
    /// A span begins, which holds its `parent`. Returns its id.
    #[inline]
    pub(crate) fn open(
        &self,
        timed: Option<Timed>,
        parent: Option<&Id>,
        metadata: &'static Metadata<'static>,
    ) -> Id {
        let id = next();
        if self.take(id, timed, |held| held.set(parent, metadata)) {
            return Id::from_u64(id);
        }
        self.open_elsewhere(timed, parent, metadata)
    }

    /// Opens a span as `open` does, where the first place is not free.
    #[cold]
    #[inline(never)]
    fn open_elsewhere(
        &self,
        timed: Option<Timed>,
        parent: Option<&Id>,
        metadata: &'static Metadata<'static>,
    ) -> Id {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let set = |held: &SpanRefs| held.set(parent, metadata);
        let placed = (1..TRIES).map(|_| next()).find(|&id| self.take(id, timed, set));
        // Relaxed: only that each has one of its own.
        let id = placed.unwrap_or_else(|| DISPLACED | OPENED.fetch_add(1, Ordering::Relaxed));
        let id = Id::from_u64(id);
        if placed.is_none() {
            self.displace(&id, timed, set);
        }
        id
    }

    /// One more holds a span. Says whether it is open.
    #[inline]
    pub(crate) fn hold(&self, id: &Id) -> bool {
        // Relaxed: who holds it more has it from somebody who holds it.
        self.more(id, |held| held.by.fetch_add(1, Ordering::Relaxed)).is_some()
    }

    /// One less holds a span. The last, who is to [remove](Spans::remove) it, is told which parent
    /// it holds.
    #[inline]
    pub(crate) fn release(&self, id: &Id) -> Option<Option<Id>> {
        self.more(id, |held| {
            // Where nobody else holds it nobody else can come to: there is nothing to take off.
            // Acquire, pairs with the Release of whoever held it before.
            let alone = held.by.load(Ordering::Acquire) == 1;
            // AcqRel, pairs with itself, and with the Acquire above.
            let last = alone || held.by.fetch_sub(1, Ordering::AcqRel) == 1;
            last.then(|| held.parent())
        })?
    }

    /// A place of the calling thread is free again, if the span of this id had one.
    #[inline]
    pub(crate) fn was_removed(id: &Id) {
        let id = id.into_u64();
        if id >> THREAD == own() {
            let opened = NEXT.get() - NEXT.get() % PLACES;
            NEXT.set(opened + id % PLACES);
        }
    }

    /// The parent that an open span holds.
    pub(crate) fn parent(&self, id: &Id) -> Option<Id> {
        self.more(id, SpanRefs::parent)?
    }

    /// The call site of an open span.
    pub(crate) fn metadata(&self, id: &Id) -> Option<&'static Metadata<'static>> {
        self.more(id, SpanRefs::metadata)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread::scope;
    use tracing::info_span;

    fn metadata() -> &'static Metadata<'static> {
        let registry = tracing_subscriber::registry();
        tracing::subscriber::with_default(registry, || {
            info_span!("given").metadata().expect("a registry wants all")
        })
    }

    /// Closes what nobody else holds.
    fn close(spans: &Spans<SpanRefs>, id: &Id) {
        assert!(spans.release(id).is_some());
        spans.remove(id);
        Spans::was_removed(id);
    }

    #[test]
    fn a_thread_goes_on_in_the_place_that_it_left_under_another_id() {
        let (spans, metadata) = (Spans::<SpanRefs>::default(), metadata());
        let place = |id: &Id| id.into_u64() % PLACES;
        let mut ids = HashSet::new();
        let around = spans.open(None, None, metadata);
        let first = spans.open(None, Some(&around), metadata);
        close(&spans, &first);
        for _ in 0..2 * PLACES {
            let id = spans.open(None, None, metadata);
            assert_eq!(place(&id), place(&first));
            assert!(ids.insert(id.into_u64()), "an id came twice");
            close(&spans, &id);
        }
        assert_eq!(spans.len(), 1);
    }

    #[test]
    fn more_spans_than_places_are_told_apart() {
        let (spans, metadata) = (Spans::<SpanRefs>::default(), metadata());
        let mut ids: Vec<Id> = Vec::new();
        for _ in 0..3 * PLACES {
            ids.push(spans.open(None, ids.last(), metadata));
        }
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        assert_eq!(spans.len(), ids.len());
        for (id, parent) in ids.iter().zip([None].into_iter().chain(ids.iter().map(Some))) {
            assert_eq!(spans.parent(id).as_ref(), parent);
            assert!(spans.metadata(id).is_some());
        }
        ids.iter().rev().for_each(|id| close(&spans, id));
        assert_eq!(spans.len(), 0);
        assert!(ids.iter().all(|id| !spans.hold(id)), "a closed span was found");
    }

    #[test]
    fn the_last_of_those_who_hold_a_span_is_told_on_whatever_thread() {
        let (spans, metadata) = (&Spans::<SpanRefs>::default(), metadata());
        for _ in 0..500 {
            let parent = spans.open(None, None, metadata);
            let id = &spans.open(None, Some(&parent), metadata);
            let last = AtomicUsize::new(0);
            (0..3).for_each(|_| assert!(spans.hold(id)));
            scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        if let Some(held) = spans.release(id) {
                            assert_eq!(held.as_ref(), Some(&parent));
                            last.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            assert_eq!(last.into_inner(), 1);
            spans.remove(id);
            close(spans, &parent);
        }
        assert_eq!(spans.len(), 0);
    }

    #[test]
    fn threads_open_and_close_each_others_spans() {
        let (spans, metadata) = (&Spans::<SpanRefs>::default(), metadata());
        let (send, receive) = std::sync::mpsc::channel::<Id>();
        scope(|scope| {
            for _ in 0..3 {
                let send = send.clone();
                scope.spawn(move || {
                    for i in 0..20_000 {
                        let id = spans.open(None, None, metadata);
                        if i % 3 == 0 { send.send(id).unwrap() } else { close(spans, &id) }
                    }
                });
            }
            drop(send);
            for id in receive {
                close(spans, &id);
            }
        });
        assert_eq!(spans.len(), 0);
    }
}
