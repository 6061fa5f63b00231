//! Many queries at once over one connection, in a `FuturesUnordered`: futures-rs issue 2526, which scylla-rust-driver ran into (its issue 362).
//!
//! A query takes its turn by an async mutex, as a request takes its place in a connection, and its row is parsed. Up to futures-util
//! 0.3.17 a `FuturesUnordered` yields after it has polled as many futures as it holds. tokio lets a task do 128 operations a poll; all that is
//! polled after that returns `Pending` and is woken at once. So each 128 queries cost a poll of all the others. From 0.3.19 on it yields
//! after 32 polls.

use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::Arc;
use tokio::sync::Mutex;
use tracing::{info_span, instrument};
use tracing_subscriber::prelude::*;

#[path = "../rate.rs"]
mod rate;

/// Queries at once: the report has 10 000 and more.
const QUERIES: u64 = 10_000;

/// A frame of the request is encoded, its place on the connection waited for.
#[instrument(skip_all)]
async fn query(connection: Arc<Mutex<u64>>, key: u64) -> u64 {
    let mut sent = connection.lock().await;
    *sent += 1;
    key
}

#[andweorc::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    tracing_subscriber::registry().with(andweorc::layer()).init();
    rate::measure();
    andweorc::spawn(bulk()).await.expect("never ends");
}

/// Bulk jobs, one after the other.
async fn bulk() {
    let connection = Arc::new(Mutex::new(0));
    loop {
        let mut queries = FuturesUnordered::new();
        for key in 0..QUERIES {
            info_span!("encode").in_scope(|| rate::work(1));
            queries.push(query(connection.clone(), key));
        }
        while let Some(row) = queries.next().await {
            info_span!("parse").in_scope(|| std::hint::black_box(rate::work(1) ^ row));
            rate::done();
        }
    }
}
