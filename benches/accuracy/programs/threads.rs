//! Plain threads and the locks of the standard library, by the calls for threads: a thread
//! registers, says when it was blocked by another, and pays before it acts on others.

use crate::program::{Aim, Program, Runtime, Stage};
use andweorc_core::thread::{blocked, catch_up, register};
use andweorc_profile::PointKind::Progress;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread::spawn;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "threads_queue",
        about: "two threads and a queue of Mutex and Condvar; the producer sets the pace",
        runtime: Runtime::None,
        parts: &[("make", 500), ("use", 300)],
        targets: &[Aim::span("make"), Aim::span("use")],
        point: Progress,
        start: queue,
    },
    Program {
        name: "threads_mutex",
        about: "two threads that work, and work under one std mutex",
        runtime: Runtime::None,
        parts: &[("outside", 300), ("inside", 500)],
        targets: &[Aim::span("inside"), Aim::span("outside")],
        point: Progress,
        start: mutex,
    },
    Program {
        name: "threads_barrier",
        about: "two threads that meet at a std barrier after every item",
        runtime: Runtime::None,
        parts: &[("long", 600), ("short", 400)],
        targets: &[Aim::span("long"), Aim::span("short")],
        point: Progress,
        start: barrier,
    },
    Program {
        name: "slow_fast",
        about: "a slow and a fast function in threads that are spawned and joined each round, as rocprofiler-systems validates with",
        runtime: Runtime::None,
        parts: &[("slow", 2000), ("fast", 1500)],
        targets: &[Aim::span("slow"), Aim::span("fast")],
        point: Progress,
        start: slow_fast,
    },
];

fn queue(stage: &Stage) -> io::Result<()> {
    const ROOM: usize = 8;
    #[derive(Default)]
    struct Queue {
        items: Mutex<VecDeque<()>>,
        changed: Condvar,
    }
    impl Queue {
        /// Waits until the number of items is as wanted, and changes them.
        fn change(&self, wanted: impl Fn(usize) -> bool, change: impl FnOnce(&mut VecDeque<()>)) {
            catch_up();
            let mut items = blocked(|| {
                let items = self.items.lock().expect("no one panics with the queue");
                let changed = self.changed.wait_while(items, |items| !wanted(items.len()));
                changed.expect("no one panics with the queue")
            });
            // What came up while it was blocked, and is not taken by that.
            catch_up();
            change(&mut items);
            drop(items);
            self.changed.notify_one();
        }
    }

    let done = stage.done();
    let queue = Arc::new(Queue::default());
    let (make, to) = (stage.part("make"), queue.clone());
    spawn(move || {
        register();
        loop {
            make.run();
            to.change(|len| len < ROOM, |items| items.push_back(()));
        }
    });
    let part = stage.part("use");
    spawn(move || {
        register();
        loop {
            queue.change(|len| len > 0, |items| items.truncate(items.len() - 1));
            part.run();
            done.hit();
        }
    });
    Ok(())
}

fn mutex(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..2 {
        let (outside, inside) = (stage.part("outside"), stage.part("inside"));
        let lock = lock.clone();
        spawn(move || {
            register();
            loop {
                outside.run();
                let guard = blocked(|| lock.lock().expect("no one panics with the lock"));
                inside.run();
                catch_up();
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
        let (part, meeting) = (part.clone(), meeting.clone());
        spawn(move || {
            register();
            loop {
                part.run();
                catch_up();
                if blocked(|| meeting.wait()).is_leader() {
                    done.hit();
                }
            }
        });
    }
    Ok(())
}

fn slow_fast(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let parts = stage.parts().to_vec();
    spawn(move || {
        register();
        loop {
            catch_up();
            let threads: Vec<_> = parts
                .iter()
                .cloned()
                .map(|part| {
                    spawn(move || {
                        register();
                        part.run();
                        catch_up();
                    })
                })
                .collect();
            for thread in threads {
                blocked(|| thread.join()).expect("the parts do not panic");
            }
            done.hit();
        }
    });
    Ok(())
}
