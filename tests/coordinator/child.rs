//! The program that takes part.

#[path = "../faults/work.rs"]
#[allow(dead_code, reason = "shared with the tests of faults, which use all of it")]
mod work;

use andweorc_core::thread::ledger;
use andweorc_core::{clock, enabled};
use std::process::exit;
use std::time::Duration;
use work::{spin, work_until};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "COORDINATOR_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    if std::env::var(PROGRAM).is_ok() {
        in_main();
        exit(DONE);
    }
}

/// Works until its profile has its end, and says by how much the program is delayed after that.
#[andweorc::main(worker_threads = 2)]
async fn in_main() {
    work_until(|run| run.end.is_some()).await;
    while enabled() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let owed = || ledger().global_delay(clock::now());
    let before = owed();
    let task = andweorc::task::Builder::new().name("target").spawn(async {
        spin(Duration::from_millis(50));
    });
    task.await.expect("it does not panic");
    println!("growth_ns={}", (owed() - before).0);
}
