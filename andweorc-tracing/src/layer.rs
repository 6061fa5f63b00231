//! The layer.

use crate::site::{self, Site, Sites};
use crate::table::{Open, Table};
use andweorc_core::target::Target;
use andweorc_core::thread::{Entered, Stay};
use andweorc_core::time::Nanos;
use andweorc_core::{clock, enabled, thread};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use tracing_core::span::{Attributes, Id};
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::Context;

/// Makes every span a point and a target. See [`Layer`].
///
/// ```
/// use tracing_subscriber::prelude::*;
/// let subscriber = tracing_subscriber::registry().with(andweorc_tracing::layer());
/// # drop(subscriber);
/// ```
pub fn layer() -> Layer {
    Layer { seen: Arc::default(), spans: None, events: None }
}

type Filter = Arc<dyn Fn(&Metadata<'_>) -> bool + Send + Sync>;

/// A [`tracing_subscriber::Layer`] for which every span call site is a latency point and a target, and every named event
/// (`info!(name: "order_done", ..)`) a progress point.
///
/// A global filter in front of it, such as an `EnvFilter` added by `.with(..)`, hides spans from it too; give such a filter to the layer that
/// it is meant for: `fmt::layer().with_filter(..)`.
#[derive(Clone)]
pub struct Layer {
    seen: Arc<Seen>,
    spans: Option<Filter>,
    events: Option<Filter>,
}

/// What the layer has seen of its subscriber.
#[derive(Debug, Default)]
struct Seen {
    sites: Sites,
    open: Table,
}

impl Layer {
    /// Narrows the spans to those that `filter` lets through. It is asked once for each call site.
    #[must_use]
    pub fn with_spans(
        mut self,
        filter: impl Fn(&Metadata<'_>) -> bool + Send + Sync + 'static,
    ) -> Layer {
        self.spans = Some(Arc::new(filter));
        self
    }

    /// Makes the events that `filter` lets through progress points, in the place of the named ones. Those without a name are called
    /// by their place, `file:line`. It is asked once for each call site.
    #[must_use]
    pub fn with_events(
        mut self,
        filter: impl Fn(&Metadata<'_>) -> bool + Send + Sync + 'static,
    ) -> Layer {
        self.events = Some(Arc::new(filter));
        self
    }

    fn site(&self, metadata: &'static Metadata<'static>) -> Site {
        self.seen.sites.get(metadata, |metadata| {
            if metadata.is_span() {
                let wanted = self.spans.as_ref().is_none_or(|filter| filter(metadata));
                if wanted { site::span(metadata) } else { Site::Ignored }
            } else {
                let wanted = match &self.events {
                    Some(filter) => filter(metadata),
                    None => site::is_named(metadata),
                };
                if wanted { site::event(metadata) } else { Site::Ignored }
            }
        })
    }
}

/// A span that this thread has entered and not left.
struct Entry {
    id: u64,
    target: &'static Target,
    entered: Entered,
}

thread_local! {
    static ENTRIES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if !enabled() {
            return;
        }
        let site = self.site(attributes.metadata());
        let Site::Span { point, .. } = site else { return };
        let has_parent = attributes.parent().is_some()
            || (attributes.is_contextual() && context.current_span().id().is_some());
        if !has_parent {
            point.seen_as_root();
        }
        let begin = thread::virtual_at(clock::now());
        self.seen.open.insert(id, Open { site, begin });
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        if !enabled() {
            return;
        }
        let Some(Open { site: Site::Span { target, .. }, .. }) = self.seen.open.get(id) else { return };
        let entered = thread::enter(target, clock::now());
        ENTRIES.with_borrow_mut(|entries| {
            entries.push(Entry { id: id.into_u64(), target, entered });
        });
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        if !enabled() {
            return;
        }
        let id = id.into_u64();
        // Most often the last one; spans may be left out of order.
        let left = ENTRIES.with_borrow_mut(|entries| {
            let at = entries.iter().rposition(|entry| entry.id == id)?;
            let entry = entries.remove(at);
            let again = entries.iter().any(|other| other.target.id() == entry.target.id());
            Some((entry, again))
        });
        let Some((entry, again)) = left else { return };
        let Stay { busy, own } = thread::exit(entry.entered, clock::now());
        // Inside another entry of the same call site the time is counted by that one.
        entry.target.record(if again { Nanos::ZERO } else { busy }, own);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        if !enabled() {
            return;
        }
        if let Some(Open { site: Site::Span { point, .. }, begin }) = self.seen.open.remove(&id) {
            point.hit_interval(begin, thread::virtual_at(clock::now()));
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if enabled()
            && let Site::Event(point) = self.site(event.metadata())
        {
            point.hit();
        }
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer")
            .field("spans_filtered", &self.spans.is_some())
            .field("events_filtered", &self.events.is_some())
            .finish_non_exhaustive()
    }
}
