//! Programs that live by the clock. What they do a second is bound by it, and not by their work.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc_clock as _;
use andweorc_profile::PointKind::{Latency, Progress};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::MissedTickBehavior::{Burst, Delay, Skip};
use tokio::time::{interval, sleep, sleep_until, timeout};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "bucket_at_limit",
        about: "five workers behind a bucket of 8 permits each 2 ms, which is what bounds them",
        runtime: Runtime::Workers,
        parts: &[("price", 250)],
        targets: &[Aim::span("price")],
        point: Progress,
        start: bucket,
    },
    Program {
        name: "bucket_below",
        about: "the same, whose work bounds them, until it takes 17 % less",
        runtime: Runtime::Workers,
        parts: &[("price", 600)],
        targets: &[Aim::span("price")],
        point: Progress,
        start: bucket,
    },
    Program {
        name: "intervals",
        about: "four tasks that work once a tick, of all three ways to treat ticks that were missed",
        runtime: Runtime::Workers,
        parts: &[("fetch", 300), ("fold", 300)],
        targets: &[Aim::span("fetch"), Aim::span("fold")],
        point: Latency,
        start: intervals,
    },
    Program {
        name: "pacers",
        about: "six clients that ask at their own pace, by `Instant`s, for work under a lock",
        runtime: Runtime::Workers,
        parts: &[("check", 200), ("stock", 200)],
        targets: &[Aim::span("check"), Aim::span("stock")],
        point: Latency,
        start: pacers,
    },
    Program {
        name: "timeouts",
        about: "four workers whose jobs of six steps are given up after some ms",
        runtime: Runtime::Workers,
        parts: &[("step", 400), ("report", 200)],
        targets: &[Aim::span("step"), Aim::span("report")],
        point: Progress,
        start: timeouts,
    },
    Program {
        name: "back_off",
        about: "four workers that try a lock, and try again after a millisecond",
        runtime: Runtime::Workers,
        parts: &[("prepare", 200), ("locked", 250)],
        targets: &[Aim::span("locked"), Aim::span("prepare")],
        point: Progress,
        start: back_off,
    },
];

fn bucket(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let permits = Arc::new(Semaphore::new(8));
    for _ in 0..5 {
        let (price, permits) = (stage.part("price"), permits.clone());
        spawn("worker", async move {
            loop {
                permits.acquire().await.expect("nobody closes it").forget();
                price.run();
                done.hit();
            }
        });
    }
    spawn("bucket", async move {
        let mut ticks = interval(Duration::from_millis(2));
        loop {
            ticks.tick().await;
            permits.add_permits(8 - permits.available_permits());
        }
    });
    Ok(())
}

fn intervals(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for missed in [Burst, Delay, Skip, Skip] {
        let (fetch, fold) = (stage.part("fetch"), stage.part("fold"));
        let mut line = stage.line()?;
        spawn("task", async move {
            let mut ticks = interval(Duration::from_millis(3));
            ticks.set_missed_tick_behavior(missed);
            loop {
                ticks.tick().await;
                let request = done.begin();
                fetch.run();
                line.ask(500).await;
                fold.run();
                request.end();
            }
        });
    }
    Ok(())
}

fn pacers(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    for client in 0..6 {
        let (check, stock) = (stage.part("check"), stage.part("stock"));
        let lock = lock.clone();
        spawn("client", async move {
            let mut next = Instant::now() + Duration::from_micros(317 * client);
            loop {
                next += Duration::from_millis(3);
                sleep_until(next.into()).await;
                let request = done.begin();
                check.run();
                let guard = lock.lock().await;
                stock.run();
                drop(guard);
                request.end();
            }
        });
    }
    Ok(())
}

fn timeouts(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for worker in 0..4 {
        let (step, report) = (stage.part("step"), stage.part("report"));
        let mut line = stage.line()?;
        spawn("worker", async move {
            // Four workers of two processors: at the same load, some are in time and some are not.
            let given = Duration::from_millis(5 + worker);
            loop {
                let job = async {
                    for _ in 0..6 {
                        step.run();
                        tokio::task::yield_now().await;
                    }
                };
                if timeout(given, job).await.is_ok() {
                    done.hit();
                }
                report.run();
                line.ask(200).await;
            }
        });
    }
    Ok(())
}

fn back_off(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..4 {
        let (prepare, locked) = (stage.part("prepare"), stage.part("locked"));
        let lock = lock.clone();
        spawn("worker", async move {
            loop {
                prepare.run();
                let guard = loop {
                    match lock.try_lock() {
                        Ok(guard) => break guard,
                        Err(_) => sleep(Duration::from_millis(1)).await,
                    }
                };
                locked.run();
                tokio::task::yield_now().await;
                drop(guard);
                done.hit();
            }
        });
    }
    Ok(())
}
