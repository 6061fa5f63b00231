//! What andweorc adds to a poll, a wake, a span and a progress point, in this process and in ns.

use crate::rounds::{Difference, compare};
use andweorc::runtime::BuilderExt;
use andweorc::{Profile, progress};
use std::cell::OnceCell;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tracing::{Dispatch, Span, dispatcher, info_span};
use tracing_subscriber::layer::SubscriberExt;

/// How long the runtime is parked before anything is measured.
const PARKED: Duration = Duration::from_millis(20);

const POLLS: u32 = 20_000;
const SPANS: u32 = 10_000;
const POINTS: u32 = 100_000;

/// What a profiled task adds.
#[derive(Debug)]
pub(crate) struct Polls {
    /// To a poll that nobody woke it for.
    pub(crate) poll: Difference,
    /// To a wake by a task and the poll that follows, through tokio.
    pub(crate) woken: Difference,
    /// To a wake by nobody that andweorc knows, and the poll that follows.
    pub(crate) outside: Difference,
}

impl Polls {
    pub(crate) fn measure() -> Polls {
        let runtime = runtime();
        Polls { poll: poll(&runtime), woken: woken(&runtime), outside: outside() }
    }

    /// What a wake adds, with all that it makes the next poll do.
    pub(crate) fn wake(&self) -> f64 {
        self.woken.median - self.poll.median
    }
}

fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .andweorc()
        .build()
        .expect("a runtime without drivers needs nothing from the system");
    // It parks meanwhile: from then on its hooks tell when it is idle, as those of any worker that was ever idle.
    let slept = runtime.block_on(tokio::task::spawn_blocking(|| thread::sleep(PARKED)));
    slept.expect("a sleep does not panic");
    runtime
}

/// Waits for ever, and wakes itself as often as it is told.
struct Waits {
    wakes: u32,
}

impl Future for Waits {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if black_box(&mut self).wakes == 0 {
            return Poll::Pending;
        }
        self.wakes -= 1;
        if self.wakes == 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn poll(runtime: &Runtime) -> Difference {
    fn polls(runtime: &Runtime, future: impl Future) {
        let mut future = pin!(future);
        runtime.block_on(poll_fn(|cx| {
            for _ in 0..POLLS {
                assert!(future.as_mut().poll(cx).is_pending());
            }
            Poll::Ready(())
        }));
    }
    compare(
        POLLS,
        || polls(runtime, Waits { wakes: 0 }),
        || polls(runtime, Waits { wakes: 0 }.profiled("poll")),
    )
}

fn woken(runtime: &Runtime) -> Difference {
    let wakes = POLLS;
    compare(
        POLLS,
        || runtime.block_on(async { tokio::spawn(Waits { wakes }).await.expect("no panic") }),
        || runtime.block_on(async { andweorc::spawn(Waits { wakes }).await.expect("no panic") }),
    )
}

/// As a driver does it: a thread that polls nothing at the time wakes the task.
fn outside() -> Difference {
    fn polls(future: impl FnOnce(Rc<OnceCell<Waker>>) -> Pin<Box<dyn Future<Output = ()>>>) {
        let waker = Rc::new(OnceCell::new());
        let mut future = future(Rc::clone(&waker));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..POLLS {
            if let Some(waker) = waker.get() {
                waker.wake_by_ref();
            }
            assert!(future.as_mut().poll(&mut cx).is_pending());
        }
    }
    let keep = |waker: Rc<OnceCell<Waker>>| {
        poll_fn(move |cx| {
            waker.get_or_init(|| cx.waker().clone());
            Poll::Pending
        })
    };
    compare(
        POLLS,
        || polls(|waker| Box::pin(keep(waker))),
        || polls(|waker| Box::pin(keep(waker).profiled("outside"))),
    )
}

/// What the layer adds to the life of a span, entered once, beyond tracing's registry.
pub(crate) fn span_life() -> Difference {
    compare_spans(|| {
        for _ in 0..SPANS {
            info_span!("life").in_scope(|| black_box(()));
        }
    })
}

/// What the layer adds when an open span is entered and left once more.
pub(crate) fn span_visit() -> Difference {
    let visit = |span: &Span| {
        for _ in 0..SPANS {
            span.in_scope(|| black_box(()));
        }
    };
    compare_spans(|| visit(&info_span!("visit")))
}

fn compare_spans(f: impl Fn()) -> Difference {
    let under = |dispatch: Dispatch| dispatcher::with_default(&dispatch, &f);
    // Made anew for each round: with both alive, tracing would ask both about each span.
    compare(
        SPANS,
        || under(Dispatch::new(tracing_subscriber::registry())),
        || under(Dispatch::new(tracing_subscriber::registry().with(andweorc::layer()))),
    )
}

/// What a progress point costs.
pub(crate) fn progress_point() -> Difference {
    compare(
        POINTS,
        || (0..POINTS).for_each(black_box::<fn(u32)>(drop)),
        || {
            (0..POINTS).for_each(black_box::<fn(u32)>(|_| progress!("cost")));
        },
    )
}
