//! Memory that a live task takes, and that nothing is kept of those that ended. Alone in its
//! process: it counts all allocations.

use andweorc_core::experiment::Experimenter;
use andweorc_tokio::Profile;
use std::future::{Future, pending};
use std::task::{Context, Waker};
use tests_support::memory::{Counting, live};

#[global_allocator]
static COUNTING: Counting = Counting;

const TASKS: usize = 10_000;

/// Most that andweorc may add to a task that waits, bytes.
const MOST: usize = 128;

/// By how many bytes `TASKS` futures, each polled once and then waiting, let the heap grow. Futures
/// on the heap rather than tasks: tokio rounds the size of a task up to a whole number of cache
/// lines.
fn grown<F: Future<Output = ()>>(future: impl Fn() -> F) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let mut futures = Vec::with_capacity(TASKS);
    let before = live();
    for _ in 0..TASKS {
        let mut future = Box::pin(future());
        assert!(future.as_mut().poll(&mut cx).is_pending());
        futures.push(future);
    }
    live() - before
}

/// A task of some size, which waits.
async fn waits() {
    let state = [0_u64; 16];
    pending::<()>().await;
    std::hint::black_box(state);
}

#[test]
fn a_live_task_costs_little_and_an_ended_one_nothing() {
    let _on = Experimenter::new().expect("the only one in this process");
    let profiled = || waits().profiled("memory");
    // The first time a target is registered.
    grown(profiled);
    let (without, with) = (grown(waits), grown(profiled));
    let each = (with - without) / TASKS;
    println!("{each} bytes for each live task");
    assert!(each <= MOST, "{each} bytes for each live task");

    let before = live();
    for _ in 0..10 {
        grown(profiled);
    }
    let kept = live().saturating_sub(before);
    assert!(kept < TASKS, "{kept} bytes are kept of {} tasks that ended", 10 * TASKS);
}
