//! A small shop on a TCP port, a byte in for an order, a byte out; and its load.
//!
//! `serve PORT [slower]`, where the slower one works 9/8 as long on its stock; `load PORT
//! [SECONDS]`: clients that wait for their answers, and with SECONDS say at the end how many came
//! per second.
//!
//! An order's work is nearly all done with the stock locked, and more clients wait for the lock
//! than it takes to keep it held. So the lock bounds the throughput; and as handing it over takes
//! its time too, the slower shop sells a tenth less.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tracing::{Instrument, info_span};
use tracing_subscriber::prelude::*;

/// About 1 us of work.
const ROUNDS: u64 = if cfg!(debug_assertions) { 80 } else { 800 };

const CLIENTS: usize = 16;

/// Until the load is what it will be.
const WARM_UP: Duration = Duration::from_secs(1);

#[andweorc::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let port: u16 = arguments[1].parse().unwrap();
    if arguments[0] == "load" {
        return load(port, arguments.get(2).map(|seconds| seconds.parse().unwrap()));
    }
    let rounds = match arguments.get(2) {
        Some(_) => ROUNDS * 9 / 8,
        None => ROUNDS,
    };
    tracing_subscriber::registry().with(andweorc::layer()).init();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    println!("the shop is open");
    let stock = Arc::new(Mutex::new(1));
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        let stock = stock.clone();
        andweorc::spawn(async move {
            socket.set_nodelay(true).unwrap();
            while let Ok(1..) = socket.read(&mut [0]).await {
                order(&stock, rounds).instrument(info_span!("order")).await;
                if socket.write_all(b"!").await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn order(stock: &Mutex<u64>, rounds: u64) {
    info_span!("price").in_scope(|| work(20 * ROUNDS));
    let mut stock = stock.lock().await;
    async { *stock ^= work(300 * rounds) }.instrument(info_span!("stock")).await;
    drop(stock);
    tokio::time::sleep(Duration::from_millis(1)).instrument(info_span!("pay")).await;
    andweorc::progress!("sold");
}

fn work(rounds: u64) -> u64 {
    // Marsaglia's xorshift.
    (0..rounds).fold(1, |state, _| {
        let state = black_box(state ^ state << 13);
        state ^ state >> 7
    })
}

/// Connects as soon as the shop is open.
fn connect(port: u16) -> TcpStream {
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(socket) => return socket,
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn load(port: u16, seconds: Option<f64>) {
    static ANSWERS: AtomicU64 = AtomicU64::new(0);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            thread::spawn(move || {
                let mut socket = connect(port);
                socket.set_nodelay(true).unwrap();
                // Until the shop closes, or the load is stopped.
                while socket.write_all(b"?").and_then(|()| socket.read_exact(&mut [0])).is_ok() {
                    ANSWERS.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    if let Some(seconds) = seconds {
        thread::sleep(WARM_UP);
        let (begin, before) = (Instant::now(), ANSWERS.load(Ordering::SeqCst));
        thread::sleep(Duration::from_secs_f64(seconds));
        let answers = ANSWERS.load(Ordering::SeqCst) - before;
        println!("{}", answers as f64 / begin.elapsed().as_secs_f64());
        return;
    }
    for client in clients {
        client.join().unwrap();
    }
}
