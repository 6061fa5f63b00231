//! A client that keeps many queries going over one connection, in a `FuturesUnordered`: futures-rs
//! issue 2526, which scylla-rust-driver ran into (its issue 362: "scalability issue visible when
//! the number of concurrent requests > 128").
//!
//! A query takes its turn by an async mutex, as a request takes its place on a connection. tokio
//! lets a task do 128 such operations a poll; all that is polled after that returns `Pending` and
//! is woken at once. Up to futures-util 0.3.17 a `FuturesUnordered` goes on until it has polled as
//! many futures as it holds, so each 128 queries cost a vain poll of all the others. 0.3.19 stops
//! after 32.

use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Mutex;
use tracing::{info_span, instrument};
use tracing_subscriber::prelude::*;

#[path = "../rate.rs"]
mod rate;

/// Queries at once: the report has 10 000 and more.
const QUERIES: u64 = 10_000;
/// Rows that are looked at together.
const ROWS: usize = 100;
const ENCODE_US: u64 = 2;
const PARSE_US: u64 = 2;

type Connection = Arc<Mutex<u64>>;

#[andweorc::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    tracing_subscriber::registry().with(andweorc::layer()).init();
    rate::measure();
    andweorc::spawn(client()).await.expect("never ends");
}

async fn client() {
    let connection = Connection::default();
    let mut queries = FuturesUnordered::new();
    queries.extend((0..QUERIES).map(|key| query(connection.clone(), key)));
    loop {
        let mut rows = fetch(&mut queries).await;
        info_span!("parse")
            .in_scope(|| rows.iter_mut().for_each(|row| *row ^= rate::work(PARSE_US)));
        info_span!("encode")
            .in_scope(|| rows.iter_mut().for_each(|row| *row ^= rate::work(ENCODE_US)));
        for row in rows {
            queries.push(query(connection.clone(), row));
            rate::done();
        }
    }
}

/// The next rows.
#[instrument(skip_all)]
async fn fetch<F: Future<Output = u64>>(queries: &mut FuturesUnordered<F>) -> Vec<u64> {
    queries.take(ROWS).collect().await
}

async fn query(connection: Connection, key: u64) -> u64 {
    let mut sent = connection.lock().await;
    *sent += 1;
    key
}
