//! Wakes from every kind of thread: how much later than it was sent a message is received.
//!
//! A message may be late by what the experiment means: in half speed the wait for it, since the one
//! before, is stretched by at most as much again. What is later than that is printed as
//! `beyond_ms`.

use super::{arg, current_thread, multi_thread, report, session, works};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

type Send = UnboundedSender<Instant>;

pub fn main() {
    andweorc::subscriber().init();
    let _session = session();
    let kind: String = arg(0, String::new());
    let end = Instant::now() + Duration::from_secs(arg(1, 4));
    let runtime = multi_thread(2);
    let (send, mut receive) = unbounded_channel::<Instant>();
    let [worst, latest, count] = [(); 3].map(|()| Arc::new(AtomicI64::new(0)));
    {
        let _context = runtime.enter();
        andweorc::spawn(works());
        let (worst, latest, count) = (worst.clone(), latest.clone(), count.clone());
        andweorc::spawn(async move {
            let mut waits = Instant::now();
            while let Some(sent) = receive.recv().await {
                let (late, waited) = (sent.elapsed(), sent.saturating_duration_since(waits));
                let beyond = late.as_micros() as i64 - waited.as_micros() as i64;
                worst.fetch_max(beyond, SeqCst);
                latest.fetch_max(late.as_micros() as i64, SeqCst);
                count.fetch_add(1, SeqCst);
                waits = Instant::now();
            }
        });
    }
    match kind.as_str() {
        "plain" => plain(&send, end),
        "drove" => drove(&send, end),
        "runtime" => other_runtime(&send, end),
        "unwrapped" => unwrapped(&runtime, send, end),
        "pool" => pool(&runtime, &send, end),
        "signal" => signal(&send, end),
        "drop" => runtime_drop(&send, end),
        "teardown" => teardown(&send, end),
        other => panic!("no kind {other}"),
    }
    std::thread::sleep(Duration::from_millis(300));
    let [worst, latest] = [worst, latest].map(|us| us.load(SeqCst) as f64 / 1e3);
    let count = count.load(SeqCst);
    report(format!("beyond_ms={worst} latest_ms={latest} received={count}"))
}

fn send_now(send: &Send) {
    send.send(Instant::now()).expect("the task receives");
}

const PAUSE: Duration = Duration::from_millis(7);

fn plain(send: &Send, end: Instant) {
    while Instant::now() < end {
        std::thread::sleep(PAUSE);
        send_now(send);
    }
}

/// A thread that drove a runtime once.
fn drove(send: &Send, end: Instant) {
    let small = current_thread();
    small.block_on(async { tokio::time::sleep(Duration::from_millis(2)).await });
    plain(send, end);
}

/// The driver of another runtime.
fn other_runtime(send: &Send, end: Instant) {
    let small = current_thread();
    small.block_on(async {
        while Instant::now() < end {
            tokio::time::sleep(PAUSE).await;
            send_now(send);
        }
    });
}

/// A task of the same runtime that nobody wrapped, in a poll that takes its time.
fn unwrapped(runtime: &Runtime, send: Send, end: Instant) {
    let sends = runtime.spawn(async move {
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(1)).await;
            for _ in 0..3 {
                std::thread::sleep(PAUSE);
                send_now(&send);
            }
        }
    });
    runtime.block_on(sends).expect("it sends");
}

/// The blocking pool.
fn pool(runtime: &Runtime, send: &Send, end: Instant) {
    while Instant::now() < end {
        let send = send.clone();
        let sends = runtime.spawn_blocking(move || {
            std::thread::sleep(PAUSE);
            send_now(&send);
        });
        runtime.block_on(sends).expect("it sends");
    }
}

/// The thread of signal-hook.
fn signal(send: &Send, end: Instant) {
    let mut signals = signal_hook::iterator::Signals::new([libc::SIGUSR1]).expect("signals");
    let (handle, send) = (signals.handle(), send.clone());
    let sends = std::thread::spawn(move || signals.forever().for_each(|_| send_now(&send)));
    while Instant::now() < end {
        std::thread::sleep(PAUSE);
        signal_hook::low_level::raise(libc::SIGUSR1).expect("a signal");
    }
    handle.close();
    sends.join().expect("it sends");
}

/// Sends when it is dropped.
struct Sends(Send);

impl Drop for Sends {
    fn drop(&mut self) {
        send_now(&self.0);
    }
}

/// The drop of a runtime, which drops what its tasks hold.
fn runtime_drop(send: &Send, end: Instant) {
    while Instant::now() < end {
        let small = current_thread();
        let sends = Sends(send.clone());
        small.block_on(async move {
            tokio::spawn(async move {
                let _sends = sends;
                std::future::pending::<()>().await
            });
            tokio::time::sleep(PAUSE).await;
        });
        drop(small);
    }
}

thread_local! {
    static LAST: RefCell<Option<Sends>> = const { RefCell::new(None) };
}

/// A thread's last destructors.
fn teardown(send: &Send, end: Instant) {
    while Instant::now() < end {
        let sends = Sends(send.clone());
        let thread = std::thread::spawn(move || {
            LAST.set(Some(sends));
            let small = current_thread();
            small.block_on(async { tokio::time::sleep(PAUSE).await });
        });
        thread.join().expect("it ends");
    }
}
