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
    parts: &[("prepare", 350), ("locked", 200), ("search", 50)],
    targets: &[Aim::span("prepare"), Aim::span("search")],
    point: Progress,
    start: crowded_lock,
}];

fn crowded_lock(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    let waiting = Arc::new(AtomicU32::new(0));
    for _ in 0..6 {
        let (prepare, locked, search) =
            (stage.part("prepare"), stage.part("locked"), stage.part("search"));
        let (lock, waiting) = (lock.clone(), waiting.clone());
        spawn("task", async move {
            loop {
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
