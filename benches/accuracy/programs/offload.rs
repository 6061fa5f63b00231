//! Work that is handed to others: the blocking pool, tasks of a `JoinSet`.

use crate::program::{Aim, Program, Runtime, Stage, spawn, spawn_blocking, spawn_in};
use andweorc_profile::PointKind::{Latency, Progress};
use std::io;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "blocking",
        about: "two handlers that leave the most work to the blocking pool, and wait outside",
        runtime: Runtime::Workers,
        parts: &[("parse", 200), ("digest", 500)],
        targets: &[Aim::span("digest"), Aim::span("parse")],
        point: Latency,
        start: |stage| blocking(stage, 2),
    },
    Program {
        name: "blocking_one_thread",
        about: "three handlers on a current-thread runtime with the blocking pool beside it",
        runtime: Runtime::CurrentThread,
        parts: &[("parse", 250), ("digest", 200)],
        targets: &[Aim::span("parse"), Aim::span("digest")],
        point: Latency,
        start: |stage| blocking(stage, 3),
    },
    Program {
        name: "join_set",
        about: "four pieces of work side by side, joined and merged, again and again",
        runtime: Runtime::Workers,
        parts: &[("piece", 400), ("merge", 300)],
        targets: &[Aim::span("piece"), Aim::span("merge")],
        point: Progress,
        start: join_set,
    },
];

fn blocking(stage: &Stage, handlers: usize) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..handlers {
        let (parse, digest) = (stage.part("parse"), stage.part("digest"));
        let mut store = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                parse.run();
                let digest = digest.clone();
                let digested = spawn_blocking(move || digest.run());
                digested.await.expect("digests do not panic");
                store.ask(500).await;
                request.end();
            }
        });
    }
    Ok(())
}

fn join_set(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (piece, merge) = (stage.part("piece"), stage.part("merge"));
    spawn("driver", async move {
        loop {
            let mut pieces = andweorc::JoinSet::new();
            for _ in 0..4 {
                let piece = piece.clone();
                spawn_in(&mut pieces, async move { piece.run() });
            }
            while pieces.join_next().await.is_some() {}
            merge.run();
            done.hit();
        }
    });
    Ok(())
}
