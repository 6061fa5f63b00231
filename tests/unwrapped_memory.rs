//! Nothing is kept of tasks that nobody wrapped and that ended. Alone in its process: it counts all
//! allocations.
#![cfg(tokio_unstable)]

use andweorc_core::experiment::Experimenter;
use std::future::pending;
use tests_support::memory::{Counting, live};
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::prelude::*;

#[global_allocator]
static COUNTING: Counting = Counting;

const TASKS: usize = 2000;

/// Tasks that complete, that panic, and that are aborted before and after their first poll.
fn live_and_die(runtime: &Runtime) {
    runtime.block_on(async {
        for i in 0..TASKS {
            let task = match i % 4 {
                0 => tokio::spawn(async {}),
                1 => tokio::spawn(async { std::panic::resume_unwind(Box::new(())) }),
                _ => tokio::spawn(pending()),
            };
            if i % 4 == 3 {
                tokio::task::yield_now().await;
            }
            if i % 4 > 1 {
                task.abort();
            }
            drop(task.await);
        }
    });
}

#[test]
fn nothing_is_kept_of_a_task_that_ended() {
    let _on = Experimenter::new().expect("the only one in this process");
    tracing_subscriber::registry().with(andweorc::layer()).init();
    let runtime = Builder::new_current_thread().build().unwrap();
    for _ in 0..3 {
        live_and_die(&runtime);
    }
    let before = live();
    for _ in 0..5 {
        live_and_die(&runtime);
    }
    let kept = live().saturating_sub(before);
    assert!(kept < TASKS, "{kept} bytes are kept of {} tasks that ended", 5 * TASKS);
}
