//! A small service under a closed load of its own, whose bottleneck is known. `../run.sh` puts it
//! together with one combination of libraries: `load.rs`, `trace.rs` and `allocator.rs` are one
//! file each of the folders of that name.

mod allocator;
#[allow(dead_code, reason = "not every load comes by HTTP")]
mod http;
mod load;
mod shop;
mod trace;

use shop::Shop;
use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs for `SECS`, and prints how many orders there were a second.
#[andweorc::main]
async fn main() {
    let _kept = trace::init();
    let shop = Arc::new(Shop::default());
    load::start(&shop).await;
    let seconds = env::var("SECS").map_or(3, |seconds| seconds.parse().expect("SECS is a number"));
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    println!("{:.0} orders/s", shop.orders() as f64 / began.elapsed().as_secs_f64());
}
