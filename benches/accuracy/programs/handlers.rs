//! Request handlers that wait for the world outside. Each handles one request after the other; how
//! many there are is the load.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_profile::PointKind::Latency;
use std::io;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "handlers_low",
        about: "one handler: work, wait, work; all of it is on the way",
        runtime: Runtime::Workers,
        parts: &[("parse", 200), ("render", 400)],
        targets: &[Aim::span("parse"), Aim::span("render").at(&[0.1, 0.4, 0.7])],
        point: Latency,
        start: |stage| simple(stage, 1, 1000),
    },
    Program {
        name: "handlers_medium",
        about: "six handlers that wait 3 ms each: half of two cores",
        runtime: Runtime::Workers,
        parts: &[("parse", 200), ("render", 400)],
        targets: &[Aim::span("parse"), Aim::span("render")],
        point: Latency,
        start: |stage| simple(stage, 6, 3000),
    },
    Program {
        name: "handlers_saturated",
        about: "sixteen handlers that wait 1 ms each: two cores full of work",
        runtime: Runtime::Workers,
        parts: &[("parse", 200), ("render", 400)],
        targets: &[Aim::span("parse"), Aim::span("render")],
        point: Latency,
        start: |stage| simple(stage, 16, 1000),
    },
    Program {
        name: "handlers_two_waits",
        about: "four handlers: work, wait, work, wait, work",
        runtime: Runtime::Workers,
        parts: &[("auth", 150), ("query", 350), ("render", 250)],
        targets: &[Aim::span("auth"), Aim::span("query")],
        point: Latency,
        start: two_waits,
    },
    Program {
        name: "handlers_joined_waits",
        about: "four handlers that wait for two answers at once",
        runtime: Runtime::Workers,
        parts: &[("parse", 200), ("merge", 400)],
        targets: &[Aim::span("parse"), Aim::span("merge")],
        point: Latency,
        start: joined_waits,
    },
    Program {
        name: "handlers_subtasks",
        about: "three handlers that spawn two tasks, which work and wait, and join them",
        runtime: Runtime::Workers,
        parts: &[("fetch", 250), ("merge", 200)],
        targets: &[Aim::span("fetch"), Aim::span("merge")],
        point: Latency,
        start: subtasks,
    },
    Program {
        name: "handlers_one_thread",
        about: "four handlers on a current-thread runtime, most of one core",
        runtime: Runtime::CurrentThread,
        parts: &[("parse", 100), ("render", 200)],
        targets: &[Aim::span("parse"), Aim::span("render")],
        point: Latency,
        start: |stage| simple(stage, 4, 1200),
    },
];

fn simple(stage: &Stage, handlers: usize, wait_us: u32) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..handlers {
        let (parse, render) = (stage.part("parse"), stage.part("render"));
        let mut line = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                parse.run();
                line.ask(wait_us).await;
                render.run();
                request.end();
            }
        });
    }
    Ok(())
}

fn two_waits(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..4 {
        let (auth, query, render) = (stage.part("auth"), stage.part("query"), stage.part("render"));
        let (mut users, mut store) = (stage.line()?, stage.line()?);
        spawn("handler", async move {
            loop {
                let request = done.begin();
                auth.run();
                users.ask(800).await;
                query.run();
                store.ask(1500).await;
                render.run();
                request.end();
            }
        });
    }
    Ok(())
}

fn joined_waits(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..4 {
        let (parse, merge) = (stage.part("parse"), stage.part("merge"));
        let (mut near, mut far) = (stage.line()?, stage.line()?);
        spawn("handler", async move {
            loop {
                let request = done.begin();
                parse.run();
                tokio::join!(near.ask(1000), far.ask(1600));
                merge.run();
                request.end();
            }
        });
    }
    Ok(())
}

fn subtasks(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..3 {
        let (fetch, merge) = (stage.part("fetch"), stage.part("merge"));
        let mut lines = vec![stage.line()?, stage.line()?];
        spawn("handler", async move {
            loop {
                let request = done.begin();
                let tasks: Vec<_> = lines
                    .drain(..)
                    .map(|mut line| {
                        let fetch = fetch.clone();
                        spawn("fetcher", async move {
                            fetch.run();
                            line.ask(1000).await;
                            line
                        })
                    })
                    .collect();
                for task in tasks {
                    lines.push(task.await.expect("fetchers do not panic"));
                }
                merge.run();
                request.end();
            }
        });
    }
    Ok(())
}
