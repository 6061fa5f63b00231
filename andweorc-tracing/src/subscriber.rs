//! A subscriber for programs in which nobody but andweorc looks at spans.

use crate::filter::{Wanted, ask_again_when_switched};
use crate::record::Recorder;
use crate::span_ids::SpanRefs;
use crate::span_refs::{Spans, Timed};
#[cfg(tokio_unstable)]
use crate::tasks::Part;
use crate::unseen;
use andweorc_core::hooks::wall;
use std::any::TypeId;
use std::iter;
use std::ptr;
use std::sync::Arc;
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Dispatch, Event, Interest, LevelFilter, Metadata, dispatcher};

/// Makes every span a point and a target, in a program without another subscriber. See
/// [`Subscriber`].
///
/// ```
/// andweorc_tracing::subscriber().init();
/// tracing::info_span!("request").in_scope(|| {});
/// ```
pub fn subscriber() -> Subscriber {
    unseen::made();
    let recorder = Recorder::default();
    let wanted = Wanted { sites: Arc::clone(&recorder.sites), ..Wanted::default() };
    Subscriber { recorder, wanted }
}

/// A [`tracing::Subscriber`](tracing_core::Subscriber) that does what [`Layer`](crate::Layer) does,
/// for programs that have neither layers nor a registry. It takes three fifths of the time that
/// both together take for a span: it keeps of one only what andweorc needs.
///
/// tracing's feature `log` makes log records of spans and events only where there is no subscriber;
/// with `log-always` it does beside this one.
#[derive(Debug)]
#[must_use = "a subscriber records nothing before `init`"]
pub struct Subscriber {
    pub(crate) recorder: Recorder<SpanRefs>,
    wanted: Wanted,
}

impl Subscriber {
    /// Narrows the spans to those that `filter` lets through. It is asked once for each call site.
    pub fn with_spans(
        mut self,
        filter: impl Fn(&Metadata<'_>) -> bool + Send + Sync + 'static,
    ) -> Subscriber {
        self.wanted.spans = Some(Box::new(filter));
        self
    }

    /// Makes the events that `filter` lets through progress points, as
    /// [`Layer::with_events`](crate::Layer::with_events) does.
    pub fn with_events(
        mut self,
        filter: impl Fn(&Metadata<'_>) -> bool + Send + Sync + 'static,
    ) -> Subscriber {
        self.wanted.events = Some(Box::new(filter));
        self
    }

    /// Leaves out spans and events that are more verbose than `level`, as
    /// [`Layer::with_max_level`](crate::Layer::with_max_level) does.
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

    /// One less holds a span. The last closes it, and is told which parent it held.
    fn release(&self, id: &Id) -> Option<Option<Id>> {
        let parent = self.recorder.open.release(id)?;
        self.recorder.closed(id);
        Spans::was_removed(id);
        Some(parent)
    }

    /// The spans around one inside of `parent`, from the inside out.
    fn around(&self, parent: Option<&Id>) -> impl Iterator<Item = &'static Metadata<'static>> {
        let open = &self.recorder.open;
        let spans = iter::successors(parent.cloned(), |span| open.parent(span));
        spans.map_while(|span| open.metadata(&span))
    }
}

impl tracing_core::Subscriber for Subscriber {
    fn on_register_dispatch(&self, dispatch: &Dispatch) {
        unseen::install(dispatch);
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
        let open = &self.recorder.open;
        let parent = parent.filter(|parent| open.hold(parent));
        let (parent, metadata) = (parent.as_ref(), attributes.metadata());
        #[cfg(tokio_unstable)]
        if Part::of(metadata).is_some() {
            let id = open.open(None, parent, metadata);
            self.recorder.opened_by_tokio(attributes, &id);
            return id;
        }
        let timed = self.recorder.opens(metadata, || self.around(parent));
        let id = open.open(timed, parent, metadata);
        if let Some(Timed { site, .. }) = timed
            && wall::is_recording()
        {
            let is_target = |span: &Id| {
                open.metadata(span).is_some_and(|metadata| self.recorder.is_target(metadata))
            };
            let around = iter::successors(parent.cloned(), |span| open.parent(span));
            let around = around.map(|span| (span.clone(), is_target(&span)));
            self.recorder.wall.opened(&id, site.target, around);
        }
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
        self.recorder.open.hold(id);
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
            let metadata = self.recorder.open.metadata(&id)?;
            Some(Current::new(id, metadata))
        });
        current.unwrap_or_else(Current::none)
    }

    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        if id == TypeId::of::<Self>() {
            Some(ptr::from_ref(self).cast())
        } else if id == TypeId::of::<Wanted>() {
            Some(ptr::from_ref(&self.wanted).cast())
        } else {
            None
        }
    }
}
