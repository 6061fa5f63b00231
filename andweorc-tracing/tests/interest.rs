//! The layer makes a subscriber ask, beside other layers and in any order, for the layer's own
//! spans and points, and nothing else.
//!
//! Interests and the greatest level are those of all live subscribers of the process: tests take
//! turns.

use andweorc_core::experiment::Experimenter;
use andweorc_core::point::points;
use andweorc_tracing::layer;
use std::cell::Cell;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{
    Dispatch, Event, Level, Subscriber, debug, debug_span, enabled, event_enabled, info,
    span_enabled, trace, trace_span,
};
use tracing_subscriber::layer::Context;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Layer, registry};

/// Switches andweorc on for this process.
static ON: LazyLock<Experimenter> =
    LazyLock::new(|| Experimenter::new().expect("the only one in this process"));

/// Held by the test that runs.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    LazyLock::force(&ON);
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A layer that counts the events and the spans that it gets.
#[derive(Clone, Debug, Default)]
struct Counting(Arc<Mutex<(u32, u32)>>);

impl Counting {
    /// Events and spans since the last call.
    fn take(&self) -> (u32, u32) {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl<S: Subscriber> Layer<S> for Counting {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().0 += 1;
    }

    fn on_new_span(&self, _: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.0.lock().unwrap().1 += 1;
    }
}

fn count(point: &str) -> u64 {
    points().iter().filter(|at| at.name() == point).map(|at| at.count()).sum()
}

/// Counts of what came of [`program`].
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    /// Fields of its five events and three spans that were computed.
    evaluated: u32,
    /// Of these spans, those that became points.
    spans: u64,
    /// Of its two named events, those that became points.
    named: u64,
}

/// Three spans, two named events and three without a name, at the levels info, debug and trace.
fn program(to: &Dispatch) -> Seen {
    let names = ["span_info", "span_debug", "span_trace"];
    let spans = || names.iter().map(|name| count(name)).sum::<u64>();
    let named = || count("named_debug") + count("named_trace");
    let before = (spans(), named());
    let computed = Cell::new(0);
    let field = || {
        computed.set(computed.get() + 1);
        1
    };
    tracing::dispatcher::with_default(to, || {
        // The second time the interests are cached.
        for _ in 0..2 {
            let info = tracing::info_span!("span_info", field = field()).entered();
            let debug = debug_span!("span_debug", field = field()).entered();
            let trace = trace_span!("span_trace", field = field()).entered();
            info!(field = field(), "no name");
            debug!(field = field(), "no name");
            trace!(field = field(), "no name");
            debug!(name: "named_debug", field = field());
            trace!(name: "named_trace", field = field());
            drop((trace, debug, info));
        }
    });
    let (spans, named) = (spans() - before.0, named() - before.1);
    assert!(
        [computed.get().into(), spans, named].iter().all(|n| n.is_multiple_of(2)),
        "both times alike"
    );
    Seen { evaluated: computed.get() / 2, spans: spans / 2, named: named / 2 }
}

/// Runs the test's last argument with a subscriber of the other ones, in each order.
macro_rules! in_each_order {
    ($a:expr, $b:expr; $check:expr) => {
        $check(Dispatch::new(registry().with($a).with($b)));
        $check(Dispatch::new(registry().with($b).with($a)));
        $check(Dispatch::new(registry().with(vec![$a.boxed(), $b.boxed()])));
        $check(Dispatch::new(registry().with(Some($b)).with(Some($a))));
    };
    ($a:expr, $b:expr, $c:expr; $check:expr) => {
        $check(Dispatch::new(registry().with($a).with($b).with($c)));
        $check(Dispatch::new(registry().with($a).with($c).with($b)));
        $check(Dispatch::new(registry().with($b).with($a).with($c)));
        $check(Dispatch::new(registry().with($b).with($c).with($a)));
        $check(Dispatch::new(registry().with($c).with($a).with($b)));
        $check(Dispatch::new(registry().with($c).with($b).with($a)));
    };
}

#[test]
fn alone_it_asks_for_spans_and_named_events_only() {
    let _turn = turn();
    let to = Dispatch::new(registry().with(layer()));
    assert_eq!(program(&to), Seen { evaluated: 5, spans: 3, named: 2 });
}

#[test]
fn beside_a_filtered_layer_it_adds_its_spans_and_no_events() {
    let _turn = turn();
    let counting = Counting::default();
    in_each_order!(
        counting.clone().with_filter(EnvFilter::new("info")), layer();
        |to| {
            assert_eq!(program(&to), Seen { evaluated: 6, spans: 3, named: 2 });
            assert_eq!(counting.take(), (2, 2), "info only, each twice");
        }
    );
    in_each_order!(
        counting.clone().with_filter(EnvFilter::new("info")),
        tracing_subscriber::fmt::layer().with_writer(std::io::sink).with_filter(LevelFilter::WARN),
        layer();
        |to| {
            assert_eq!(program(&to), Seen { evaluated: 6, spans: 3, named: 2 });
            assert_eq!(counting.take(), (2, 2), "info only, each twice");
        }
    );
}

#[test]
fn layer_takes_nothing_from_an_unfiltered_layer() {
    let _turn = turn();
    let counting = Counting::default();
    in_each_order!(
        counting.clone(), layer().with_spans(|_| false).with_events(|_| false);
        |to| {
            assert_eq!(program(&to), Seen { evaluated: 8, spans: 0, named: 0 });
            assert_eq!(counting.take(), (10, 6));
        }
    );
}

/// Whether there would be events, spans, or any of both at level debug, as a program asks before it
/// prepares what it would tell.
fn would_be(to: &Dispatch) -> [bool; 3] {
    tracing::dispatcher::with_default(to, || {
        // The second time the interests are cached.
        let [once, again] = [(); 2].map(|()| {
            [event_enabled!(Level::DEBUG), span_enabled!(Level::DEBUG), enabled!(Level::DEBUG)]
        });
        assert_eq!(once, again);
        once
    })
}

#[test]
fn event_checks_stay_false_unless_a_layer_wants_events() {
    let _turn = turn();
    let spans_only = [false, true, false];
    assert_eq!(would_be(&Dispatch::new(registry().with(layer()))), spans_only);
    let counting = Counting::default();
    in_each_order!(
        counting.clone().with_filter(LevelFilter::INFO), layer();
        |to| assert_eq!(would_be(&to), spans_only)
    );
    in_each_order!(
        counting.clone().with_filter(LevelFilter::DEBUG), layer();
        |to| assert_eq!(would_be(&to), [true; 3])
    );
    let asked = layer().with_events(|event| *event.level() == Level::DEBUG);
    assert_eq!(would_be(&Dispatch::new(registry().with(asked))), [true; 3]);
}

#[test]
fn a_global_filter_holds_for_it_too() {
    let _turn = turn();
    let counting = Counting::default();
    in_each_order!(
        counting.clone(), EnvFilter::new("debug"), layer();
        |to| {
            assert_eq!(program(&to), Seen { evaluated: 5, spans: 2, named: 1 });
            assert_eq!(counting.take(), (6, 4));
        }
    );
}

#[test]
fn a_program_that_has_events_off_keeps_them_off() {
    let _turn = turn();
    let to = Dispatch::new(registry().with(layer().with_spans(|_| false)));
    assert_eq!(program(&to), Seen { evaluated: 2, spans: 0, named: 2 });
    drop(to);
    let to = Dispatch::new(registry().with(layer().with_events(|_| false)));
    assert_eq!(program(&to), Seen { evaluated: 3, spans: 3, named: 0 });
}

#[test]
fn events_are_seen_when_asked_for() {
    let _turn = turn();
    let counting = Counting::default();
    in_each_order!(
        counting.clone().with_filter(LevelFilter::INFO),
        layer().with_events(|event| *event.level() == Level::TRACE);
        |to| {
            assert_eq!(program(&to), Seen { evaluated: 6, spans: 3, named: 1 });
            assert_eq!(counting.take(), (2, 2));
        }
    );
}

#[test]
fn callsites_more_verbose_than_the_layer_stay_disabled() {
    let _turn = turn();
    let counting = Counting::default();
    in_each_order!(
        counting.clone().with_filter(LevelFilter::INFO), layer().with_max_level(LevelFilter::DEBUG);
        |to| {
            assert_eq!(program(&to), Seen { evaluated: 4, spans: 2, named: 1 });
            assert_eq!(counting.take(), (2, 2));
        }
    );
    let subscriber = registry().with(counting.with_filter(LevelFilter::INFO));
    let _to = Dispatch::new(subscriber.with(layer().with_max_level(tracing::Level::DEBUG)));
    // What tokio tells of its tasks is at TRACE.
    let most = if cfg!(tokio_unstable) { LevelFilter::TRACE } else { LevelFilter::DEBUG };
    assert_eq!(LevelFilter::current(), most);
}

#[test]
fn a_layer_that_it_is_chained_to_gets_all_as_ever() {
    let _turn = turn();
    let counting = Counting::default();
    let to = Dispatch::new(registry().with(counting.clone().and_then(layer())));
    assert_eq!(program(&to), Seen { evaluated: 8, spans: 3, named: 2 });
    assert_eq!(counting.take(), (10, 6));
    let chain = counting.clone().and_then(layer().with_max_level(LevelFilter::ERROR));
    let to = Dispatch::new(registry().with(chain));
    assert_eq!(program(&to), Seen { evaluated: 8, spans: 0, named: 0 });
    assert_eq!(counting.take(), (10, 6));
}

#[test]
fn a_filter_may_be_put_around_it() {
    let _turn = turn();
    let counting = Counting::default();
    in_each_order!(
        counting.clone().with_filter(LevelFilter::INFO), layer().with_filter(EnvFilter::new("info"));
        |to| {
            assert_eq!(LevelFilter::current(), LevelFilter::INFO);
            assert_eq!(program(&to), Seen { evaluated: 2, spans: 1, named: 0 });
            assert_eq!(counting.take(), (2, 2));
        }
    );
}

#[test]
fn layer_composes_with_a_subscriber_without_layer_filters() {
    let _turn = turn();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::sink)
        .with_max_level(tracing::Level::DEBUG)
        .finish();
    let to = Dispatch::new(subscriber.with(layer().with_spans(|it| it.name() != "span_info")));
    assert_eq!(LevelFilter::current(), LevelFilter::DEBUG);
    assert_eq!(program(&to), Seen { evaluated: 5, spans: 1, named: 1 });
}
