//! The layer.
//!
//! It is a per-layer filter ([`Filtered`]) of its own: a layer without one would have to ask for
//! every span and event of the program, and so switch on what the program had off. What it does not
//! want, other layers get as ever, and what no other layer wants stays off.

use crate::filter::{Wanted, ask_again_when_switched};
use crate::record::Recorder;
#[cfg(tokio_unstable)]
use crate::tasks::Part;
use crate::unseen;
#[cfg(tokio_unstable)]
use andweorc_core::hooks::thread::was_enabled;
use std::any::{TypeId, type_name};
use std::ptr;
use std::sync::Arc;
use tracing_core::span::{Attributes, Id};
#[cfg(tokio_unstable)]
use tracing_core::subscriber::NoSubscriber;
use tracing_core::{Dispatch, Event, Interest, LevelFilter, Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Makes every span a point and a target. See [`Layer`].
///
/// ```
/// use tracing_subscriber::prelude::*;
/// let subscriber = tracing_subscriber::registry().with(andweorc_tracing::layer());
/// # drop(subscriber);
/// ```
pub fn layer<S>() -> Layer<S> {
    unseen::made();
    let recorder = Recorder::default();
    let wanted = Wanted { sites: Arc::clone(&recorder.sites), ..Wanted::default() };
    Layer { filtered: Filtered::new(recorder, wanted), takes_filters: takes_filters::<S>() }
}

/// A [`tracing_subscriber::Layer`] for which every span call site is a latency point and a target,
/// and every named event (`info!(name: "order_done", ..)`) a progress point.
///
/// It asks for these whatever their level, but for spans that dependencies have at level `TRACE`;
/// for no other events; and for nothing at all while andweorc is off. Other layers get what they
/// get without it. Add it last: beneath a layer without a filter, tracing asks for each event anew
/// whether somebody wants it.
///
/// What is done only where `tracing::enabled!` or `event_enabled!` says so, to prepare a costly log
/// record, is not done for this layer's sake: profiling would slow the program down for nobody
/// (sqlx prepares one for each statement). A named event in there counts if another layer asks for
/// it, or [`with_events`](Layer::with_events) does.
///
/// A global filter beside it, such as an `EnvFilter` added by `.with(..)`, hides spans from it too;
/// give such a filter to the layer that it is meant for: `fmt::layer().with_filter(..)`.
#[derive(Debug)]
#[must_use = "a layer records the spans of a subscriber that it is added to"]
pub struct Layer<S = Registry> {
    filtered: Filtered<Recorder, Wanted, S>,
    /// Whether `S` takes filters of layers.
    takes_filters: bool,
}

impl<S> Layer<S> {
    /// Narrows the spans to those that `filter` lets through. It is asked once for each call site.
    pub fn with_spans(
        mut self,
        filter: impl Fn(&Metadata<'_>) -> bool + Send + Sync + 'static,
    ) -> Layer<S> {
        self.filtered.filter_mut().spans = Some(Box::new(filter));
        self
    }

    /// Makes the events that `filter` lets through progress points, in the place of the named ones.
    /// Those without a name are called by their place, `file:line`. It is asked once for each call
    /// site.
    pub fn with_events(
        mut self,
        filter: impl Fn(&Metadata<'_>) -> bool + Send + Sync + 'static,
    ) -> Layer<S> {
        self.filtered.filter_mut().events = Some(Box::new(filter));
        self
    }

    /// Leaves out spans and events that are more verbose than `level`, and no others: with
    /// `Level::TRACE` those that dependencies have at that level are there too. Without this the
    /// greatest level of the whole program is `TRACE` while andweorc is on, so that no span is
    /// missed, and each call site is looked at once.
    pub fn with_max_level(mut self, level: impl Into<LevelFilter>) -> Layer<S> {
        self.filtered.filter_mut().max_level = Some(level.into());
        self
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        self.filtered.inner()
    }

    /// Whether these spans or events are for the recorder, where no filter of the layer decides it.
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        self.filtered.filter().wants(metadata)
    }
}

#[cfg(tokio_unstable)]
impl<S> Layer<S> {
    /// Takes note of a use of a task's waker. The event is not for other layers: one without a
    /// filter would write each of them out. Whoever looks at the runtime itself gets them.
    fn waker_used(&self, event: &Event<'_>) -> bool {
        if was_enabled() && self.wants(event.metadata()) {
            self.recorder().waker_used(event);
        }
        if type_name::<S>().contains("console_subscriber") {
            return true;
        }
        forget_filters(event.metadata());
        false
    }
}

/// Makes the calling thread forget what the filters of layers said of an event that does not get to
/// them. Else they would take it for what they said of the next one.
#[cfg(tokio_unstable)]
fn forget_filters(metadata: &Metadata<'_>) {
    /// tracing-subscriber forgets them when a layer refuses.
    struct Refuse;
    impl<S: Subscriber> tracing_subscriber::Layer<S> for Refuse {
        fn enabled(&self, _: &Metadata<'_>, _: Context<'_, S>) -> bool {
            false
        }
    }
    tracing_subscriber::Layer::with_subscriber(Refuse, NoSubscriber::default()).enabled(metadata);
}

/// Whether `S` takes filters of layers. `tracing_subscriber::fmt::Subscriber` panics when it gets
/// one; it has a global filter, so that a layer on it can do without. Nothing but the name tells it
/// from others: it has too many forms to be downcast to.
fn takes_filters<S>() -> bool {
    !type_name::<S>().contains("tracing_subscriber::fmt::Subscriber<")
}

/// Most go to [`Filtered`]. Enter, exit and close do not: it would look each span up in the
/// registry, to see whether it let it through, and the recorder knows those that it was told of.
impl<S> tracing_subscriber::Layer<S> for Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a> + 'static,
{
    fn on_register_dispatch(&self, dispatch: &Dispatch) {
        unseen::install(dispatch);
        ask_again_when_switched();
    }

    fn on_layer(&mut self, subscriber: &mut S) {
        if self.takes_filters {
            self.filtered.on_layer(subscriber);
        }
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.takes_filters {
            self.filtered.register_callsite(metadata)
        } else {
            Interest::always()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        !self.takes_filters || self.filtered.enabled(metadata, context)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // On the bare registry this may be chained to another layer (`.and_then(..)`), and
        // tracing-subscriber 0.3.23 takes the hint of one for that of both: the other one would get
        // nothing more verbose.
        let may_be_chained = TypeId::of::<S>() == TypeId::of::<Registry>();
        if self.takes_filters && !may_be_chained { self.filtered.max_level_hint() } else { None }
    }

    fn event_enabled(&self, event: &Event<'_>, context: Context<'_, S>) -> bool {
        #[cfg(tokio_unstable)]
        if Part::of(event.metadata()) == Some(Part::Waker) {
            return self.waker_used(event);
        }
        !self.takes_filters || self.filtered.event_enabled(event, context)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if self.takes_filters {
            self.filtered.on_new_span(attributes, id, context);
        } else if self.wants(attributes.metadata()) {
            self.recorder().on_new_span(attributes, id, context);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if self.takes_filters {
            self.filtered.on_event(event, context);
        } else if self.wants(event.metadata()) {
            self.recorder().on_event(event, context);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.recorder().on_enter(id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.recorder().on_exit(id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        self.recorder().on_close(id, context);
    }

    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        if id == TypeId::of::<Self>() {
            Some(ptr::from_ref(self).cast())
        } else if self.takes_filters {
            // So that other layers see that this one has a filter.
            // SAFETY: it is asked for the same type, and what it answers lives in `self`.
            unsafe { self.filtered.downcast_raw(id) }
        } else if id == TypeId::of::<Wanted>() {
            Some(ptr::from_ref(self.filtered.filter()).cast())
        } else {
            None
        }
    }
}
