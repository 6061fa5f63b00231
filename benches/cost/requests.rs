//! Work that views look at while they are measured: requests of a service on one worker, the same
//! work on a plain thread, and polls, wakes and spans that do nothing else.

use crate::work::{Pace, hash};
use andweorc::runtime::BuilderExt;
use andweorc_alloc::Alloc;
use andweorc_core::target::target;
use andweorc_core::{clock, thread as core_thread};
use andweorc_profile::TargetKind;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tracing::{Instrument, info_span};

/// How long the work settles after a view was switched, and how long it is measured.
const SETTLE: Duration = Duration::from_millis(50);
const STRETCH: Duration = Duration::from_millis(200);

/// Requests under way at a time.
const CLIENTS: usize = 4;

/// Work of each of the three parts of a request, in us.
const PART: u32 = 5;

/// Blocks that a request allocates in each of two parts: three of each of these sizes.
const SIZES: [usize; 4] = [16, 64, 200, 1024];
const BLOCKS: usize = 3 * SIZES.len();

/// Whether requests allocate by andweorc's allocator, which is not the one of this program.
static COUNTED: AtomicBool = AtomicBool::new(false);

/// Requests allocate by andweorc's allocator while this lives.
pub(crate) struct Counted(());

impl Counted {
    pub(crate) fn begin() -> Counted {
        COUNTED.store(true, Ordering::SeqCst);
        Counted(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNTED.store(false, Ordering::SeqCst);
    }
}

/// Work that goes on until this is dropped.
pub(crate) struct Load {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// Items that a load has done, and whether it is to stop.
#[derive(Default)]
struct State {
    done: AtomicU64,
    stop: AtomicBool,
}

impl State {
    /// Counts one more. Says whether to go on.
    fn count(&self) -> bool {
        self.done.fetch_add(1, Ordering::SeqCst);
        !self.stop.load(Ordering::SeqCst)
    }
}

impl Load {
    fn start(run: impl FnOnce(Arc<State>) + Send + 'static) -> Load {
        let state = Arc::<State>::default();
        let its = Arc::clone(&state);
        Load { state, thread: Some(thread::spawn(move || run(its))) }
    }

    /// Requests of a service: three spans in one of the whole, two of them around work that
    /// allocates, and one around the answer of another task, which works in a span of its own.
    pub(crate) fn service(pace: Pace) -> Load {
        Load::start(move |state| on_one_worker(serve(pace, state)))
    }

    /// The work of such requests on a plain thread, in one span each.
    pub(crate) fn plain(pace: Pace) -> Load {
        Load::start(move |state| {
            core_thread::register();
            let work = rounds(pace);
            let whole = target(TargetKind::Span, "cost: a plain request", None, None);
            loop {
                let entered = core_thread::enter(whole, clock::now());
                (0..2).for_each(|_| work_and_allocate(work));
                hash(work);
                core_thread::exit(entered, clock::now());
                if !state.count() {
                    return;
                }
            }
        })
    }

    /// A task that wakes itself: polls.
    pub(crate) fn polls() -> Load {
        Load::start(|state| {
            on_one_worker(async move {
                while state.count() {
                    yield_now().await;
                }
            });
        })
    }

    /// Two tasks that wake each other in turns: for each poll there is a wake by another task.
    pub(crate) fn wakes() -> Load {
        Load::start(|state| {
            on_one_worker(async move {
                let (there, mut asked) = mpsc::channel::<()>(1);
                let (back, mut answered) = mpsc::channel::<()>(1);
                andweorc::spawn(async move {
                    while asked.recv().await.is_some() && back.send(()).await.is_ok() {}
                });
                while state.count() && there.send(()).await.is_ok() {
                    answered.recv().await;
                }
            });
        })
    }

    /// Requests of so many spans inside of each other that do nothing, on a plain thread.
    pub(crate) fn spans(inside: usize) -> Load {
        fn enter(left: usize) {
            if left > 0 {
                info_span!("inside").in_scope(|| enter(left - 1));
            }
        }
        Load::start(move |state| {
            while state.count() {
                info_span!("alone").in_scope(|| enter(inside));
            }
        })
    }

    /// CPU time of the process for each item over a stretch, ns.
    pub(crate) fn measure(&self) -> f64 {
        let now = || (self.state.done.load(Ordering::SeqCst), clock::process_cpu());
        thread::sleep(SETTLE);
        let (done, cpu) = now();
        thread::sleep(STRETCH);
        let (done_after, cpu_after) = now();
        (cpu_after - cpu).0 as f64 / (done_after - done).max(1) as f64
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|it| it.is_ok()), "the load panicked");
    }
}

fn rounds(pace: Pace) -> u32 {
    PART * pace.rounds_per_ms() / 1000
}

fn on_one_worker(main: impl Future<Output = ()> + Send + 'static) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_profiling().build().expect("there are threads");
    runtime.block_on(async { andweorc::spawn(main).await }).expect("no load panics");
}

async fn serve(pace: Pace, state: Arc<State>) {
    let work = rounds(pace);
    let (ask, mut asked) = mpsc::channel::<oneshot::Sender<()>>(CLIENTS);
    andweorc::spawn(async move {
        while let Some(answer) = asked.recv().await {
            info_span!("look up").in_scope(|| hash(work));
            // A client that has ended asks for nothing more.
            answer.send(()).ok();
        }
    });
    let mut clients = andweorc::JoinSet::new();
    for _ in 0..CLIENTS {
        let (ask, state) = (ask.clone(), Arc::clone(&state));
        clients.spawn(async move {
            while state.count() {
                request(work, &ask).instrument(info_span!("request")).await;
                yield_now().await;
            }
        });
    }
    drop(ask);
    while clients.join_next().await.is_some() {}
}

async fn request(work: u32, ask: &mpsc::Sender<oneshot::Sender<()>>) {
    info_span!("parse").in_scope(|| work_and_allocate(work));
    let stock = async {
        let (answer, answered) = oneshot::channel();
        ask.send(answer).await.expect("the other task lives longer");
        answered.await.expect("each is answered");
    };
    stock.instrument(info_span!("stock")).await;
    info_span!("render").in_scope(|| work_and_allocate(work));
}

/// Works, with blocks in its hands.
#[inline(never)]
fn work_and_allocate(work: u32) {
    static ANDWEORCS: Alloc = Alloc::system();
    if COUNTED.load(Ordering::SeqCst) {
        with_blocks(&ANDWEORCS, || hash(work));
    } else {
        with_blocks(&System, || hash(work));
    }
}

fn with_blocks(allocator: &impl GlobalAlloc, run: impl FnOnce()) {
    let layout = |at: usize| {
        Layout::from_size_align(black_box(SIZES[at % SIZES.len()]), 8).expect("it is small")
    };
    // SAFETY: each layout has a size, and each block is freed once, by its layout.
    unsafe {
        let held: [*mut u8; BLOCKS] =
            std::array::from_fn(|at| black_box(allocator.alloc(layout(at))));
        run();
        held.into_iter().enumerate().for_each(|(at, block)| allocator.dealloc(block, layout(at)));
    }
}
