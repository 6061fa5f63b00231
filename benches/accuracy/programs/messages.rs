//! Tasks that talk to each other: an actor, notifications, broadcast, watch, select.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_profile::PointKind::{Latency, Progress};
use std::io;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore, broadcast, mpsc, oneshot, watch};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "actor",
        about: "three clients ask one actor, which answers over oneshots and never rests",
        runtime: Runtime::Workers,
        parts: &[("ask", 150), ("serve", 400)],
        targets: &[Aim::span("serve"), Aim::span("ask")],
        point: Latency,
        start: actor,
    },
    Program {
        name: "notify",
        about: "two tasks take turns by Notify: both are on the way",
        runtime: Runtime::Workers,
        parts: &[("ping", 300), ("pong", 200)],
        targets: &[Aim::span("ping"), Aim::span("pong")],
        point: Progress,
        start: notify,
    },
    Program {
        name: "broadcast",
        about: "one producer, two subscribers that keep up with it",
        runtime: Runtime::Workers,
        parts: &[("produce", 500), ("index", 250), ("log", 100)],
        targets: &[Aim::span("produce"), Aim::span("index")],
        point: Progress,
        start: broadcasting,
    },
    Program {
        name: "watch",
        about: "a publisher that waits between its updates, two watchers that render each",
        runtime: Runtime::Workers,
        parts: &[("update", 300), ("render", 250)],
        targets: &[Aim::span("update"), Aim::span("render")],
        point: Progress,
        start: watching,
    },
    Program {
        name: "select_loop",
        about: "one loop that selects from two channels, which are never empty",
        runtime: Runtime::Workers,
        parts: &[("submit", 60), ("order", 250), ("cancel", 150)],
        targets: &[Aim::span("order"), Aim::span("cancel")],
        point: Progress,
        start: select_loop,
    },
];

fn actor(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (sender, mut questions) = mpsc::channel::<oneshot::Sender<()>>(16);
    for _ in 0..3 {
        let (sender, ask) = (sender.clone(), stage.part("ask"));
        spawn("client", async move {
            loop {
                let request = done.begin();
                ask.run();
                let (reply, answer) = oneshot::channel();
                if sender.send(reply).await.is_err() || answer.await.is_err() {
                    break;
                }
                request.end();
            }
        });
    }
    let serve = stage.part("serve");
    spawn("actor", async move {
        while let Some(reply) = questions.recv().await {
            serve.run();
            if reply.send(()).is_err() {
                break;
            }
        }
    });
    Ok(())
}

fn notify(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (ping, pong) = (stage.part("ping"), stage.part("pong"));
    let to_pong = Arc::new(Notify::new());
    let to_ping = Arc::new(Notify::new());
    let (tell, told) = (to_pong.clone(), to_ping.clone());
    spawn("ping", async move {
        loop {
            ping.run();
            tell.notify_one();
            told.notified().await;
        }
    });
    spawn("pong", async move {
        loop {
            to_pong.notified().await;
            pong.run();
            done.hit();
            to_ping.notify_one();
        }
    });
    Ok(())
}

fn broadcasting(stage: &Stage) -> io::Result<()> {
    const ROOM: usize = 16;
    let done = stage.done();
    let (sender, mut to_index) = broadcast::channel(2 * ROOM);
    let mut to_log = sender.subscribe();
    // A broadcast channel drops what a subscriber is too slow for; credits keep the producer from
    // running ahead of the indexer.
    let credits = Arc::new(Semaphore::new(ROOM));
    let (produce, spent) = (stage.part("produce"), credits.clone());
    spawn("producer", async move {
        loop {
            spent.acquire().await.expect("no one closes the semaphore").forget();
            produce.run();
            if sender.send(()).is_err() {
                break;
            }
        }
    });
    let index = stage.part("index");
    spawn("indexer", async move {
        while to_index.recv().await.is_ok() {
            index.run();
            done.hit();
            credits.add_permits(1);
        }
    });
    let log = stage.part("log");
    spawn("logger", async move {
        while !matches!(to_log.recv().await, Err(broadcast::error::RecvError::Closed)) {
            log.run();
        }
    });
    Ok(())
}

fn watching(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (sender, receiver) = watch::channel(0_u64);
    let update = stage.part("update");
    let mut source = stage.line()?;
    spawn("publisher", async move {
        loop {
            source.ask(500).await;
            update.run();
            sender.send_modify(|version| *version += 1);
        }
    });
    for _ in 0..2 {
        let (mut receiver, render) = (receiver.clone(), stage.part("render"));
        spawn("watcher", async move {
            while receiver.changed().await.is_ok() {
                receiver.mark_unchanged();
                render.run();
                done.hit();
            }
        });
    }
    Ok(())
}

fn select_loop(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (orders, mut to_order) = mpsc::channel(4);
    let (cancels, mut to_cancel) = mpsc::channel(4);
    for sender in [orders, cancels] {
        let submit = stage.part("submit");
        spawn("client", async move {
            loop {
                submit.run();
                if sender.send(()).await.is_err() {
                    break;
                }
            }
        });
    }
    let (order, cancel) = (stage.part("order"), stage.part("cancel"));
    spawn("loop", async move {
        loop {
            tokio::select! {
                Some(()) = to_order.recv() => order.run(),
                Some(()) = to_cancel.recv() => cancel.run(),
                else => break,
            }
            done.hit();
        }
    });
    Ok(())
}
