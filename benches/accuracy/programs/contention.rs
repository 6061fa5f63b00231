//! A part that hurts when it gets faster.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_profile::PointKind::Progress;
use std::io;
use std::sync::Arc;
use tokio::sync::Mutex;

pub(crate) const PROGRAMS: &[Program] = &[Program {
    name: "contention",
    about: "a background task takes the lock of the server: the faster it prepares, the more often, and the less is served",
    runtime: Runtime::Workers,
    parts: &[("serve", 100), ("prepare", 600), ("merge", 400)],
    targets: &[Aim::span("prepare"), Aim::span("merge")],
    point: Progress,
    start: contention,
}];

fn contention(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    let (serve, store) = (stage.part("serve"), lock.clone());
    spawn("server", async move {
        loop {
            let guard = store.lock().await;
            serve.run();
            drop(guard);
            done.hit();
        }
    });
    let (prepare, merge) = (stage.part("prepare"), stage.part("merge"));
    let mut disk = stage.line()?;
    spawn("compactor", async move {
        loop {
            // Not least, it leaves the worker: tokio keeps the server, which the end of the merge
            // has woken, for this one.
            disk.ask(200).await;
            prepare.run();
            let guard = lock.lock().await;
            merge.run();
            drop(guard);
        }
    });
    Ok(())
}
