//! Spans and events in a process with andweorc on, whoever hands them over: tests of the
//! [layer](Tested), or of the subscriber.

use crate::{Tested, dispatch, library, tested};
use andweorc_core::clock;
use andweorc_core::experiment::Experimenter;
use andweorc_core::point::{Importance, Point, points};
use andweorc_core::target::{Target, targets};
use andweorc_core::thread::ledger;
use andweorc_core::time::Speedup;
use andweorc_profile::{PointKind, TargetKind};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tracing::subscriber::with_default;
use tracing::{Dispatch, Instrument, Level, Span, info, info_span, trace_span, warn};

/// Switches andweorc on for this process, and holds a baseline, so that latencies are recorded.
pub(crate) static ON: LazyLock<Experimenter> = LazyLock::new(|| {
    let on = Experimenter::new().expect("the only one in this process");
    ledger().begin(Speedup::ZERO, clock::now());
    on
});

pub(crate) const WORK: Duration = Duration::from_millis(20);

/// Returns the subscriber that is tested and nothing else, andweorc being on.
fn subscriber(tested: Tested) -> Dispatch {
    LazyLock::force(&ON);
    dispatch(tested)
}

fn under<R>(tested: Tested, f: impl FnOnce() -> R) -> R {
    tracing::dispatcher::with_default(&subscriber(tested), f)
}

fn spans() -> impl Iterator<Item = &'static Target> {
    targets().into_iter().filter(|target| target.kind() == TargetKind::Span)
}

fn find_target(name: &str) -> Option<&'static Target> {
    spans().find(|target| target.name() == name)
}

pub(crate) fn the_target(name: &str) -> &'static Target {
    find_target(name).unwrap_or_else(|| panic!("no target {name}"))
}

fn find_point(name: &str) -> Option<&'static Point> {
    points().into_iter().find(|point| point.name() == name)
}

pub(crate) fn the_point(name: &str) -> &'static Point {
    find_point(name).unwrap_or_else(|| panic!("no point {name}"))
}

pub(crate) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}

/// The longest latency that `point` has recorded, ns.
fn longest(point: &Point) -> u64 {
    point.take_latencies().last().expect("a latency").0
}

#[test]
fn a_span_is_a_target_and_a_latency_point() {
    under(tested(), || {
        for _ in 0..3 {
            let span = info_span!("plain");
            // Not entered yet: part of the interval, no time of the target.
            thread::sleep(WORK);
            span.in_scope(|| thread::sleep(WORK));
        }
    });
    let (target, point) = (the_target("plain"), the_point("plain"));
    assert_eq!(target.to_record().kind, TargetKind::Span);
    assert!(target.to_record().file.is_some_and(|file| file.ends_with("spans/mod.rs")));
    assert_eq!(target.count(), 3);
    assert!(target.busy_ns() >= 3 * ns(WORK));
    assert_eq!(target.own_ns(), target.busy_ns());
    assert_eq!(point.kind(), PointKind::Latency);
    assert_eq!(point.count(), 3);
    let latencies = point.take_latencies();
    assert_eq!(latencies.iter().map(|(_, count)| count).sum::<u64>(), 3);
    assert!(latencies[0].0 >= 2 * ns(WORK), "{latencies:?}");
}

#[test]
fn spans_without_a_parent_are_roots() {
    under(tested(), || {
        let root = info_span!("root");
        let _entered = root.enter();
        drop(info_span!("inner_by_context"));
        drop(info_span!(parent: &Span::none(), "root_by_wish"));
        let elsewhere = info_span!("root_elsewhere", by = 1);
        drop(info_span!(parent: &elsewhere, "inner_by_wish"));
    });
    let importance = |name| the_point(name).importance();
    assert_eq!(importance("root"), Importance::Root);
    assert_eq!(importance("root_by_wish"), Importance::Root);
    assert_eq!(importance("inner_by_context"), Importance::Inner);
    assert_eq!(importance("inner_by_wish"), Importance::Inner);
}

#[test]
fn spans_inside_filtered_out_ones_are_roots() {
    under(tested().with_spans(|span| !span.name().starts_with("hidden")), || {
        let hidden = info_span!("hidden_outermost").entered();
        let root = info_span!("root_in_hidden").entered();
        let inner = info_span!("hidden_inside").in_scope(|| info_span!("inner_in_hidden"));
        drop((inner, root, hidden));
    });
    assert_eq!(the_point("root_in_hidden").importance(), Importance::Root);
    assert_eq!(the_point("inner_in_hidden").importance(), Importance::Inner);
}

#[test]
fn the_small_steps_of_a_library_are_left_out_unless_they_are_asked_for() {
    under(tested(), || drop((library::step(), trace_span!("own_step"))));
    assert!(find_point("library_step").is_none() && find_point("own_step").is_some());
    under(tested().with_max_level(Level::TRACE), || drop(library::step()));
    assert_eq!(the_point("library_step").count(), 1);
}

#[test]
fn a_librarys_span_around_the_users_own_is_no_parent() {
    under(tested(), || {
        let around = library::around().entered();
        let own = info_span!("own_in_library").entered();
        let inside = library::inside().entered();
        drop(info_span!("own_in_library_in_own"));
        drop((inside, own, around));
    });
    let seen = |name| {
        let point = the_point(name);
        (point.is_own(), point.depth())
    };
    assert_eq!(seen("own_in_library"), (true, 0));
    assert_eq!(seen("own_in_library_in_own"), (true, 1));
    assert_eq!(seen("library_around"), (false, 0));
    assert_eq!(seen("library_inside"), (false, 2));
}

#[test]
fn one_name_in_two_places_is_two_points_and_targets() {
    under(tested(), || {
        drop(info_span!("twins").entered());
        drop(info_span!("twins").entered());
    });
    assert_eq!(spans().filter(|target| target.name() == "twins").count(), 2);
    assert_eq!(points().iter().filter(|point| point.name() == "twins").count(), 2);
}

#[test]
fn named_events_are_progress_points_and_others_are_not() {
    let before = points().len();
    under(tested(), || {
        for _ in 0..2 {
            info!(name: "order_done", id = 1, "done");
            info!("an event without a name, in a test of named ones");
            info!(name: "log event", target: "log", "as tracing-log calls records of the log crate");
        }
    });
    let point = the_point("order_done");
    assert_eq!((point.kind(), point.count()), (PointKind::Progress, 2));
    assert_eq!(point.importance(), Importance::Explicit);
    assert!(points().len() > before);
    assert!(points().iter().all(|point| !point.name().starts_with("event ")));
    assert!(find_point("log event").is_none());
    assert!(find_target("order_done").is_none());
}

#[test]
fn with_events_chooses_events_in_the_place_of_the_named_ones() {
    let line = line!() + 3;
    under(tested().with_events(|event| *event.level() == tracing::Level::WARN), || {
        info!(name: "not_wanted", "named, and still no point");
        warn!("wanted");
    });
    assert!(find_point("not_wanted").is_none());
    let place = points()
        .into_iter()
        .find(|point| point.name().ends_with(&format!("spans/mod.rs:{line}")))
        .expect("a point named by its place");
    assert_eq!((place.kind(), place.count()), (PointKind::Progress, 1));
}

#[test]
fn with_spans_leaves_spans_out() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let asking = Arc::clone(&asked);
    let filtered = tested().with_spans(move |span| {
        asking.lock().unwrap().push(span.name());
        span.name() != "left_out"
    });
    under(filtered, || {
        for _ in 0..3 {
            let _left_out = info_span!("left_out").entered();
            drop(info_span!("let_through").entered());
        }
    });
    assert!(find_target("left_out").is_none() && find_point("left_out").is_none());
    assert_eq!(the_target("let_through").count(), 3);
    assert_eq!(the_point("let_through").count(), 3);
    // It is asked for those of other tests too.
    let mut asked = asked.lock().unwrap().clone();
    asked.retain(|name| ["left_out", "let_through"].contains(name));
    assert_eq!(asked, ["left_out", "let_through"], "asked once for each call site");
}

#[test]
fn time_in_a_recursion_is_counted_once() {
    fn descend(depth: u32) {
        let _span = info_span!("recursion").entered();
        match depth {
            0 => thread::sleep(WORK),
            _ => descend(depth - 1),
        }
    }
    let began = Instant::now();
    under(tested(), || descend(9));
    let took = ns(began.elapsed());
    let target = the_target("recursion");
    assert_eq!(target.count(), 10);
    assert!(target.busy_ns() >= ns(WORK) && target.busy_ns() <= took, "{target:?} in {took} ns");
    assert!(target.own_ns() >= ns(WORK) && target.own_ns() <= took, "{target:?} in {took} ns");
    assert_eq!(the_point("recursion").count(), 10);
}

#[test]
fn a_span_entered_twice_at_once_is_counted_once() {
    let began = Instant::now();
    under(tested(), || {
        let span = info_span!("reentered");
        let _outer = span.enter();
        let _inner = span.enter();
        thread::sleep(WORK);
    });
    let took = ns(began.elapsed());
    let target = the_target("reentered");
    assert!(target.busy_ns() >= ns(WORK) && target.busy_ns() <= took, "{target:?} in {took} ns");
    assert_eq!(the_point("reentered").count(), 1);
}

#[test]
fn spans_may_be_left_out_of_order() {
    let began = Instant::now();
    under(tested(), || {
        let (first, second) = (info_span!("first_in"), info_span!("second_in"));
        let in_first = first.enter();
        let in_second = second.enter();
        thread::sleep(WORK);
        drop(in_first);
        thread::sleep(WORK);
        drop(in_second);
        // Whatever was left in whatever order, later spans are timed as ever.
        info_span!("after_all").in_scope(|| thread::sleep(WORK));
    });
    let took = ns(began.elapsed());
    let busy = |name| the_target(name).busy_ns();
    let own = |name| the_target(name).own_ns();
    assert!(busy("first_in") >= ns(WORK));
    assert!(busy("second_in") >= 2 * ns(WORK));
    assert!(busy("after_all") >= ns(WORK));
    assert!(busy("first_in") + 2 * ns(WORK) <= took, "left before the others worked");
    assert!(own("first_in") + ns(WORK) <= busy("first_in"), "the other one worked inside");
    assert_eq!(own("second_in"), busy("second_in"), "nothing was entered inside");
    assert_eq!(own("after_all"), busy("after_all"));
    for name in ["first_in", "second_in", "after_all"] {
        assert_eq!((the_target(name).count(), the_point(name).count()), (1, 1), "{name}");
        assert!(the_target(name).own_ns() <= busy(name), "{name}");
    }
}

#[test]
fn spans_of_one_call_site_left_out_of_order_are_timed_as_one_stay() {
    fn span() -> Span {
        info_span!("overlap")
    }
    under(tested(), || {
        let around = info_span!("around_overlap");
        let in_around = around.enter();
        let (first, second) = (span(), span());
        let in_first = first.enter();
        thread::sleep(WORK);
        let in_second = second.enter();
        thread::sleep(WORK);
        drop(in_first);
        thread::sleep(WORK);
        drop(in_second);
        drop(in_around);
    });
    let (target, around) = (the_target("overlap"), the_target("around_overlap"));
    assert_eq!(target.count(), 2);
    assert!(target.busy_ns() >= 3 * ns(WORK), "from the first in to the last out: {target:?}");
    assert!(target.busy_ns() <= around.busy_ns(), "and no longer: {target:?} in {around:?}");
    assert_eq!(target.own_ns(), target.busy_ns(), "nothing else ran inside");
    assert_eq!(target.own_ns() + around.own_ns(), around.busy_ns(), "no time lost, none twice");
}

#[test]
fn a_span_may_be_closed_on_another_thread() {
    let span = under(tested(), || info_span!("carried"));
    span.in_scope(|| thread::sleep(WORK));
    assert_eq!(the_point("carried").count(), 0, "still open");
    thread::spawn(move || {
        span.in_scope(|| thread::sleep(WORK));
        drop(span);
    })
    .join()
    .unwrap();
    assert_eq!(the_point("carried").count(), 1);
    assert!(longest(the_point("carried")) >= 2 * ns(WORK));
    assert_eq!(the_target("carried").count(), 2);
    assert!(the_target("carried").busy_ns() >= 2 * ns(WORK));
}

#[test]
fn children_hold_their_parents_open() {
    under(tested(), || {
        let parent = info_span!("parent");
        let child = info_span!(parent: &parent, "child");
        drop(parent);
        assert_eq!(the_point("parent").count(), 0);
        drop(child);
    });
    assert_eq!((the_point("parent").count(), the_point("child").count()), (1, 1));
}

#[tracing::instrument]
async fn query() {
    tokio::time::sleep(WORK).await;
    thread::sleep(WORK);
    tokio::task::yield_now().await;
}

#[test]
fn an_instrumented_future_is_timed_by_its_polls() {
    let dispatch = subscriber(tested());
    let workers = dispatch.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .on_thread_start(move || {
            // Until the worker ends.
            std::mem::forget(tracing::dispatcher::set_default(&workers));
        })
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..4).map(|_| runtime.spawn(query().instrument(Span::none()))).collect();
    let began = Instant::now();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    let took = ns(began.elapsed());
    drop(runtime);
    let (target, point) = (the_target("query"), the_point("query"));
    // Three polls each: until the sleep, until the yield, to the end; and tracing enters once more
    // to drop the future.
    assert_eq!(target.count(), 4 * 4);
    assert!(target.busy_ns() >= 4 * ns(WORK), "{target:?}");
    assert!(target.busy_ns() <= 2 * took, "two workers, and no time between polls: {target:?}");
    assert_eq!(point.count(), 4);
    let latencies = point.take_latencies();
    assert!(latencies[0].0 >= 2 * ns(WORK), "the interval holds the waits: {latencies:?}");
}

/// Enters a span when the thread that it is local to ends.
struct AtExit(Span);

impl Drop for AtExit {
    fn drop(&mut self) {
        self.0.in_scope(|| thread::sleep(WORK));
    }
}

#[test]
fn a_thread_that_ends_may_still_enter_spans() {
    thread_local! {
        static AT_EXIT: std::cell::RefCell<Option<AtExit>> = const { std::cell::RefCell::new(None) };
    }
    let dispatch = subscriber(tested());
    thread::spawn(move || {
        // The registry's own state of the thread is made first and dropped last: without it no span
        // is entered.
        with_default(tracing_subscriber::registry(), || drop(info_span!("unseen").entered()));
        tracing::dispatcher::with_default(&dispatch, || {
            let at_exit = info_span!("at_thread_exit");
            // Made before whatever the layer keeps for the thread, and so dropped after it.
            AT_EXIT.set(Some(AtExit(at_exit)));
            info_span!("in_thread").in_scope(|| {});
        });
    })
    .join()
    .unwrap();
    assert_eq!((the_point("in_thread").count(), the_point("at_thread_exit").count()), (1, 1));
}
