//! Cases whose instructions are counted.

use crate::measured_loop;
use andweorc::Profile;
use andweorc_alloc::Alloc;
use andweorc_core::experiment::Experimenter;
use andweorc_core::target::target;
use andweorc_core::{clock, thread};
use andweorc_profile::TargetKind;
use andweorc_tokio::remote;
use hyper::{Request, Response};
use std::alloc::{GlobalAlloc, Layout, System};
use std::convert::Infallible;
use std::future::{Future, Ready, poll_fn, ready};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use tower_layer::Layer;
use tower_service::Service;
use tracing::info_span;
use tracing_subscriber::layer::Identity;
use tracing_subscriber::prelude::*;

/// Operations of a case.
pub(crate) const OPERATIONS: u32 = 2_000;

/// Something that is done over and over.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(),
    /// Name of the same work without andweorc, if there is any.
    pub(crate) without: Option<&'static str>,
}

pub(crate) const CASES: &[Case] = &[
    Case { name: "poll_off", run: profiled_polls, without: Some("plain_polls") },
    Case { name: "poll_on", run: || on(profiled_polls), without: Some("plain_polls") },
    // What a request does on a worker: the driver wakes its task, which is polled.
    Case { name: "woken_on", run: || on(profiled_woken_polls), without: Some("plain_woken_polls") },
    Case { name: "wake_on", run: || on(profiled_wakes), without: Some("plain_wakes") },
    // Nobody else wants the span, so that there is none: all that it takes counts.
    Case { name: "span_off", run: layered_spans, without: None },
    Case { name: "span_on", run: || on(layered_spans), without: Some("plain_spans") },
    // By andweorc's own subscriber, where there is no registry: all that it takes counts.
    Case { name: "span_alone_on", run: || on(lone_spans), without: None },
    // A block of 64 bytes is allocated and freed.
    Case { name: "alloc_off", run: counted_allocations, without: Some("plain_allocations") },
    Case {
        name: "alloc_on",
        run: || on(|| in_a_target(counted_allocations)),
        without: Some("plain_allocations"),
    },
    // A request to a host, and its response, each with its headers.
    Case { name: "client_off", run: carried_calls, without: Some("plain_calls") },
    // The same while andweorc is on, between experiments: what waits for the host is profiled.
    Case { name: "client_on", run: || on(carried_calls), without: Some("plain_calls") },
    Case { name: "server_off", run: carried_requests, without: Some("plain_calls") },
    Case { name: "server_on", run: || on(carried_requests), without: Some("plain_calls") },
    Case { name: "progress_off", run: progress, without: None },
    Case { name: "progress_on", run: || on(progress), without: None },
];

/// Returns the function of this name that cases are compared with.
pub(crate) fn without(name: &str) -> Option<fn()> {
    match name {
        "plain_polls" => Some(plain_polls),
        "plain_wakes" => Some(plain_wakes),
        "plain_woken_polls" => Some(plain_woken_polls),
        "plain_spans" => Some(plain_spans),
        "plain_allocations" => Some(plain_allocations),
        "plain_calls" => Some(plain_calls),
        _ => None,
    }
}

/// While andweorc is on, between experiments.
fn on(run: fn()) {
    let _on = Experimenter::new().expect("the only one in this process");
    run();
}

/// A future that is never ready, polled again and again.
fn polls(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    // The first poll makes what later ones use.
    assert!(future.as_mut().poll(&mut cx).is_pending());
    measured_loop(&mut || assert!(black_box(&mut future).as_mut().poll(&mut cx).is_pending()));
}

fn plain_polls() {
    polls(poll_fn(|cx| {
        black_box(cx.waker());
        Poll::Pending
    }));
}

fn profiled_polls() {
    let future = poll_fn(|cx| {
        black_box(cx.waker());
        Poll::Pending
    });
    polls(future.profiled("target"));
}

struct Runtime;

impl Wake for Runtime {
    fn wake(self: Arc<Self>) {}

    fn wake_by_ref(self: &Arc<Self>) {
        black_box(self);
    }
}

/// Wakes from outside of a task that is parked; all but the first find it woken.
fn wakes(future: impl Future<Output = ()>, waker: &dyn Fn() -> Waker) {
    let mut future = pin!(future);
    let runtime = Waker::from(Arc::new(Runtime));
    let mut cx = Context::from_waker(&runtime);
    assert!(future.as_mut().poll(&mut cx).is_pending());
    let waker = waker();
    measured_loop(&mut || black_box(&waker).wake_by_ref());
}

thread_local! {
    static WAKER: std::cell::RefCell<Option<Waker>> = const { std::cell::RefCell::new(None) };
}

/// Keeps the waker that it is polled with.
fn keeps() -> impl Future<Output = ()> {
    poll_fn(|cx| {
        WAKER.set(Some(cx.waker().clone()));
        Poll::Pending
    })
}

fn kept() -> Waker {
    WAKER.take().expect("it was polled")
}

fn plain_wakes() {
    wakes(keeps(), &kept);
}

fn profiled_wakes() {
    wakes(keeps().profiled("target"), &kept);
}

/// Each wake, from outside, is followed by a poll.
fn woken_polls(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let runtime = Waker::from(Arc::new(Runtime));
    let mut cx = Context::from_waker(&runtime);
    assert!(future.as_mut().poll(&mut cx).is_pending());
    let waker = kept();
    measured_loop(&mut || {
        black_box(&waker).wake_by_ref();
        assert!(black_box(&mut future).as_mut().poll(&mut cx).is_pending());
    });
}

/// Keeps the first waker that it is polled with.
fn keeps_first() -> impl Future<Output = ()> {
    let mut kept = false;
    poll_fn(move |cx| {
        if !black_box(kept) {
            WAKER.set(Some(cx.waker().clone()));
            kept = true;
        }
        Poll::Pending
    })
}

fn plain_woken_polls() {
    woken_polls(keeps_first());
}

fn profiled_woken_polls() {
    // This is a worker whose hooks tell when it is idle.
    thread::parked(true);
    thread::unparked();
    woken_polls(keeps_first().profiled("target"));
}

fn spans() {
    let span = || info_span!("span").in_scope(|| black_box(()));
    span();
    measured_loop(&mut { span });
}

fn plain_spans() {
    let registry = tracing_subscriber::registry().with(Identity::new());
    tracing::subscriber::with_default(registry, spans);
}

fn layered_spans() {
    let layered = tracing_subscriber::registry().with(andweorc::layer());
    tracing::subscriber::with_default(layered, spans);
}

fn lone_spans() {
    tracing::subscriber::with_default(andweorc::subscriber(), spans);
}

fn progress() {
    let progress = || andweorc::progress!("unit");
    progress();
    measured_loop(&mut { progress });
}

/// Allocates and frees, as the compiler has a program do it: by a function that is not inlined.
fn allocations(allocator: &'static impl GlobalAlloc) {
    let layout = black_box(Layout::new::<[u64; 8]>());
    let allocate_and_free = || {
        // SAFETY: the layout has a size, and the block is freed by the layout that it has.
        unsafe {
            let block = black_box(allocator.alloc(layout));
            allocator.dealloc(block, layout);
        }
    };
    allocate_and_free();
    measured_loop(&mut { allocate_and_free });
}

fn plain_allocations() {
    static SYSTEM: System = System;
    allocations(&SYSTEM);
}

fn counted_allocations() {
    static COUNTED: Alloc = Alloc::system();
    allocations(&COUNTED);
}

/// Runs this in a target, on a thread that has a shard of the counters to itself.
fn in_a_target(run: fn()) {
    let target = target(TargetKind::Span, "allocates", None, None);
    thread::leave(target, &thread::enter(target, clock::now()), true, clock::now());
    let visit = thread::enter(target, clock::now());
    run();
    thread::leave(target, &visit, true, clock::now());
}

/// A service that answers at once.
struct Answers;

impl Service<Request<()>> for Answers {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(())))
    }
}

fn calls(mut service: impl Service<Request<()>, Error = Infallible>) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut call = || {
        let request = black_box(Request::new(()));
        let mut call = pin!(service.call(request));
        assert!(black_box(&mut call).as_mut().poll(&mut cx).is_ready());
    };
    // The first makes what later ones use.
    call();
    measured_loop(&mut call);
}

fn plain_calls() {
    calls(Answers);
}

fn carried_calls() {
    calls(remote::client_of("instructions").layer(Answers));
}

fn carried_requests() {
    calls(remote::server().layer(Answers));
}
