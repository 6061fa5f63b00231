//! Recorder of the spans and events that were chosen: it times spans and counts events.

use crate::site::{self, Site, Sites};
use crate::span_refs::{Spans, Timed};
#[cfg(tokio_unstable)]
use crate::tasks::{Part, Tasks, Used};
use crate::wall::WallSpans;
use andweorc_core::hooks::asked::{Switches, switches};
use andweorc_core::hooks::point::Point;
use andweorc_core::hooks::target::Target;
#[cfg(any(feature = "layer", tokio_unstable))]
use andweorc_core::hooks::thread::was_enabled;
use andweorc_core::hooks::thread::{Entered, Stay};
use andweorc_core::hooks::time::{Nanos, Real};
#[cfg(feature = "layer")]
use andweorc_core::hooks::wall;
use andweorc_core::hooks::{clock, enabled, thread};
use std::cell::RefCell;
use std::ptr;
use std::sync::Arc;
#[cfg(feature = "layer")]
use tracing_core::Subscriber;
#[cfg(tokio_unstable)]
use tracing_core::callsite;
#[cfg(any(feature = "layer", tokio_unstable))]
use tracing_core::span::Attributes;
use tracing_core::span::Id;
use tracing_core::{Event, Metadata};
#[cfg(feature = "layer")]
use tracing_subscriber::layer::Context;
#[cfg(feature = "layer")]
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// Times the spans of one subscriber and counts its events: all that it is told of. Keeps `M` more
/// of each open span.
#[derive(Debug, Default)]
pub(crate) struct Recorder<M = ()> {
    pub(crate) sites: Arc<Sites>,
    pub(crate) open: Arc<Spans<M>>,
    pub(crate) wall: WallSpans,
    #[cfg(tokio_unstable)]
    pub(crate) tasks: Tasks,
}

/// A span that this thread has entered and not left.
struct Entry {
    id: u64,
    /// Sites of the subscriber whose span this is: each subscriber has ids of its own.
    of: *const Sites,
    target: &'static Target,
    wait: &'static Target,
    entered: Entered,
}

thread_local! {
    static ENTRIES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` with the calling thread's entries. `None` when they are gone already, since the thread
/// ends, or in use, since an allocator enters spans: what is entered then is not timed.
fn with_entries<R>(f: impl FnOnce(&mut Vec<Entry>) -> R) -> Option<R> {
    let with = ENTRIES.try_with(|entries| Some(f(&mut *entries.try_borrow_mut().ok()?)));
    with.ok().flatten()
}

/// Leaves the entry of this span, if there is one. Time that entries of one call site share is
/// counted once.
#[inline]
fn leave(entries: &mut Vec<Entry>, id: u64, now: Real) {
    // Most often the last one, which stays in its place meanwhile: to copy it out would have to
    // wait for what was just written there.
    match entries.split_last() {
        Some((Entry { id: last, target, entered, .. }, below)) if *last == id => {
            let again = below.iter().any(|entry| ptr::eq(entry.target, *target));
            thread::leave(target, entered, !again, now);
            entries.pop();
        }
        _ => leave_below(entries, id, now),
    }
}

/// Leaves the entry of a span that is not the last, if there is one: spans may be left out of
/// order.
#[cold]
#[inline(never)]
fn leave_below(entries: &mut Vec<Entry>, id: u64, now: Real) {
    let Some(at) = entries.iter().rposition(|entry| entry.id == id) else { return };
    let Entry { target, entered, .. } = entries.remove(at);
    let (below, above) = entries.split_at_mut(at);
    let same = |entry: &&Entry| ptr::eq(entry.target, target);
    let busy = if below.iter().any(|entry| same(&entry)) {
        Nanos::ZERO
    } else {
        above.iter().find(same).map_or(now, |entry| entry.entered.at()) - entered.at()
    };
    // There is one above, as this was not the last.
    if let Some(next) = above.first_mut() {
        let Stay { own, .. } = thread::exit_under(entered, &mut next.entered, now);
        target.record(busy, own);
    }
}

/// Whether a span is one of the user's: each is in one of tokio's, where tokio reports its tasks.
fn is_users(span: &Metadata<'_>) -> bool {
    #[cfg(tokio_unstable)]
    return Part::of(span).is_none();
    #[cfg(not(tokio_unstable))]
    {
        let _ = span;
        true
    }
}

/// Notes how deep a span of this point is, inside of these. Most often it is known to be a root in
/// a task: it is out of the way of those.
#[cold]
#[inline(never)]
fn look_at_depth(point: &Point, around: impl Iterator<Item = &'static Metadata<'static>>) {
    // A span that was filtered out is no parent, and a library's around the user's own is none
    // either.
    let parents = around.filter(|span| is_users(span) && counts(span, point));
    // As deep as it was seen before is deep enough to know.
    let depth = parents.take(point.depth() as usize).count() as u32;
    point.seen_at_depth(depth, thread::within());
}

/// Whether a span around one of `point` counts as its parent.
fn counts(span: &Metadata<'_>, point: &Point) -> bool {
    !point.is_own() || site::is_own(span)
}

impl<M: Default> Recorder<M> {
    /// Returns the address by which this recorder's entries are known.
    #[inline]
    fn own(&self) -> *const Sites {
        Arc::as_ptr(&self.sites)
    }

    /// The innermost of its spans that the calling thread has entered and not left.
    pub(crate) fn innermost(&self) -> Option<Id> {
        let own = |entry: &&Entry| ptr::eq(entry.of, self.own());
        with_entries(|entries| entries.iter().rfind(own).map(|entry| Id::from_u64(entry.id)))?
    }

    /// Returns what a span is timed as that is opened now, inside of those that are `around` it,
    /// from the inside out. `None` while andweorc is off.
    #[inline]
    pub(crate) fn opens<I>(
        &self,
        metadata: &Metadata<'_>,
        around: impl FnOnce() -> I,
    ) -> Option<Timed>
    where
        I: Iterator<Item = &'static Metadata<'static>>,
    {
        if !enabled() {
            return None;
        }
        let Site::Span(site) = self.sites.get(metadata) else { return None };
        // None is further out than a root is where the thread is.
        if site.point.nesting() > 0 && site.point.nesting() > thread::within() as u32 {
            look_at_depth(site.point, around());
        }
        Some(Timed { site, begin: thread::virtual_now() })
    }

    /// Whether spans of this call site are targets.
    pub(crate) fn is_target(&self, metadata: &Metadata<'_>) -> bool {
        matches!(self.sites.get(metadata), Site::Span(_))
    }

    /// A span of tokio's was opened.
    #[cfg(tokio_unstable)]
    pub(crate) fn opened_by_tokio(&self, attributes: &Attributes<'_>, id: &Id) {
        if was_enabled() {
            self.tasks.on_new_span(attributes, id);
        }
    }

    /// The calling thread enters a span.
    #[inline]
    pub(crate) fn entered(&self, id: &Id) {
        let switches = switches();
        if !switches.has(Switches::WAS_ENABLED) {
            return;
        }
        let Some((site, left)) = self.open.enter(id) else {
            #[cfg(tokio_unstable)]
            self.tasks.on_enter(id);
            return;
        };
        let now = clock::now();
        thread::wait_ends(site.wait);
        with_entries(|entries| {
            if let Some(left) = left {
                let around = entries.last().map(|entry| entry.wait);
                thread::record_wait(site.wait, around, left, now);
            }
            let entered = thread::enter(site.target, now);
            let (id, of) = (id.into_u64(), self.own());
            entries.push(Entry { id, of, target: site.target, wait: site.wait, entered });
        });
        if switches.has(Switches::RECORDS_WALL) {
            self.wall.entered(id, now);
        }
    }

    /// The calling thread leaves a span that it has entered.
    #[inline]
    pub(crate) fn left(&self, id: &Id) {
        let switches = switches();
        if !switches.has(Switches::WAS_ENABLED) {
            return;
        }
        let now = clock::now();
        if let Some(site) = self.open.leave(id, now) {
            thread::wait_begins(site.wait);
        }
        if switches.has(Switches::RECORDS_WALL) {
            self.wall.left(id, now);
        }
        with_entries(|entries| leave(entries, id.into_u64(), now));
        #[cfg(tokio_unstable)]
        self.tasks.on_exit(id);
    }

    /// A span was closed.
    ///
    /// The thread pays here, and not each time that it leaves the span: a future that leaves it
    /// has most often sent something outside and is about to wait for the answer. A pause between
    /// the two would be taken off that wait.
    #[inline]
    pub(crate) fn closed(&self, id: &Id) {
        if let Some(Timed { site, begin }) = self.open.remove(id) {
            thread::wait_ends(site.wait);
            thread::sync_point();
            site.point.hit_interval(begin, thread::virtual_now());
        }
        if self.wall.any() {
            self.wall.closed(id);
        }
        #[cfg(tokio_unstable)]
        self.tasks.on_close(id);
    }

    /// An event happened.
    #[inline]
    pub(crate) fn happened(&self, event: &Event<'_>) {
        if enabled()
            && let Site::Event(point) = self.sites.get(event.metadata())
        {
            point.hit();
        }
    }

    /// A task's waker was used.
    #[cfg(tokio_unstable)]
    pub(crate) fn waker_used(&self, event: &Event<'_>) {
        match self.tasks.on_event(event) {
            Used::Told => {}
            Used::Kept => {
                // tokio has a call site for each use, and these tell nothing.
                self.sites.unwant(event.metadata());
                callsite::rebuild_interest_cache();
            }
        }
    }
}

#[cfg(feature = "layer")]
impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        #[cfg(tokio_unstable)]
        if Part::of(attributes.metadata()).is_some() {
            return self.opened_by_tokio(attributes, id);
        }
        let around = || {
            let scope = context.span_scope(id).into_iter().flatten();
            scope.skip(1).map(|span: SpanRef<'_, S>| span.metadata())
        };
        if let Some(timed) = self.opens(attributes.metadata(), around) {
            self.open.insert(id, timed);
            if wall::is_recording() {
                let around = context.span_scope(id).into_iter().flatten().skip(1);
                let around = around.map(|span| (span.id(), self.is_target(span.metadata())));
                self.wall.opened(id, timed.site.target, around);
            }
        }
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        self.entered(id);
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.left(id);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        if was_enabled() {
            self.closed(&id);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.happened(event);
    }
}

#[cfg(feature = "layer")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::{layer, subscriber};
    use andweorc_core::experiment::Experimenter;
    use andweorc_core::target::targets;
    use proptest::prelude::*;
    use std::sync::{LazyLock, Mutex, PoisonError};
    use tracing::{Dispatch, Span, dispatcher, info_span};
    use tracing_subscriber::prelude::*;

    static ON: LazyLock<Experimenter> =
        LazyLock::new(|| Experimenter::new().expect("the only one in this process"));

    /// Step that a program may take with spans. Indices are taken modulo what there is.
    #[derive(Clone, Debug)]
    enum Step {
        Open { site: u8, child_of: Option<usize> },
        Copy(usize),
        Enter(usize),
        Exit(usize),
        Drop(usize),
        DropElsewhere(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (any::<u8>(), any::<Option<usize>>())
                .prop_map(|(site, child_of)| Step::Open { site, child_of }),
            any::<usize>().prop_map(Step::Copy),
            any::<usize>().prop_map(Step::Enter),
            any::<usize>().prop_map(Step::Exit),
            any::<usize>().prop_map(Step::Drop),
            any::<usize>().prop_map(Step::DropElsewhere),
        ]
    }

    fn open(site: u8, parent: Option<&Span>) -> Span {
        match (site % 3, parent) {
            (0, None) => info_span!("random 0"),
            (0, Some(parent)) => info_span!(parent: parent, "random 0"),
            (1, None) => info_span!("random 1"),
            (1, Some(parent)) => info_span!(parent: parent, "random 1"),
            (_, None) => info_span!("ignored"),
            (_, Some(parent)) => info_span!(parent: parent, "ignored"),
        }
    }

    fn exit(span: Span) {
        span.with_subscriber(|(id, to)| to.exit(id));
    }

    fn run(steps: Vec<Step>) {
        let mut spans: Vec<Span> = Vec::new();
        // A handle is kept for as long as the span is entered, as its guards do.
        let mut entered: Vec<Span> = Vec::new();
        for step in steps {
            let at = |index: usize| (!spans.is_empty()).then(|| index % spans.len());
            match step {
                Step::Open { site, child_of } => {
                    let span = open(site, child_of.and_then(at).map(|at| &spans[at]));
                    spans.push(span);
                }
                Step::Copy(index) => spans.extend(at(index).map(|at| spans[at].clone())),
                Step::Enter(index) => {
                    if let Some(at) = at(index) {
                        spans[at].with_subscriber(|(id, to)| to.enter(id));
                        entered.push(spans[at].clone());
                    }
                }
                Step::Exit(index) => {
                    if !entered.is_empty() {
                        exit(entered.remove(index % entered.len()));
                    }
                }
                Step::Drop(index) => {
                    at(index).map(|at| spans.swap_remove(at));
                }
                Step::DropElsewhere(index) => {
                    if let Some(at) = at(index) {
                        let span = spans.swap_remove(at);
                        let to = dispatcher::get_default(Dispatch::clone);
                        // The registry closes parents through the thread's own default.
                        std::thread::spawn(move || dispatcher::with_default(&to, || drop(span)))
                            .join()
                            .unwrap();
                    }
                }
            }
        }
        entered.into_iter().for_each(exit);
    }

    /// The time of the targets of these names so far, ns.
    fn sum(of: impl Fn(&str) -> bool, time: impl Fn(&Target) -> u64) -> u64 {
        targets().into_iter().filter(|target| of(target.name())).map(time).sum()
    }

    /// No time is lost, and none is kept, whatever spans do that are reported to this subscriber.
    fn check(
        to: &Dispatch,
        still_open: impl Fn() -> usize,
        steps: Vec<Step>,
    ) -> Result<(), TestCaseError> {
        // Targets are the whole process's.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let all = |time: fn(&Target) -> u64| sum(|_| true, time);
        let in_open = || sum(|name| name == "open", Target::busy_ns);
        let (own, busy) = (all(Target::own_ns), in_open());
        dispatcher::with_default(to, || {
            let open = info_span!("open");
            open.in_scope(|| run(steps));
            // Each moment in `open` is the own time of one target.
            prop_assert_eq!(all(Target::own_ns) - own, in_open() - busy);
            prop_assert_eq!(still_open(), 1);
            drop(open);
            prop_assert_eq!(still_open(), 0);
            Ok(())
        })?;
        prop_assert!(ENTRIES.with_borrow(Vec::is_empty));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_spans_do_the_layer_loses_and_keeps_nothing(
            steps in prop::collection::vec(step(), 0..60)
        ) {
            LazyLock::force(&ON);
            let layer = layer().with_spans(|span| span.name() != "ignored");
            let still_open = Arc::clone(&layer.recorder().open);
            let to = Dispatch::new(tracing_subscriber::registry().with(layer));
            check(&to, || still_open.len(), steps)?;
        }

        #[test]
        fn nor_does_the_subscriber(steps in prop::collection::vec(step(), 0..60)) {
            LazyLock::force(&ON);
            let subscriber = subscriber().with_spans(|span| span.name() != "ignored");
            let still_open = Arc::clone(&subscriber.recorder.open);
            check(&Dispatch::new(subscriber), || still_open.len(), steps)?;
        }
    }
}
