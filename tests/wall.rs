//! Where the wall time of requests goes, as a run records it while it observes the program: by a
//! program whose parts are known, seen by the layer and by the subscriber.

use andweorc::task;
use andweorc_core::experiment::Experimenter;
use andweorc_core::target::targets;
use andweorc_core::wall;
use andweorc_profile::{WallRecord, WallStack};
use std::collections::HashMap;
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

fn check(to: Dispatch, children: &'static str) {
    let _turn = ON.lock().unwrap_or_else(PoisonError::into_inner);
    let (open, record) = record(to, children);
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
