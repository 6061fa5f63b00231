//! Work in batches, and queues that push back.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_profile::PointKind::{Latency, Progress};
use std::io;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "batcher",
        about: "items are collected eight at a time and flushed together; the producer sets the pace",
        runtime: Runtime::Workers,
        parts: &[("produce", 100), ("flush", 500)],
        targets: &[Aim::span("produce"), Aim::span("flush")],
        point: Progress,
        start: batcher,
    },
    Program {
        name: "group_commit",
        about: "six clients whose writes are committed together: a faster commit means smaller groups",
        runtime: Runtime::Workers,
        parts: &[("prepare", 150), ("commit", 300)],
        targets: &[Aim::span("commit"), Aim::span("prepare")],
        point: Latency,
        start: group_commit,
    },
    Program {
        name: "backpressure",
        about: "a fast producer behind a channel with room for one, a slow consumer that also waits",
        runtime: Runtime::Workers,
        parts: &[("produce", 150), ("consume", 400)],
        targets: &[Aim::span("consume"), Aim::span("produce")],
        point: Progress,
        start: backpressure,
    },
    Program {
        name: "leader_follower",
        about: "four tasks, of which one at a time listens; it hands that over before it works",
        runtime: Runtime::Workers,
        parts: &[("accept", 200), ("process", 300)],
        targets: &[Aim::span("accept"), Aim::span("process")],
        point: Progress,
        start: leader_follower,
    },
];

fn batcher(stage: &Stage) -> io::Result<()> {
    const BATCH: usize = 8;
    let done = stage.done();
    let (sender, mut items) = mpsc::channel(2 * BATCH);
    let (produce, flush) = (stage.part("produce"), stage.part("flush"));
    spawn("producer", async move {
        loop {
            produce.run();
            if sender.send(()).await.is_err() {
                break;
            }
        }
    });
    spawn("batcher", async move {
        let mut batch = 0;
        while items.recv().await.is_some() {
            batch += 1;
            if batch == BATCH {
                flush.run();
                (0..batch).for_each(|_| done.hit());
                batch = 0;
            }
        }
    });
    Ok(())
}

fn group_commit(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (sender, mut writes) = mpsc::channel::<oneshot::Sender<()>>(16);
    for _ in 0..6 {
        let (sender, prepare) = (sender.clone(), stage.part("prepare"));
        spawn("client", async move {
            loop {
                let request = done.begin();
                prepare.run();
                let (reply, committed) = oneshot::channel();
                if sender.send(reply).await.is_err() || committed.await.is_err() {
                    break;
                }
                request.end();
            }
        });
    }
    let commit = stage.part("commit");
    let mut disk = stage.line()?;
    spawn("committer", async move {
        let mut group = Vec::new();
        while writes.recv_many(&mut group, 16).await > 0 {
            commit.run();
            disk.ask(300).await;
            for reply in group.drain(..) {
                // A client never gives up waiting.
                reply.send(()).ok();
            }
        }
    });
    Ok(())
}

fn backpressure(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (sender, mut items) = mpsc::channel(1);
    let (produce, consume) = (stage.part("produce"), stage.part("consume"));
    let mut store = stage.line()?;
    spawn("producer", async move {
        loop {
            produce.run();
            if sender.send(()).await.is_err() {
                break;
            }
        }
    });
    spawn("consumer", async move {
        while items.recv().await.is_some() {
            consume.run();
            store.ask(300).await;
            done.hit();
        }
    });
    Ok(())
}

fn leader_follower(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let leader = Arc::new(Mutex::new(stage.line()?));
    for _ in 0..4 {
        let (accept, process) = (stage.part("accept"), stage.part("process"));
        let leader = leader.clone();
        spawn("follower", async move {
            loop {
                let mut source = leader.lock().await;
                source.ask(150).await;
                accept.run();
                drop(source);
                process.run();
                done.hit();
            }
        });
    }
    Ok(())
}
