//! Where the wall time of requests goes, as a run records it while it observes the program: by a
//! program whose parts are known, seen by the layer and by the subscriber.

use andweorc::{Profile, task};
use andweorc_core::experiment::Experimenter;
use andweorc_core::target::targets;
use andweorc_core::time::Real;
use andweorc_core::wall;
use andweorc_profile::{
    ExampleOf, ExampleState, ExamplesRecord, TimelineEvent, TimelineRecord, WallRecord, WallStack,
};
use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tracing::{Dispatch, Instrument, Span, dispatcher, info_span};
use tracing_subscriber::prelude::*;

/// Held by the tests, whose recording is that of the process.
static ON: LazyLock<Mutex<Experimenter>> =
    LazyLock::new(|| Mutex::new(Experimenter::new().expect("the only one in this process")));

const WORK: Duration = Duration::from_millis(20);

fn work() {
    let begin = Instant::now();
    while begin.elapsed() < WORK {}
}

/// The rows by the names of their stacks, from the outside in.
fn named(record: &WallRecord) -> HashMap<String, &WallStack> {
    let mut names: Vec<String> = Vec::new();
    for stack in &record.stacks {
        let around = stack.parent.map(|parent| format!("{} > ", names[parent as usize]));
        names.push(around.unwrap_or_default() + &name(stack.target));
    }
    names.into_iter().zip(&record.stacks).collect()
}

fn name(id: Option<u32>) -> String {
    let known = targets().into_iter().find(|target| Some(target.id()) == id);
    known.expect("each stack has a target").name().to_owned()
}

/// A request with two branches that wait at the same time, one of them for a task that it has
/// spawned; that one goes on when the request itself is done.
async fn request(children: &'static str) {
    let (tell, told) = oneshot::channel();
    let child = async move {
        work();
        // Longer than the other branch runs meanwhile.
        tokio::time::sleep(10 * WORK).await;
        tell.send(()).unwrap();
        work();
    };
    let child = child.instrument(info_span!("child"));
    let child = task::Builder::new().name(children).spawn(child);
    let waits = async { told.await.unwrap() }.instrument(info_span!("waits"));
    let sleeps = async {
        tokio::time::sleep(WORK / 2).await;
        work();
        // Entered again by whichever thread.
        task::yield_now().await;
    };
    tokio::join!(waits, sleeps.instrument(info_span!("sleeps")));
    drop(child);
}

/// Runs the request under this subscriber. Returns how long its span was open, and the record.
fn record(to: Dispatch, children: &'static str) -> (Duration, WallRecord) {
    let of_workers = to.clone();
    // For the life of the thread. The registry closes spans by the default of the thread alone.
    let set = move || mem::forget(dispatcher::set_default(&of_workers));
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).on_thread_start(set).enable_all().build().unwrap();
    wall::begin_stretch();
    let (open, begin) = dispatcher::with_default(&to, || {
        let begin = Instant::now();
        let span = info_span!("request");
        let requests = async move {
            request(children).await;
            Span::current()
        };
        let requests = requests.instrument(span);
        let open = runtime
            .block_on(task::Builder::new().name("requests").spawn_on(requests, runtime.handle()));
        (open.unwrap(), begin)
    });
    // By then the child is done.
    drop(runtime);
    dispatcher::with_default(&to, || drop(open));
    let open = begin.elapsed();
    // What goes on after the request is closed is none of it.
    work();
    (open, wall::end().0)
}

/// The one request is every example of its kind.
fn check_examples(examples: &ExamplesRecord, open: Duration) {
    let [kind] = &examples.requests[..] else { panic!("{examples:#?}") };
    assert_eq!((name(Some(kind.target)), kind.count), ("request".to_owned(), 1));
    assert_eq!((kind.examples.len(), examples.untraced), (3, 0));
    let example = kind.example(ExampleOf::P99).unwrap();
    let off = 1.0 - example.length_ns() as f64 / open.as_nanos() as f64;
    assert!(off.abs() < 0.01, "{off} of {open:?}: {example:#?}");
    let names: Vec<_> = example.spans.iter().map(|span| name(span.target)).collect();
    let at = |of: &str| names.iter().position(|name| name == of).unwrap();
    assert_eq!((names.len(), at("request")), (4, 0));
    for span in &example.spans {
        assert!(span.intervals.is_sorted_by_key(|it| it.begin_ns), "{span:#?}");
        assert!(span.intervals.iter().all(|it| it.begin_ns < it.end_ns), "{span:#?}");
    }
    // Most of its wait is of one piece, and ended by the child.
    let waits = &example.spans[at("waits")];
    let longest = waits.intervals.iter().max_by_key(|it| it.end_ns - it.begin_ns).unwrap();
    assert_eq!((longest.state, name(longest.by)), (ExampleState::Task, "child".to_owned()));
    assert!(longest.end_ns - longest.begin_ns >= 5 * WORK.as_nanos() as u64, "{waits:#?}");
    let parts: u64 = example.parts().iter().map(|part| part.ns).sum();
    let off = 1.0 - parts as f64 / example.length_ns() as f64;
    assert!(off.abs() < 0.01, "{off}: {example:#?}");
}

/// Polls of both tasks are told, and each span after the poll that it is inside of.
fn check_timeline(timeline: &TimelineRecord, children: &str) {
    assert_eq!((timeline.dropped, timeline.left_out), (0, 0));
    let mut names = HashSet::new();
    for thread in &timeline.threads {
        assert!(thread.events.is_sorted_by_key(|event| event.begin_ns), "{thread:#?}");
        let polls =
            |event: &&TimelineEvent| ["requests", children].contains(&&*name(Some(event.target)));
        let mut poll = None;
        for event in &thread.events {
            if polls(&event) {
                poll = Some(event);
            } else if let Some(poll) = poll {
                // A future that is dropped after its last poll enters its span once more.
                let end = |event: &TimelineEvent| event.begin_ns + event.length_ns;
                let is_inside = end(event) <= end(poll);
                assert!(is_inside || event.begin_ns >= end(poll), "{event:?} and {poll:?}");
            }
            names.insert(name(Some(event.target)));
        }
    }
    for expected in ["request", "child", "waits", "sleeps", "requests", children] {
        assert!(names.contains(expected), "{expected} in {names:?}");
    }
}

fn check(to: Dispatch, children: &'static str) {
    let _turn = ON.lock().unwrap_or_else(PoisonError::into_inner);
    let (open, record) = record(to, children);
    check_examples(&wall::take_examples(), open);
    check_timeline(&wall::take_timeline(Real(0)), children);
    let rows = named(&record);
    let of_request =
        rows.iter().filter(|(name, _)| name.starts_with("request >") || *name == "request");
    let sum: u64 = of_request.map(|(_, row)| row.total_ns()).sum();
    let off = 1.0 - sum as f64 / open.as_nanos() as f64;
    assert!(off.abs() < 0.01, "{off} of {open:?}: {rows:#?}");
    let (child, sleeps) = (rows["request > child"], rows["request > sleeps"]);
    let waits = rows["request > waits"];
    for (row, least) in [(child, WORK), (sleeps, WORK / 2)] {
        assert!(row.running_ns >= least.as_nanos() as u64, "{rows:#?}");
        assert_eq!(row.count, 1);
    }
    // For some of that time the other branch ran.
    assert!(child.timer_ns + child.outside_ns > 0, "{rows:#?}");
    // The child has woken it, from inside of its span.
    assert_eq!((name(waits.tasks[0].by), waits.count), ("child".to_owned(), 1), "{rows:#?}");
    assert!(record.real_ns >= sum && (record.merged, record.unseen) == (0, 0));
    // All that the tasks did was in spans.
    for task in ["requests", children] {
        let own = rows.get(task).map_or(0, |row| row.total_ns());
        assert!(own < WORK.as_nanos() as u64 / 2, "{rows:#?}");
    }
}

#[test]
fn wall_time_of_a_request_is_that_of_its_spans_by_the_layer() {
    check(
        Dispatch::new(tracing_subscriber::registry().with(andweorc::layer())),
        "children of the layer",
    );
}

#[test]
fn wall_time_of_a_request_is_that_of_its_spans_by_the_subscriber() {
    check(Dispatch::new(andweorc::subscriber()), "children of the subscriber");
}

#[test]
fn part_of_a_request_that_began_before_the_recording_is_no_example() {
    let _turn = ON.lock().unwrap_or_else(PoisonError::into_inner);
    let layer = Dispatch::new(tracing_subscriber::registry().with(andweorc::layer()));
    for to in [layer, Dispatch::new(andweorc::subscriber())] {
        dispatcher::with_default(&to, || {
            let before = info_span!("before");
            wall::begin_stretch();
            before.in_scope(|| info_span!("part").in_scope(|| info_span!("inner").in_scope(|| {})));
            info_span!("whole").in_scope(|| {});
        });
        let (record, _) = wall::end();
        assert!(named(&record).contains_key("part > inner"), "{record:#?}");
        let examples = wall::take_examples();
        let kinds: Vec<_> = examples.requests.iter().map(|kind| name(Some(kind.target))).collect();
        assert_eq!((&kinds[..], examples.untraced), (&["whole".to_owned()][..], 0));
    }
}

#[test]
fn tasks_outside_of_spans_have_their_own_time() {
    let _turn = ON.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    wall::begin_stretch();
    let plain = async {
        work();
        tokio::time::sleep(WORK).await;
        work();
    };
    runtime.block_on(task::Builder::new().name("plain").spawn_on(plain, runtime.handle())).unwrap();
    drop(runtime);
    let (record, polls) = wall::end();
    let row = named(&record)["plain"];
    let waited = row.timer_ns + row.outside_ns;
    assert!(row.running_ns >= 2 * WORK.as_nanos() as u64 && waited > 0, "{row:?}");
    assert_eq!((row.parent, row.count), (None, 1));
    let polls = polls.kinds.into_iter().find(|kind| name(Some(kind.target)) == "plain").unwrap();
    assert_eq!((polls.polls.count(), polls.delays.count()), (2, 1));
    assert!(polls.polls.max_ns >= WORK.as_nanos() as u64, "{polls:?}");
}

/// How often a span of each name was held over an await by a task that does `work`.
fn held(work: impl Future<Output = ()>) -> HashMap<String, u64> {
    let _turn = ON.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let to = Dispatch::new(tracing_subscriber::registry().with(andweorc::layer()));
    wall::begin_stretch();
    dispatcher::with_default(&to, || runtime.block_on(work.profiled("holds")));
    let (record, _) = wall::end();
    let rows = named(&record).into_iter().filter(|(_, row)| row.held > 0);
    rows.map(|(name, row)| (name, row.held)).collect()
}

#[test]
fn span_that_is_entered_over_an_await_is_counted_as_held() {
    let enter = || info_span!("outer held").entered();
    let held = held(async {
        let outer = enter();
        {
            let _inner = info_span!("inner held").entered();
            task::yield_now().await;
        }
        // In the poll that has begun with it entered it is not held anew.
        task::yield_now().await;
        drop(outer);
        let again = enter();
        task::yield_now().await;
        drop(again);
    });
    let expected = [("outer held".to_owned(), 2), ("outer held > inner held".to_owned(), 1)];
    assert_eq!(held, HashMap::from(expected));
}

#[test]
fn spans_of_instrumented_futures_and_guards_between_awaits_are_not_held() {
    let held = held(async {
        let inside = async {
            info_span!("between").in_scope(work);
            task::yield_now().await;
            let _guard = info_span!("guard").entered();
        };
        inside.instrument(info_span!("instrumented")).await;
        // Polls inside of a poll, of a task whose span is entered around them.
        async { task::yield_now().await }.profiled("part").instrument(info_span!("over")).await;
    });
    assert_eq!(held, HashMap::new());
}
