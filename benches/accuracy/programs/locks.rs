//! Tasks that wait for each other at locks.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_profile::PointKind::{Latency, Progress};
use std::io;
use std::sync::Arc;
use tokio::sync::{Mutex, RwLock, Semaphore};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "mutex",
        about: "four tasks work, and work under one lock, which is never free",
        runtime: Runtime::Workers,
        parts: &[("prepare", 200), ("locked", 400)],
        targets: &[Aim::span("locked"), Aim::span("prepare")],
        point: Progress,
        start: mutex,
    },
    Program {
        name: "mutex_over_wait",
        about: "four handlers that wait for the world outside with the lock held",
        runtime: Runtime::Workers,
        parts: &[("check", 300), ("stock", 300)],
        targets: &[Aim::span("stock"), Aim::span("check")],
        point: Latency,
        start: mutex_over_wait,
    },
    Program {
        name: "semaphore",
        about: "six handlers, of which two at a time may work and wait",
        runtime: Runtime::Workers,
        parts: &[("fetch", 300), ("encode", 200)],
        targets: &[Aim::span("fetch"), Aim::span("encode")],
        point: Latency,
        start: semaphore,
    },
    Program {
        name: "rwlock",
        about: "three readers and a writer that waits between its writes",
        runtime: Runtime::Workers,
        parts: &[("look", 300), ("answer", 200), ("write", 250)],
        targets: &[Aim::span("look"), Aim::span("write")],
        point: Progress,
        start: rwlock,
    },
];

fn mutex(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..4 {
        let (prepare, locked) = (stage.part("prepare"), stage.part("locked"));
        let lock = lock.clone();
        spawn("task", async move {
            loop {
                prepare.run();
                let guard = lock.lock().await;
                locked.run();
                drop(guard);
                done.hit();
            }
        });
    }
    Ok(())
}

fn mutex_over_wait(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let journal = Arc::new(Mutex::new(stage.line()?));
    for _ in 0..4 {
        let (check, stock) = (stage.part("check"), stage.part("stock"));
        let journal = journal.clone();
        let mut bank = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                check.run();
                let mut journal = journal.lock().await;
                stock.run();
                journal.ask(400).await;
                drop(journal);
                bank.ask(1000).await;
                request.end();
            }
        });
    }
    Ok(())
}

fn semaphore(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let permits = Arc::new(Semaphore::new(2));
    for _ in 0..6 {
        let (fetch, encode) = (stage.part("fetch"), stage.part("encode"));
        let permits = permits.clone();
        let mut store = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                let permit = permits.acquire().await.expect("no one closes the semaphore");
                fetch.run();
                store.ask(600).await;
                drop(permit);
                encode.run();
                request.end();
            }
        });
    }
    Ok(())
}

fn rwlock(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(RwLock::new(()));
    for _ in 0..3 {
        let (look, answer) = (stage.part("look"), stage.part("answer"));
        let lock = lock.clone();
        spawn("reader", async move {
            loop {
                let guard = lock.read().await;
                look.run();
                drop(guard);
                answer.run();
                done.hit();
            }
        });
    }
    let write = stage.part("write");
    let mut source = stage.line()?;
    spawn("writer", async move {
        loop {
            source.ask(1000).await;
            let guard = lock.write().await;
            write.run();
            drop(guard);
        }
    });
    Ok(())
}
