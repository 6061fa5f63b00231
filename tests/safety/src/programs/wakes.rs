//! Wakes that nobody may lose or keep: from a plain thread that once drove a runtime, from a
//! runtime that shares its builder with another, from a runtime for CPU work in the middle of a
//! poll.

use super::{arg, current_thread, multi_thread, report, session, work, works};
use andweorc::runtime::BuilderExt;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longer than anything here may take.
const LOST: Duration = Duration::from_secs(8);

fn seconds() -> Duration {
    Duration::from_secs(arg(0, 3))
}

/// The main thread has a small current-thread runtime that it uses now and then, and sends messages
/// to a task from plain code.
pub fn sync_sender() {
    andweorc::subscriber().init();
    let _session = session();
    let (big, small) = (multi_thread(2), current_thread());
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel::<Instant>();
    let (back, answers) = mpsc::channel();
    let _context = big.enter();
    andweorc::spawn(works());
    andweorc::spawn(async move {
        while let Some(sent) = receive.recv().await {
            back.send(sent.elapsed()).expect("main waits");
        }
    });
    small.block_on(async { tokio::time::sleep(Duration::from_millis(2)).await });
    let (began, mut worst) = (Instant::now(), Duration::ZERO);
    while began.elapsed() < seconds() {
        std::thread::sleep(Duration::from_millis(7));
        send.send(Instant::now()).expect("the task receives");
        worst = worst.max(answers.recv_timeout(LOST).unwrap_or(LOST));
        if worst >= LOST {
            break;
        }
    }
    report(format!("worst_ms={}", worst.as_secs_f64() * 1e3))
}

/// One builder, two current-thread runtimes. The first is used for a moment, and kept; the second
/// does the work.
pub fn two_runtimes() {
    andweorc::subscriber().init();
    let _session = session();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().enable_profiling();
    let (first, second) = (builder.build().expect("runtime"), builder.build().expect("runtime"));
    first.block_on(async { tokio::time::sleep(Duration::from_millis(2)).await });
    let server = std::thread::spawn(move || {
        second.block_on(async {
            andweorc::spawn(works());
            let (began, mut worst) = (Instant::now(), Duration::ZERO);
            while began.elapsed() < seconds() && worst < LOST {
                let sleeps = andweorc::spawn(async {
                    let began = Instant::now();
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    began.elapsed()
                });
                let slept = tokio::time::timeout(LOST, sleeps).await;
                worst = worst.max(slept.map_or(LOST, |slept| slept.expect("it sleeps")));
            }
            worst
        })
    });
    let worst = server.join().expect("it measures");
    drop(first);
    report(format!("worst_ms={}", worst.as_secs_f64() * 1e3))
}

/// A runtime for CPU work (one worker, tasks that nobody wrapped, long polls) and one for I/O. The
/// worker sends results while its poll goes on.
pub fn cpu_runtime() {
    andweorc::subscriber().init();
    let _session = session();
    let (io, cpu) = (multi_thread(2), multi_thread(1));
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel::<Instant>();
    let end = Instant::now() + seconds();
    let taken = {
        let _context = io.enter();
        andweorc::spawn(async {
            loop {
                work().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                andweorc::progress!("done");
            }
        });
        andweorc::spawn(async move {
            let mut worst = Duration::ZERO;
            while let Some(at) = receive.recv().await {
                worst = worst.max(at.elapsed());
            }
            worst
        })
    };
    let works = async move {
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(3)).await;
            // One poll that has a result each 40 ms. Its work is a sleep, so that the case is
            // light.
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(40));
                send.send(Instant::now()).expect("the task receives");
            }
        }
    };
    cpu.block_on(async move { tokio::spawn(works).await.expect("it works") });
    let worst = io.block_on(taken).expect("it receives");
    report(format!("worst_ms={}", worst.as_secs_f64() * 1e3))
}
