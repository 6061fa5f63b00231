//! A subscriber for programs in which nobody but andweorc looks at spans.

use crate::filter::{Wanted, ask_again_when_switched};
use crate::record::Recorder;
#[cfg(tokio_unstable)]
use crate::tasks::Part;
use sharded_slab::Slab;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Dispatch, Event, Interest, LevelFilter, Metadata, dispatcher};

/// Makes every span a point and a target, in a program without another subscriber. See [`Subscriber`].
///
/// ```
/// andweorc_tracing::subscriber().init();
/// tracing::info_span!("request").in_scope(|| {});
/// ```
pub fn subscriber() -> Subscriber {
    let recorder = Recorder::default();
    let wanted = Wanted { sites: Arc::clone(&recorder.sites), ..Wanted::default() };
    Subscriber { recorder, wanted, open: Slab::new() }
}

/// A [`tracing::Subscriber`](tracing_core::Subscriber) that does what [`Layer`](crate::Layer) does, for programs that have neither layers nor a registry. It
/// takes about half as long for a span as both together: it keeps of a span only what andweorc needs.
///
/// tracing's feature `log` makes log records of spans and events only where there is no subscriber; with `log-always` it does beside this one.
#[derive(Debug)]
pub struct Subscriber {
    pub(crate) recorder: Recorder,
    wanted: Wanted,
    open: Slab<Open>,
}

/// A span that is not closed.
#[derive(Debug)]
struct Open {
    /// How many handles and open children it has.
    held: AtomicUsize,
    /// Held by this.
    parent: Option<Id>,
    metadata: &'static Metadata<'static>,
}

/// Where a span is. Ids count from one.
fn key(id: &Id) -> usize {
    id.into_u64() as usize - 1
}

impl Subscriber {
    /// Narrows the spans to those that `filter` lets through. It is asked once for each call site.
    #[must_use]
    pub fn with_spans(
        mut self,
        filter: impl Fn(&Metadata<'_>) -> bool + Send + Sync + 'static,
    ) -> Subscriber {
        self.wanted.spans = Some(Box::new(filter));
        self
    }

    /// Makes the events that `filter` lets through progress points, as [`Layer::with_events`](crate::Layer::with_events) does.
    #[must_use]
    pub fn with_events(
        mut self,
        filter: impl Fn(&Metadata<'_>) -> bool + Send + Sync + 'static,
    ) -> Subscriber {
        self.wanted.events = Some(Box::new(filter));
        self
    }

    /// Leaves out spans and events that are more verbose than `level`, as [`Layer::with_max_level`](crate::Layer::with_max_level) does.
    #[must_use]
    pub fn with_max_level(mut self, level: impl Into<LevelFilter>) -> Subscriber {
        self.wanted.max_level = Some(level.into());
        self
    }

    /// Makes it the subscriber of the whole program.
    ///
    /// # Panics
    ///
    /// When the program has one already.
    pub fn init(self) {
        let first = dispatcher::set_global_default(Dispatch::new(self));
        assert!(
            first.is_ok(),
            "the program has a tracing subscriber already: add `andweorc::layer()` to that one, in the place of `andweorc::subscriber()`"
        );
    }

    /// One more holds a span. Says whether it is open.
    fn hold(&self, id: &Id) -> bool {
        // Relaxed: who holds it more has it from somebody who holds it.
        self.open.get(key(id)).map(|open| open.held.fetch_add(1, Ordering::Relaxed)).is_some()
    }

    /// One less holds a span. The last closes it, and is told which parent it held.
    fn release(&self, id: &Id) -> Option<Option<Id>> {
        let open = self.open.get(key(id))?;
        // Release, pairs with the Acquire of whoever is the last.
        if open.held.fetch_sub(1, Ordering::Release) > 1 {
            return None;
        }
        fence(Ordering::Acquire);
        let parent = open.parent.clone();
        drop(open);
        self.recorder.closed(id);
        self.open.remove(key(id));
        Some(parent)
    }

    /// The spans around one inside of `parent`, from the inside out.
    fn around(&self, parent: Option<&Id>) -> impl Iterator<Item = &'static Metadata<'static>> {
        let mut next = parent.cloned();
        iter::from_fn(move || {
            let open = self.open.get(key(next.as_ref()?))?;
            next = open.parent.clone();
            Some(open.metadata)
        })
    }
}

impl tracing_core::Subscriber for Subscriber {
    fn on_register_dispatch(&self, _: &Dispatch) {
        ask_again_when_switched();
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.wanted.interest(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.wanted.lets_through(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.wanted.most_verbose()
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let parent = if attributes.is_contextual() {
            self.recorder.innermost()
        } else {
            attributes.parent().cloned()
        };
        let parent = parent.filter(|parent| self.hold(parent));
        let around = parent.clone();
        let metadata = attributes.metadata();
        let open = Open { held: AtomicUsize::new(1), parent, metadata };
        let key = self.open.insert(open).expect("fewer spans are open than there are numbers");
        let id = Id::from_u64(key as u64 + 1);
        self.recorder.opened(attributes, &id, || self.around(around.as_ref()));
        id
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        #[cfg(tokio_unstable)]
        if Part::of(event.metadata()) == Some(Part::Waker) {
            return self.recorder.waker_used(event);
        }
        self.recorder.happened(event);
    }

    fn enter(&self, id: &Id) {
        self.recorder.entered(id);
    }

    fn exit(&self, id: &Id) {
        self.recorder.left(id);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.hold(id);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let Some(mut parent) = self.release(&id) else { return false };
        // Not by recursion: a chain of spans may be long.
        while let Some(held) = parent {
            parent = self.release(&held).flatten();
        }
        true
    }

    fn current_span(&self) -> Current {
        let current = self.recorder.innermost().and_then(|id| {
            let metadata = self.open.get(key(&id))?.metadata;
            Some(Current::new(id, metadata))
        });
        current.unwrap_or_else(Current::none)
    }
}
