//! Stages that hand items on over bounded channels. The slowest stage sets the pace, as long as
//! there are cores enough for all.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_profile::PointKind::Progress;
use std::io;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

/// Items that may wait between two stages.
const ROOM: usize = 16;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "pipeline2",
        about: "two stages of 600 and 400 us, tasks as targets; the first sets the pace",
        runtime: Runtime::Workers,
        parts: &[("make", 600), ("use", 400)],
        targets: &[Aim::task("make"), Aim::task("use")],
        point: Progress,
        start: chain,
    },
    Program {
        name: "pipeline2_fast",
        about: "two stages of 60 and 40 us, many items a poll",
        runtime: Runtime::Workers,
        parts: &[("make", 60), ("use", 40)],
        targets: &[Aim::span("make"), Aim::span("use")],
        point: Progress,
        start: chain,
    },
    Program {
        name: "pipeline3",
        about: "three stages on two workers, the middle one sets the pace",
        runtime: Runtime::Workers,
        parts: &[("read", 300), ("parse", 1000), ("store", 200)],
        targets: &[Aim::task("parse"), Aim::task("read")],
        point: Progress,
        start: chain,
    },
    Program {
        name: "pipeline4",
        about: "four stages on two workers: more work than cores, all of it counts",
        runtime: Runtime::Workers,
        parts: &[("a", 400), ("b", 300), ("c", 350), ("d", 250)],
        targets: &[Aim::task("a"), Aim::task("d")],
        point: Progress,
        start: chain,
    },
    Program {
        name: "pipeline5_fast",
        about: "five stages of about 100 us, the first sets the pace",
        runtime: Runtime::Workers,
        parts: &[("a", 160), ("b", 30), ("c", 30), ("d", 20), ("e", 30)],
        targets: &[Aim::span("a"), Aim::span("c")],
        point: Progress,
        start: chain,
    },
    Program {
        name: "pipeline_one_thread",
        about: "two stages on a current-thread runtime: their sum counts",
        runtime: Runtime::CurrentThread,
        parts: &[("make", 300), ("use", 200)],
        targets: &[Aim::task("make"), Aim::task("use")],
        point: Progress,
        start: chain,
    },
    Program {
        name: "fan_out_in",
        about: "a splitter, three workers, a collector: two cores full of work",
        runtime: Runtime::Workers,
        parts: &[("split", 100), ("work", 500), ("collect", 150)],
        targets: &[Aim::span("work"), Aim::span("collect")],
        point: Progress,
        start: fan,
    },
];

/// The parts as stages, in their order.
fn chain(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (first, others) = stage.parts().split_first().expect("a chain has stages");
    let (sender, mut input) = mpsc::channel(ROOM);
    let part = first.clone();
    spawn(first.name(), async move {
        loop {
            part.run();
            if sender.send(()).await.is_err() {
                break;
            }
        }
    });
    for (left, part) in others.iter().enumerate().map(|(i, part)| (others.len() - 1 - i, part)) {
        let name = part.name();
        let part = part.clone();
        let (sender, output) = mpsc::channel(ROOM);
        let mut items = std::mem::replace(&mut input, output);
        spawn(name, async move {
            while items.recv().await.is_some() {
                part.run();
                if left == 0 {
                    done.hit();
                } else if sender.send(()).await.is_err() {
                    break;
                }
            }
        });
    }
    Ok(())
}

fn fan(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (split, work, collect) = (stage.part("split"), stage.part("work"), stage.part("collect"));
    let (to_workers, pieces) = mpsc::channel(ROOM);
    let (to_collector, mut results) = mpsc::channel(ROOM);
    spawn("splitter", async move {
        loop {
            split.run();
            if to_workers.send(()).await.is_err() {
                break;
            }
        }
    });
    let pieces = Arc::new(Mutex::new(pieces));
    for _ in 0..3 {
        let (pieces, results, work) = (pieces.clone(), to_collector.clone(), work.clone());
        spawn("worker", async move {
            loop {
                let piece = pieces.lock().await.recv().await;
                if piece.is_none() {
                    break;
                }
                work.run();
                if results.send(()).await.is_err() {
                    break;
                }
            }
        });
    }
    spawn("collector", async move {
        while results.recv().await.is_some() {
            collect.run();
            done.hit();
        }
    });
    Ok(())
}
