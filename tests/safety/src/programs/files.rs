//! 400 threads of the blocking pool at once: how many files the process has open beyond those of
//! one thread is printed.

use super::{multi_thread, report, session};
use std::time::Duration;

fn open() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

/// The process may have so many files.
const LIMIT: u64 = 512;

pub fn main() {
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: a pointer to a limit that lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
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
