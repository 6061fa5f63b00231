//! Programs whose targets are lines and functions: nothing in them is marked but the point, and only samples tell what runs. Threads
//! register and pay as they hit the point; that they are blocked by each other, `andweorc-threads` sees.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_core::profile::PointKind::{Latency, Progress};
use andweorc_core::thread::{pay, register};
use andweorc_threads as _;
use std::hint::{black_box, spin_loop};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use tokio::sync::mpsc;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "lines_slow_fast",
        about: "two threads that meet after every item, by spinning: the slow one sets the pace",
        runtime: Runtime::None,
        parts: &[("slow", 3000), ("fast", 1500)],
        targets: &[Aim::line("slow"), Aim::line("fast")],
        point: Progress,
        start: meet,
    },
    Program {
        name: "lines_slow_fast_short",
        about: "the same with items of a tenth",
        runtime: Runtime::None,
        parts: &[("slow", 300), ("fast", 150)],
        targets: &[Aim::function("slow"), Aim::line("fast")],
        point: Progress,
        start: meet,
    },
    Program {
        name: "lines_pipeline",
        about: "two stages, the first sets the pace",
        runtime: Runtime::Workers,
        parts: &[("slow", 400), ("fast", 250)],
        targets: &[Aim::line("slow"), Aim::function("fast")],
        point: Progress,
        start: pipeline,
    },
    Program {
        name: "lines_one_task",
        about: "both parts in the polls of one kind of task, 60 us and 40 us",
        runtime: Runtime::Workers,
        parts: &[("slow", 60), ("fast", 40)],
        targets: &[Aim::line("slow"), Aim::line("fast")],
        point: Progress,
        start: one_task,
    },
    Program {
        name: "lines_handlers",
        about: "six handlers that parse, wait 3 ms, and render",
        runtime: Runtime::Workers,
        parts: &[("slow", 400), ("fast", 200)],
        targets: &[Aim::function("slow"), Aim::line("fast")],
        point: Latency,
        start: handlers,
    },
    Program {
        name: "lines_mutex",
        about: "two threads that work, and work under one std mutex",
        runtime: Runtime::None,
        parts: &[("slow", 500), ("fast", 300)],
        targets: &[Aim::line("slow"), Aim::line("fast")],
        point: Progress,
        start: mutex,
    },
    Program {
        name: "lines_barrier",
        about: "two threads that meet at a std barrier after every item",
        runtime: Runtime::None,
        parts: &[("slow", 600), ("fast", 400)],
        targets: &[Aim::line("slow"), Aim::line("fast")],
        point: Progress,
        start: barrier,
    },
];

/// As `work::hash`, all of it in one line.
#[inline(never)]
#[rustfmt::skip]
fn slow(rounds: u32) {
    let mut x = black_box(u64::from(rounds));
    for _ in 0..rounds { x = x.wrapping_add(0x9e37_79b9_7f4a_7c15); x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9); x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb); }
    black_box(x);
}

/// As `work::hash`, all of it in one line.
#[inline(never)]
#[rustfmt::skip]
fn fast(rounds: u32) {
    let mut x = black_box(u64::from(rounds) + 1);
    for _ in 0..rounds { x = x.wrapping_add(0x9e37_79b9_7f4a_7c15); x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9); x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb); }
    black_box(x);
}

fn meet(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let meeting = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    for (mine, (part, work)) in
        [("slow", slow as fn(u32)), ("fast", fast as fn(u32))].into_iter().enumerate()
    {
        let (cost, meeting) = (stage.part(part).cost(), Arc::clone(&meeting));
        std::thread::spawn(move || {
            register();
            loop {
                work(cost.now());
                // Before it acts on the other.
                pay();
                let (mine, other) = (&meeting[mine], &meeting[1 - mine]);
                if mine.fetch_add(1, Ordering::SeqCst) < other.load(Ordering::SeqCst) {
                    done.hit();
                }
                while other.load(Ordering::SeqCst) < mine.load(Ordering::SeqCst) {
                    spin_loop();
                }
            }
        });
    }
    Ok(())
}

fn pipeline(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (sender, mut items) = mpsc::channel(8);
    let cost = stage.part("slow").cost();
    spawn("first", async move {
        loop {
            slow(cost.now());
            if sender.send(()).await.is_err() {
                break;
            }
        }
    });
    let cost = stage.part("fast").cost();
    spawn("second", async move {
        while items.recv().await.is_some() {
            fast(cost.now());
            done.hit();
        }
    });
    Ok(())
}

fn one_task(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..2 {
        let (first, second) = (stage.part("slow").cost(), stage.part("fast").cost());
        spawn("both", async move {
            loop {
                slow(first.now());
                fast(second.now());
                done.hit();
                andweorc::task::yield_now().await;
            }
        });
    }
    Ok(())
}

fn handlers(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..6 {
        let (parse, render) = (stage.part("fast").cost(), stage.part("slow").cost());
        let mut line = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                fast(parse.now());
                line.ask(3000).await;
                slow(render.now());
                request.end();
            }
        });
    }
    Ok(())
}

fn mutex(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..2 {
        let (outside, inside) = (stage.part("fast").cost(), stage.part("slow").cost());
        let lock = Arc::clone(&lock);
        std::thread::spawn(move || {
            register();
            loop {
                fast(outside.now());
                let guard = lock.lock().expect("no one panics with the lock");
                slow(inside.now());
                drop(guard);
                done.hit();
            }
        });
    }
    Ok(())
}

fn barrier(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let meeting = Arc::new(Barrier::new(2));
    for (part, work) in [("slow", slow as fn(u32)), ("fast", fast as fn(u32))] {
        let (cost, meeting) = (stage.part(part).cost(), Arc::clone(&meeting));
        std::thread::spawn(move || {
            register();
            loop {
                work(cost.now());
                if meeting.wait().is_leader() {
                    done.hit();
                }
            }
        });
    }
    Ok(())
}
