//! How the cost of andweorc grows: with workers, live tasks, kinds of tasks and span call sites,
//! and at the runtime's own rate of spawns.

use crate::hot::Waits;
use crate::part::Part;
use crate::rounds::{Difference, compare_timed};
use andweorc::runtime::BuilderExt;
use andweorc_core::clock;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use tests_support::Site;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tracing::{Dispatch, dispatcher};
use tracing_subscriber::layer::{Identity, SubscriberExt};
use tracing_subscriber::registry;

/// How often both take turns: fewer than for a single poll, of which more is asked.
const ROUNDS: usize = 21;

/// Polls, wakes or spans of a round.
const OPS: usize = 100_000;

/// Tasks of each worker that wake themselves.
const OWN_TASKS: usize = 16;

/// So many tasks are woken before any of them is polled. More than this current_thread does not
/// poll at a time.
const BATCH: usize = 32;

/// From one that is woken or entered to the next: a prime, so that it comes to all, and what it
/// comes to has left the cache where they are many.
const STRIDE: usize = 7919;

const WORKERS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const LIVE: [usize; 4] = [BATCH, 1_000, 30_000, 1_000_000];
const KINDS: [usize; 4] = [1, 10, 100, 1_000];
const SITES: [usize; 4] = [1, 100, 1_000, 10_000];

/// Measures while andweorc is enabled, and no experiment is held.
pub(crate) fn measure() -> Part {
    println!("Enabled, between experiments: CPU time, median of {ROUNDS} rounds that take turns");
    let mut rows = Vec::new();
    let mut told = |of: &str, n: usize, difference: Difference| {
        println!("  {n:>9} {of:<52} {difference}");
        rows.push(difference.row(format!("{n} {of}")));
        difference
    };
    let own =
        WORKERS.map(|n| told("workers: a poll, and its wake of its own task", n, own_wakes(n)));
    let live = LIVE.map(|n| told("live tasks: a poll and its wake", n, woken(n, 1)));
    let kinds =
        KINDS.map(|n| told("kinds, 30,000 live tasks: a poll and its wake", n, woken(30_000, n)));
    let sites = SITES.map(|n| told("span call sites: the life of a span", n, spans(n)));
    let spawned = [1, 2].map(|n| told("workers: a task, spawned and awaited", n, spawns(n)));
    let ends = |all: &[Difference]| {
        [all[0].median, all[all.len() - 1].median].map(|ns| format!("{ns:.1}")).join("..")
    };
    let line = format!(
        "own_wake_ns_1_to_64_workers={} poll_wake_ns_32_to_1000000_tasks={} poll_wake_ns_1_to_1000_kinds={} span_ns_1_to_10000_sites={} spawn_rate={:.3}",
        ends(&own),
        ends(&live),
        ends(&kinds),
        ends(&sites),
        spawned[1].ratio(),
    );
    Part { name: "scale", line, rows }
}

fn spawn(profiled: bool, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    if profiled { andweorc::spawn(future) } else { tokio::spawn(future) }
}

fn with_workers(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).enable_profiling().build().expect("the system has threads")
}

/// CPU time of the process while `f` runs, ns for each of `ops`.
fn process_time(ops: usize, f: impl FnOnce()) -> f64 {
    let begin = clock::process_cpu();
    f();
    (clock::process_cpu() - begin).0 as f64 / ops as f64
}

/// Tasks wake themselves, on so many workers, which have the processors that there are.
fn own_wakes(workers: usize) -> Difference {
    let runtime = with_workers(workers);
    let tasks = OWN_TASKS * workers;
    let wakes = OPS / tasks;
    let round = |profiled| {
        process_time(tasks * wakes, || {
            runtime.block_on(async {
                let waits = || Waits { wakes: wakes as u32 };
                let tasks: Vec<_> = (0..tasks).map(|_| spawn(profiled, waits())).collect();
                for task in tasks {
                    task.await.expect("nobody panics");
                }
            });
        })
    };
    compare_timed(ROUNDS, || round(false), || round(true))
}

/// Tasks that live, each of which left its waker.
struct Crowd {
    wakers: Arc<Vec<Waker>>,
    profiled: bool,
    /// Index of the task that is woken next.
    next: usize,
}

impl Crowd {
    /// So many, each spawned by `spawn`, which is told how many there are.
    fn new(
        runtime: &Runtime,
        tasks: usize,
        profiled: bool,
        spawn: impl Fn(usize, Parks) -> JoinHandle<()>,
    ) -> Crowd {
        let wakers = Arc::new(Mutex::new(Vec::with_capacity(tasks)));
        runtime.block_on(async {
            for n in 0..tasks {
                spawn(n, Parks(Some(Arc::clone(&wakers))));
            }
            while wakers.lock().unwrap_or_else(PoisonError::into_inner).len() < tasks {
                tokio::task::yield_now().await;
            }
        });
        let mut wakers = wakers.lock().unwrap_or_else(PoisonError::into_inner);
        Crowd { wakers: Arc::new(std::mem::take(&mut wakers)), profiled, next: 0 }
    }

    /// A task wakes them in batches, which are polled. Returns ns for each.
    fn round(&mut self, runtime: &Runtime) -> f64 {
        let (wakers, mut next, mut left) = (Arc::clone(&self.wakers), self.next, OPS / BATCH);
        let wakes = poll_fn(move |cx| {
            for _ in 0..BATCH {
                wakers[next].wake_by_ref();
                next = (next + STRIDE) % wakers.len();
            }
            left -= 1;
            if left == 0 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        self.next = (self.next + OPS / BATCH * BATCH * STRIDE) % self.wakers.len();
        let begin = clock::thread_cpu();
        runtime.block_on(async { spawn(self.profiled, wakes).await.expect("nobody panics") });
        (clock::thread_cpu() - begin).0 as f64 / (OPS / BATCH * BATCH) as f64
    }
}

/// Leaves its waker when it is first polled, and waits for ever.
struct Parks(Option<Arc<Mutex<Vec<Waker>>>>);

impl Future for Parks {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(wakers) = self.0.take() {
            wakers.lock().unwrap_or_else(PoisonError::into_inner).push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Of so many live tasks of so many kinds some are woken, and polled.
fn woken(tasks: usize, kinds: usize) -> Difference {
    let names: Vec<&'static str> =
        (0..kinds).map(|n| &*Box::leak(format!("kind {n}").into_boxed_str())).collect();
    let named =
        |n: usize, parks| andweorc::task::Builder::new().name(names[n % kinds]).spawn(parks);
    // One each, so that the tasks of one are not in the other's way.
    let [plain_runtime, runtime] = [(); 2].map(|()| {
        Builder::new_current_thread().enable_profiling().build().expect("it has a driver at most")
    });
    let mut plain = Crowd::new(&plain_runtime, tasks, false, |_, parks| tokio::spawn(parks));
    let mut profiled = Crowd::new(&runtime, tasks, true, named);
    compare_timed(ROUNDS, || plain.round(&plain_runtime), || profiled.round(&runtime))
}

/// Spans of so many call sites begin and end, each entered once.
fn spans(sites: usize) -> Difference {
    let sites: Vec<_> = (0..sites as u32).map(|line| Site::new("cost.rs", line)).collect();
    let round = |dispatch: &Dispatch| {
        let begin = clock::thread_cpu();
        dispatcher::with_default(dispatch, || {
            for n in 0..OPS {
                sites[n * STRIDE % sites.len()].span().in_scope(|| black_box(()));
            }
        });
        (clock::thread_cpu() - begin).0 as f64 / OPS as f64
    };
    let plain = Dispatch::new(registry().with(Identity::new()));
    let layered = Dispatch::new(registry().with(andweorc::layer()));
    compare_timed(ROUNDS, || round(&plain), || round(&layered))
}

/// Tasks are spawned that do nothing, and awaited, as fast as the runtime takes them.
fn spawns(workers: usize) -> Difference {
    let runtime = with_workers(workers);
    let spawns = |profiled| async move {
        for _ in 0..OPS / BATCH {
            let tasks = [(); BATCH].map(|()| spawn(profiled, async { black_box(()) }));
            for task in tasks {
                task.await.expect("nobody panics");
            }
        }
    };
    let round = |profiled| {
        process_time(OPS / BATCH * BATCH, || {
            runtime.block_on(async {
                spawn(profiled, spawns(profiled)).await.expect("nobody panics");
            });
        })
    };
    compare_timed(ROUNDS, || round(false), || round(true))
}
