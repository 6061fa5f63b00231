//! Real rayon inside tokio: its threads say nothing to andweorc.

use crate::program::{Aim, Program, Runtime, Stage, spawn, spawn_blocking};
use andweorc_profile::PointKind::Latency;
use andweorc_threads as _;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::io;
use tokio::sync::oneshot;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "rayon_spawn",
        about: "three handlers that hand a sum to rayon and wait for its oneshot, encode, and wait outside",
        runtime: Runtime::Workers,
        parts: &[("encode", 150), ("sum", 300)],
        targets: &[Aim::span("sum"), Aim::span("encode")],
        point: Latency,
        start: spawned,
    },
    Program {
        name: "rayon_par_iter",
        about: "two handlers whose four pieces rayon does side by side, for a thread of the blocking pool, and that merge them",
        runtime: Runtime::Workers,
        parts: &[("piece", 150), ("merge", 200)],
        targets: &[Aim::span("piece"), Aim::span("merge")],
        point: Latency,
        start: par_iter,
    },
];

fn spawned(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..3 {
        let (encode, sum) = (stage.part("encode"), stage.part("sum"));
        let mut line = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                let (answer, answered) = oneshot::channel();
                let sum = sum.clone();
                rayon::spawn(move || {
                    sum.run();
                    // Whoever asked may be gone: the program ends.
                    answer.send(()).ok();
                });
                answered.await.expect("rayon answers all");
                encode.run();
                request.end();
                line.ask(700).await;
            }
        });
    }
    Ok(())
}

fn par_iter(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..2 {
        let (piece, merge) = (stage.part("piece"), stage.part("merge"));
        let mut line = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                let piece = piece.clone();
                let pieces =
                    spawn_blocking(move || (0..4).into_par_iter().for_each(|_| piece.run()));
                pieces.await.expect("pieces do not panic");
                merge.run();
                request.end();
                line.ask(700).await;
            }
        });
    }
    Ok(())
}
