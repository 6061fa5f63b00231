//! 400 threads of the blocking pool at once: how many files the process has open beyond those of one thread is printed.

use super::{multi_thread, report, session};
use std::time::Duration;

fn open() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

pub fn main() {
    andweorc::subscriber().init();
    let _session = session();
    let most = multi_thread(2).block_on(async {
        let mut most = 0;
        for _ in 0..3 {
            let block = || {
                andweorc::progress!("block");
                let span = tracing::info_span!("block");
                let _entered = span.enter();
                std::thread::sleep(Duration::from_millis(800));
            };
            let blocks: Vec<_> = (0..400).map(|_| andweorc::spawn_blocking(block)).collect();
            tokio::time::sleep(Duration::from_millis(600)).await;
            most = most.max(open());
            for block in blocks {
                block.await.expect("it blocks");
            }
        }
        most
    });
    report(format!("open={most}"))
}
