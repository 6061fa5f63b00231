//! A task that nobody wrapped waits for something, then takes what surely lies in a tokio channel.
//! How often it is told that nothing is there is printed.

use super::{arg, multi_thread, report, session, works};
use futures_util::FutureExt;
use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

/// Whether something is there that surely is.
fn takes(receive: &mut UnboundedReceiver<u64>) -> bool {
    receive.recv().now_or_never().flatten().is_some()
}

pub fn main() {
    andweorc::subscriber().init();
    let _session = session();
    let kind: String = arg(0, String::new());
    let end = Instant::now() + Duration::from_secs(arg(1, 3));
    let runtime = multi_thread(2);
    let (there, missing) = runtime.block_on(async move {
        tokio::spawn(works());
        let task = match kind.as_str() {
            "atomic_waker" => tokio::spawn(atomic_waker(end)),
            "unconstrained" => tokio::spawn(unconstrained(end)),
            "readable" => tokio::spawn(readable(end)),
            "join" => tokio::spawn(join(end)),
            other => panic!("no kind {other}"),
        };
        task.await.expect("it takes")
    });
    report(format!("there={there} missing={missing}"))
}

/// Waits by an `AtomicWaker`: flume, async-channel, event-listener and futures' channels are made
/// of these. A plain thread puts a message into the channel, then wakes.
async fn atomic_waker(end: Instant) -> (u64, u64) {
    let (waker, sent) = (Arc::new(AtomicWaker::new()), Arc::new(AtomicU64::new(0)));
    let (send, mut receive) = unbounded_channel();
    let (wakes, sends) = (Arc::clone(&waker), Arc::clone(&sent));
    std::thread::spawn(move || {
        for n in 1.. {
            std::thread::sleep(Duration::from_millis(7));
            if send.send(n).is_err() {
                break;
            }
            sends.store(n, SeqCst);
            wakes.wake();
        }
    });
    let (mut there, mut missing) = (0, 0);
    while Instant::now() < end {
        poll_fn(|context| {
            waker.register(context.waker());
            if sent.load(SeqCst) > there + missing { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        if takes(&mut receive) {
            there += 1;
        } else {
            missing += 1;
            receive.recv().await;
        }
    }
    (there, missing)
}

/// Takes what it has sent itself. Returns one of the two counts.
fn own(there: &mut u64, missing: &mut u64) {
    let (send, mut receive) = unbounded_channel();
    send.send(1).expect("it is open");
    *(if takes(&mut receive) { there } else { missing }) += 1;
}

/// A timer that asks for no budget.
async fn unconstrained(end: Instant) -> (u64, u64) {
    let (mut there, mut missing) = (0, 0);
    while Instant::now() < end {
        tokio::task::unconstrained(sleep(Duration::from_millis(5))).await;
        own(&mut there, &mut missing);
    }
    (there, missing)
}

/// A socket that is readable, which asks for no budget either.
async fn readable(end: Instant) -> (u64, u64) {
    let (mut here, mut other) = pair().await;
    std::thread::spawn(move || {
        while std::io::Write::write_all(&mut other, &[1]).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let (mut there, mut missing) = (0, 0);
    while Instant::now() < end {
        here.readable().await.expect("it is open");
        own(&mut there, &mut missing);
        here.try_read(&mut [0; 8]).ok();
    }
    here.shutdown().await.ok();
    (there, missing)
}

/// A connection, of which a plain thread has the other end.
async fn pair() -> (tokio::net::TcpStream, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let accepts = std::thread::spawn(move || listener.accept().expect("a connection").0);
    let here = tokio::net::TcpStream::connect(at).await.expect("a connection");
    (here, accepts.join().expect("it accepts"))
}

/// Waits for a socket and for a flag that a plain thread raises now and then.
async fn join(end: Instant) -> (u64, u64) {
    let (mut here, mut other) = pair().await;
    std::thread::spawn(move || {
        while std::io::Write::write_all(&mut other, &[1]).is_ok() {
            std::thread::sleep(Duration::from_micros(700));
        }
    });
    let (waker, raised) = (Arc::new(AtomicWaker::new()), Arc::new(AtomicU64::new(0)));
    let (wakes, raises) = (Arc::clone(&waker), Arc::clone(&raised));
    std::thread::spawn(move || {
        while Instant::now() < end + Duration::from_millis(100) {
            raises.store(1, SeqCst);
            wakes.wake();
            std::thread::sleep(Duration::from_micros(300));
        }
    });
    let (mut there, mut missing) = (0, 0);
    while Instant::now() < end {
        let flag = poll_fn(|context| {
            waker.register(context.waker());
            if raised.swap(0, SeqCst) == 1 { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            biased;
            _ = here.read_u8() => {}
            () = flag => own(&mut there, &mut missing),
        }
    }
    here.shutdown().await.ok();
    (there, missing)
}
