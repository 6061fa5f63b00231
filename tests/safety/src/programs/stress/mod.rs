//! All that a program may do with tasks, threads, runtimes, processes and signals, again and again:
//! nothing may hang, and nothing be lost.

mod runtimes;
mod system;
mod tasks;

use super::{arg, session, spin};
use andweorc::{runtime::BuilderExt, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

static PROGRESS: AtomicU64 = AtomicU64::new(0);
static FAULTS: AtomicU64 = AtomicU64::new(0);

/// Without progress for so long the program hangs.
const HANGS: Duration = Duration::from_secs(15);

/// Says what went wrong. The program fails then.
fn fault(what: String) {
    if FAULTS.fetch_add(1, SeqCst) < 20 {
        eprintln!("FAULT: {what}");
    }
}

fn tick() {
    PROGRESS.fetch_add(1, SeqCst);
}

/// Ends a program that hangs, and prints where its threads are.
fn watchdog() {
    std::thread::spawn(move || {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(250));
            let progress = PROGRESS.load(SeqCst);
            if progress != last {
                (last, since) = (progress, Instant::now());
            }
            if since.elapsed() > HANGS {
                eprintln!("FAULT: HANG: no progress for {HANGS:?} at {progress}");
                let pid = std::process::id().to_string();
                let _ = std::process::Command::new("gdb")
                    .args(["-p", &pid, "-batch", "-ex", "thread apply all bt 14"])
                    .status();
                std::process::abort();
            }
        }
    });
}

/// Counts that it was dropped.
struct CountsDrop(Arc<AtomicU64>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// The unit of work: a span and a progress point.
#[tracing::instrument(skip_all)]
async fn unit(us: u64) {
    spin(us);
    tokio::task::yield_now().await;
    tick();
    andweorc::progress!("unit");
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().enable_profiling().build().expect("runtime")
}

/// Works until the process is ended in the way that `ends` does.
fn until(time: Duration, ends: impl FnOnce() + Send + 'static) {
    runtime().block_on(async move {
        for _ in 0..8 {
            spawn(async {
                loop {
                    unit(50).await;
                    tokio::time::sleep(Duration::from_micros(500)).await
                }
            });
        }
        tokio::time::sleep(time).await;
        ends();
    })
}

/// `stress CASE SECONDS`
pub fn main() {
    let case: String = arg(0, String::new());
    let time = Duration::from_secs(arg(1, 2));
    andweorc::subscriber().init();
    watchdog();
    let session = session();
    let began = Instant::now();
    let end = began + time;
    match case.as_str() {
        "storm" => runtime().block_on(async move { spawn(tasks::storm(end)).await.unwrap() }),
        "timeouts" => runtime().block_on(async move { spawn(tasks::timeouts(end)).await.unwrap() }),
        "select" => runtime().block_on(async move { spawn(tasks::select(end)).await.unwrap() }),
        "handoff" => runtime().block_on(async move { spawn(tasks::handoff(end)).await.unwrap() }),
        "joinset" => runtime().block_on(async move { spawn(tasks::joinset(end)).await.unwrap() }),
        "block" => runtime().block_on(async move { spawn(tasks::block(end)).await.unwrap() }),
        "runtimes" => runtimes::runtimes(end),
        "local" => runtimes::local(end),
        "threads" => runtimes::threads(end),
        "small64" => runtimes::small_stacks(end, 64),
        "hog" => runtime().block_on(async move { spawn(system::hog(end)).await.unwrap() }),
        "sockets" => {
            runtime().block_on(async move { spawn(system::sockets(end, 1000)).await.unwrap() })
        }
        "processes" => {
            runtime().block_on(async move { spawn(system::processes(end)).await.unwrap() })
        }
        "signals" => runtime().block_on(async move { spawn(system::signals(end)).await.unwrap() }),
        "drops" => system::deep_drop(end),
        "exit" => until(time, || std::process::exit(9)),
        "abort" => until(time, || std::process::abort()),
        other => panic!("no case {other}"),
    }
    println!("{case} took {:?}, progress {PROGRESS:?}, faults {FAULTS:?}", began.elapsed());
    if let Some(session) = session {
        drop(session.finish("end").report().to_string());
    }
    std::process::exit(i32::from(FAULTS.load(SeqCst) > 0));
}
