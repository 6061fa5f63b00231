//! Cost that andweorc adds to a poll, a wake, a span and a progress point, in this process and in
//! ns.

use crate::rounds::{Difference, ROUNDS, compare, compare_timed};
use andweorc::runtime::BuilderExt;
use andweorc::{Profile, progress};
use andweorc_core::clock;
use andweorc_core::point::{Point, points};
use andweorc_core::time::Nanos;
use andweorc_profile::PointKind;
use std::cell::OnceCell;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tracing::{Dispatch, Span, dispatcher, info_span};
use tracing_subscriber::layer::{Identity, SubscriberExt};
use tracing_subscriber::registry;

/// How long the runtime is parked before anything is measured.
const PARKED: Duration = Duration::from_millis(20);

const POLLS: u32 = 20_000;
const SPANS: u32 = 10_000;
const POINTS: u32 = 100_000;

/// Costs that profiling adds to a task.
#[derive(Debug)]
pub(crate) struct Polls {
    /// To a poll, of a task that another one woke.
    pub(crate) poll: Difference,
    /// To the wake.
    pub(crate) wake: Difference,
    /// To both, when a task wakes itself.
    pub(crate) own: Difference,
    /// To both, when nobody that andweorc knows wakes it, as the driver does.
    pub(crate) outside: Difference,
}

impl Polls {
    pub(crate) fn measure() -> Polls {
        let runtime = &runtime();
        let of = |part: fn([f64; 2]) -> f64| {
            let [plain, profiled] = [false, true].map(|it| move || part(wake_many(runtime, it)));
            compare_timed(ROUNDS, plain, profiled)
        };
        Polls {
            poll: of(|[poll, _]| poll),
            wake: of(|[_, wake]| wake),
            own: own(runtime),
            outside: outside(),
        }
    }
}

fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_profiling()
        .build()
        .expect("a runtime without drivers needs nothing from the system");
    // It parks meanwhile: from then on its hooks tell when it is idle, as those of any worker that
    // was ever idle.
    let sleep = async { tokio::task::spawn_blocking(|| thread::sleep(PARKED)).await };
    runtime.block_on(sleep).expect("a sleep does not panic");
    runtime
}

/// Wakes itself as often as it is told.
pub(crate) struct Waits {
    pub(crate) wakes: u32,
}

impl Future for Waits {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.wakes -= 1;
        if self.wakes == 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// How many tasks one wakes, before any of them is polled.
const MANY: u32 = 64;

/// How often it does.
const TIMES: u32 = 400;

/// A task wakes many others at once, then they are polled. Returns ns for each poll, and for each
/// wake.
fn wake_many(runtime: &Runtime, profiled: bool) -> [f64; 2] {
    fn spawn(
        profiled: bool,
        future: impl Future<Output = Nanos> + Send + 'static,
    ) -> JoinHandle<Nanos> {
        if profiled { andweorc::spawn(future) } else { tokio::spawn(future) }
    }
    runtime.block_on(async {
        let wakers = Arc::new(Mutex::new(Vec::new()));
        let waits = |_| {
            let (wakers, mut polled) = (Arc::clone(&wakers), false);
            let wait = poll_fn(move |cx| {
                if !black_box(polled) {
                    polled = true;
                    wakers.lock().expect("nobody panics").push(cx.waker().clone());
                }
                Poll::Pending
            });
            spawn(profiled, wait)
        };
        let tasks: Vec<_> = (0..MANY).map(waits).collect();
        tokio::task::yield_now().await;
        let (wakers, mut left, mut waking) = (Arc::clone(&wakers), TIMES, Nanos::ZERO);
        let begin = clock::thread_cpu();
        let wakes = poll_fn(move |cx| {
            let begin = clock::thread_cpu();
            wakers.lock().expect("nobody panics").iter().for_each(Waker::wake_by_ref);
            waking += clock::thread_cpu() - begin;
            left -= 1;
            if left == 0 {
                return Poll::Ready(waking);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        let waking = spawn(profiled, wakes).await.expect("nobody panics");
        let all = clock::thread_cpu() - begin;
        tasks.iter().for_each(JoinHandle::abort);
        [all - waking, waking].map(|time| time.0 as f64 / f64::from(TIMES * MANY))
    })
}

fn own(runtime: &Runtime) -> Difference {
    let wakes = POLLS;
    compare(
        POLLS,
        || runtime.block_on(async { tokio::spawn(Waits { wakes }).await.expect("no panic") }),
        || runtime.block_on(async { andweorc::spawn(Waits { wakes }).await.expect("no panic") }),
    )
}

/// Measures polls of a task that is woken as a driver does it: by a thread that polls nothing at
/// the time.
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

/// Measures what the layer adds to the life of a span, entered once, beyond tracing's registry.
pub(crate) fn span_life() -> Difference {
    let before = timed_spans();
    let life = compare_spans(|| {
        for _ in 0..SPANS {
            info_span!("life").in_scope(|| black_box(()));
        }
    });
    assert_eq!(timed_spans() > before, andweorc_core::enabled(), "the layer times spans while on");
    life
}

/// Measures what the layer adds when an open span is entered and left once more.
pub(crate) fn span_visit() -> Difference {
    let visit = |span: &Span| {
        for _ in 0..SPANS {
            span.in_scope(|| black_box(()));
        }
    };
    compare_spans(|| visit(&info_span!("visit")))
}

fn timed_spans() -> u64 {
    let spans = points().into_iter().filter(|point| point.kind() == PointKind::Latency);
    spans.map(Point::count).sum()
}

/// Measures what the life of a span takes with andweorc's own subscriber, beyond what it takes
/// without any: there is no registry.
pub(crate) fn span_life_alone() -> Difference {
    let life = || {
        for _ in 0..SPANS {
            info_span!("life alone").in_scope(|| black_box(()));
        }
    };
    compare(
        SPANS,
        || dispatcher::with_default(&Dispatch::none(), life),
        || dispatcher::with_default(&Dispatch::new(andweorc::subscriber()), life),
    )
}

fn compare_spans(f: impl Fn()) -> Difference {
    let under = |dispatch: Dispatch| dispatcher::with_default(&dispatch, &f);
    // Made anew for each round: with both alive, tracing would ask both about each span.
    compare(
        SPANS,
        || under(Dispatch::new(registry().with(Identity::new()))),
        || under(Dispatch::new(registry().with(andweorc::layer()))),
    )
}

/// Measures what a progress point costs.
pub(crate) fn progress_point() -> Difference {
    compare(
        POINTS,
        || (0..POINTS).for_each(black_box::<fn(u32)>(drop)),
        || {
            (0..POINTS).for_each(black_box::<fn(u32)>(|_| progress!("cost")));
        },
    )
}
