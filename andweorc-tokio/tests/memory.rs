//! What a live task costs in memory, and that nothing is kept of those that ended. Alone in its process: it counts all allocations.

use andweorc_core::experiment::Experimenter;
use andweorc_tokio::runtime::BuilderExt;
use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{Future, pending};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, yield_now};

/// Bytes that are allocated at present.
static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: all is the system allocator's; what is added counts and touches no memory that was handed out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Relaxed: a count that publishes nothing else.
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const TASKS: usize = 10_000;

/// What andweorc may add to a task that waits, bytes.
const MOST: usize = 224;

/// By how many bytes `TASKS` tasks, each polled once and then waiting, let the heap grow.
fn grown(runtime: &Runtime, spawn: impl Fn(&mut JoinSet<()>)) -> usize {
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let before = LIVE.load(Ordering::Relaxed);
        (0..TASKS).for_each(|_| spawn(&mut tasks));
        for _ in 0..TASKS {
            yield_now().await;
        }
        let grown = LIVE.load(Ordering::Relaxed) - before;
        tasks.shutdown().await;
        grown
    })
}

fn waits() -> impl Future<Output = ()> + Send + 'static {
    pending()
}

#[test]
fn a_live_task_costs_little_and_an_ended_one_nothing() {
    use andweorc_tokio::Profile;

    let _on = Experimenter::new().expect("the only one in this process");
    let runtime = Builder::new_current_thread().andweorc().build().unwrap();
    let plain = |tasks: &mut JoinSet<()>| drop(tasks.spawn(waits()));
    let profiled = |tasks: &mut JoinSet<()>| drop(tasks.spawn(waits().profiled("memory")));
    // The first time, queues grow and a target is registered.
    grown(&runtime, profiled);
    let (without, with) = (grown(&runtime, plain), grown(&runtime, profiled));
    let each = (with - without) / TASKS;
    println!("{each} bytes for each live task");
    assert!(each <= MOST, "{each} bytes for each live task");

    let before = LIVE.load(Ordering::Relaxed);
    for _ in 0..10 {
        grown(&runtime, profiled);
    }
    let kept = LIVE.load(Ordering::Relaxed).saturating_sub(before);
    assert!(kept < TASKS, "{kept} bytes are kept of {} tasks that ended", 10 * TASKS);
}
