//! A service with `#[andweorc::main]`: works for so many seconds.

use super::{arg, work};
use std::time::{Duration, Instant};

#[andweorc::main(worker_threads = 2)]
pub async fn main() {
    andweorc::subscriber().init();
    let end = Instant::now() + Duration::from_secs(arg(0, 1000));
    let works = andweorc::spawn(async move {
        while Instant::now() < end {
            work().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            andweorc::progress!("done");
        }
    });
    works.await.expect("it works");
    println!("main returns");
}
