//! The program that takes part.

#[path = "../faults/work.rs"]
#[allow(dead_code, reason = "shared with the tests of faults, which use all of it")]
mod work;

use andweorc_core::thread::ledger;
use andweorc_core::{clock, enabled};
use andweorc_tokio::remote::{Stamp, received};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tokio::task::JoinSet;
use work::{spin, work_until};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "COORDINATOR_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    match std::env::var(PROGRAM).as_deref() {
        Ok("many_requests") => many_requests(),
        Ok(_) => in_main(),
        Err(_) => return,
    }
    exit(DONE);
}

/// So many requests are in flight in [`many_requests`].
pub(crate) const REQUESTS: usize = 1000;

/// Works until its profile has its end, and says by how much the program is delayed after that.
#[andweorc::main(worker_threads = 2)]
async fn in_main() {
    work_until(|run| run.end.is_some()).await;
    tell_growth().await;
}

/// Works as [`in_main`] does, with requests in flight all the time that get messages of other
/// services and of the world outside. Each is answered when the profile has its end.
#[andweorc::main(worker_threads = 2)]
async fn many_requests() {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut requests = JoinSet::new();
    for request in 0..REQUESTS {
        let is_over = Arc::clone(&is_over);
        requests.spawn(andweorc::Profile::profiled(
            async move {
                // Of the first experiment.
                let stamp = Stamp::new(1, request as u64 * 100_000).expect("it is in bounds");
                while !is_over.load(SeqCst) {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    received((request % 2 == 0).then_some(stamp)).await;
                }
            },
            "request",
        ));
    }
    work_until(|run| run.end.is_some()).await;
    is_over.store(true, SeqCst);
    let mut answered = 0;
    while requests.join_next().await.is_some_and(|request| request.is_ok()) {
        answered += 1;
    }
    println!("answered={answered}");
    tell_growth().await;
}

/// Says by how much the program is delayed when the session is over.
async fn tell_growth() {
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
