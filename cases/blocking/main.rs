//! Many tasks that each hand small pieces of work to `spawn_blocking`: tokio issue 2528, which
//! restate (its issue 562) ran into with one piece for each storage request. The shape is that of
//! tokio's pull request 7757.
//!
//! Up to tokio 1.51 all share one mutex around the queue of the blocking pool. 1.52.0 has a queue
//! of 16 shards (taken back in 1.52.1, since it could hang).

use tracing::{info_span, instrument};
use tracing_subscriber::prelude::*;

#[path = "../rate.rs"]
mod rate;

const CLIENTS: usize = 8;
const PIECES: usize = 16;

#[andweorc::main(flavor = "multi_thread", worker_threads = 8)]
async fn main() {
    tracing_subscriber::registry().with(andweorc::layer()).init();
    rate::measure();
    let clients: Vec<_> = (0..CLIENTS).map(|_| andweorc::spawn(client())).collect();
    for client in clients {
        client.await.expect("never ends");
    }
}

async fn client() {
    loop {
        batch().await;
        rate::done();
    }
}

/// Reads that are started together, as by a storage engine.
#[instrument]
async fn batch() {
    info_span!("plan").in_scope(|| rate::work(5));
    let reads = info_span!("offload").in_scope(|| {
        (0..PIECES)
            .map(|_| andweorc::task::Builder::new().name("read").spawn_blocking(read))
            .collect::<Vec<_>>()
    });
    for read in reads {
        read.await.expect("does not panic");
    }
}

fn read() -> u64 {
    rate::work(1)
}
