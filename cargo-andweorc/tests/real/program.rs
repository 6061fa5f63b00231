//! A small shop on a TCP port, a byte in for an order, a byte out; and its load.
//!
//! `serve PORT [slower]`, where slower orders take 1/0.9 of the work; `load PORT`: eight clients that wait for their answers.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tracing::{Instrument, info_span};
use tracing_subscriber::prelude::*;

/// About 1 us of work.
const ROUNDS: u64 = if cfg!(debug_assertions) { 80 } else { 800 };

#[andweorc::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let port: u16 = arguments[1].parse().unwrap();
    if arguments[0] == "load" {
        return load(port);
    }
    let rounds = match arguments.get(2) {
        Some(_) => ROUNDS * 10 / 9,
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
    info_span!("price").in_scope(|| work(100 * rounds));
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

fn load(port: u16) {
    let clients: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
                socket.set_nodelay(true).unwrap();
                // Until the shop closes, or the load is stopped.
                while socket.write_all(b"?").and_then(|()| socket.read_exact(&mut [0])).is_ok() {}
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
}
