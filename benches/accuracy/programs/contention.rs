//! A part that hurts when it gets faster.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_core::profile::PointKind::Progress;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Mutex;

pub(crate) const PROGRAMS: &[Program] = &[Program {
    name: "crowded_lock",
    about: "the holder of the lock looks through all who wait for it: who comes back sooner makes it longer for all",
    runtime: Runtime::Workers,
    // The lock alone is slower than all that is done outside of it, so that it is never free: else the program would have two modes, free
    // and crowded, and its truth would be which of them it fell into.
    parts: &[("prepare", 250), ("locked", 220), ("search", 80)],
    targets: &[Aim::span("prepare"), Aim::span("search")],
    point: Progress,
    start: crowded_lock,
}];

fn crowded_lock(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    let waiting = Arc::new(AtomicU32::new(0));
    for _ in 0..5 {
        let (prepare, locked, search) =
            (stage.part("prepare"), stage.part("locked"), stage.part("search"));
        let (lock, waiting) = (lock.clone(), waiting.clone());
        let mut store = stage.line()?;
        spawn("task", async move {
            loop {
                // Also lets the next holder of the lock run at once: tokio keeps the task that was just woken for this worker.
                store.ask(200).await;
                prepare.run();
                // Relaxed: how many there are is all that it says.
                waiting.fetch_add(1, Ordering::Relaxed);
                let guard = lock.lock().await;
                let others = waiting.fetch_sub(1, Ordering::Relaxed) - 1;
                locked.run();
                search.run_times(others);
                drop(guard);
                done.hit();
            }
        });
    }
    Ok(())
}
