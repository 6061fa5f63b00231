//! The shop: each order has a part `other`, which two processors have time for, and a part `slow`
//! under the one lock, by which all orders are limited.

use crate::trace;
use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::Mutex;

/// So many orders are under way at a time.
pub const CLIENTS: usize = 4;

/// Steps of work that take about a microsecond.
const STEPS: u64 = 400;

#[derive(Debug, Default)]
pub struct Shop {
    stock: Mutex<u64>,
    // A count that publishes nothing else.
    orders: AtomicU64,
}

impl Shop {
    /// The whole of an order.
    #[allow(dead_code, reason = "some loads do its parts in other places")]
    pub async fn order(&self) {
        // A task of its own: tokio keeps the next owner of the lock for the worker that gave it
        // back, and that owner would wait for `other`, which would then matter.
        if andweorc::spawn(async { other() }).await.is_err() {
            // The runtime ends, and this task with it.
            std::future::pending::<()>().await;
        }
        self.take().await;
        self.done();
    }

    /// The part under the lock.
    pub async fn take(&self) {
        let mut stock = self.stock.lock().await;
        *stock = slow();
    }

    /// The end of an order.
    pub fn done(&self) {
        andweorc::progress!("order");
        self.orders.fetch_add(1, Relaxed);
    }

    /// How many there were.
    pub fn orders(&self) -> u64 {
        self.orders.load(Relaxed)
    }
}

#[tracing::instrument]
fn slow() -> u64 {
    static LENGTH: LazyLock<u64> = LazyLock::new(|| length("SLOW", 600));
    work(*LENGTH)
}

#[tracing::instrument]
pub fn other() -> u64 {
    trace::event();
    // Something for the allocator.
    let lines: Vec<String> = (0..20).map(|line| format!("line {line}")).collect();
    static LENGTH: LazyLock<u64> = LazyLock::new(|| length("OTHER", 100));
    work(*LENGTH) ^ black_box(lines).len() as u64
}

/// How long a part takes, in microseconds: as the environment says, to see what it really costs.
fn length(part: &str, usual: u64) -> u64 {
    std::env::var(part).map_or(usual, |length| length.parse().expect("a number of microseconds"))
}

/// Work that is counted in steps, so that no time in which others had the processor is taken for
/// it.
fn work(microseconds: u64) -> u64 {
    let mut x = 0x9e37_79b9_7f4a_7c15 ^ microseconds;
    for _ in 0..microseconds * STEPS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        black_box(&x);
    }
    x
}
