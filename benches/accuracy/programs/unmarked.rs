//! Programs for lines and functions as targets alone: their threads register, and pay as they hit
//! the point. That they are blocked by each other, nothing in them says; `andweorc-threads` sees
//! it.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_core::thread::{catch_up, register};
use andweorc_profile::PointKind::Progress;
use andweorc_threads as _;
use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "one_task",
        about: "both parts in the polls of one kind of task, 60 us and 40 us",
        runtime: Runtime::Workers,
        parts: &[("slow", 60), ("fast", 40)],
        targets: &[Aim::span("slow"), Aim::span("fast")],
        point: Progress,
        start: one_task,
    },
    Program {
        name: "unmarked_mutex",
        about: "two threads that work, and work under one std mutex",
        runtime: Runtime::None,
        parts: &[("slow", 500), ("fast", 300)],
        targets: &[Aim::span("slow"), Aim::span("fast")],
        point: Progress,
        start: mutex,
    },
    Program {
        name: "meet_short",
        about: "two threads that meet after every item of 300 us, by spinning",
        runtime: Runtime::None,
        parts: &[("slow", 300), ("fast", 150)],
        targets: &[Aim::span("slow"), Aim::span("fast")],
        point: Progress,
        start: meet,
    },
    Program {
        name: "unmarked_barrier",
        about: "two threads that meet at a std barrier after every item",
        runtime: Runtime::None,
        parts: &[("slow", 600), ("fast", 400)],
        targets: &[Aim::span("slow"), Aim::span("fast")],
        point: Progress,
        start: barrier,
    },
    Program {
        name: "meet",
        about: "the same with items of 3 ms: the slow one sets the pace",
        runtime: Runtime::None,
        parts: &[("slow", 3000), ("fast", 1500)],
        targets: &[Aim::span("slow"), Aim::span("fast")],
        point: Progress,
        start: meet,
    },
];

fn meet(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let meeting = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    for (mine, part) in stage.parts().iter().enumerate() {
        let (part, meeting) = (part.clone(), Arc::clone(&meeting));
        std::thread::spawn(move || {
            register();
            loop {
                part.run();
                // Before it acts on the other.
                catch_up();
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

fn one_task(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..2 {
        let (slow, fast) = (stage.part("slow"), stage.part("fast"));
        spawn("both", async move {
            loop {
                slow.run();
                fast.run();
                done.hit();
                andweorc::task::yield_now().await;
            }
        });
    }
    Ok(())
}

fn mutex(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..2 {
        let (inside, outside) = (stage.part("slow"), stage.part("fast"));
        let lock = Arc::clone(&lock);
        std::thread::spawn(move || {
            register();
            loop {
                outside.run();
                let guard = lock.lock().expect("no one panics with the lock");
                inside.run();
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
    for part in stage.parts() {
        let (part, meeting) = (part.clone(), Arc::clone(&meeting));
        std::thread::spawn(move || {
            register();
            loop {
                part.run();
                if meeting.wait().is_leader() {
                    done.hit();
                }
            }
        });
    }
    Ok(())
}
