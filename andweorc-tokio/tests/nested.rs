//! Profiled futures inside profiled tasks: each wait is stretched once, by what D grew during it.

use andweorc_core::clock;
use andweorc_core::thread::{LEDGER, enable};
use andweorc_core::time::Speedup;
use andweorc_tokio::{Profile, spawn};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

fn sleep(ms: u64) -> impl Future<Output = ()> {
    tokio::time::sleep(Duration::from_millis(ms)).profiled("part")
}

/// How long it takes in a task of its own, in ms: the least of some tries, since a busy machine only makes it longer.
async fn took<F: Future<Output = ()> + Send + 'static>(future: impl Fn() -> F) -> u128 {
    let mut least = u128::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        spawn(future()).await.unwrap();
        least = least.min(start.elapsed().as_millis());
    }
    least
}

/// A thread is inside the target all the time at 50 %, so that the virtual clock goes half as fast as the real one.
#[test]
fn a_wait_inside_a_profiled_task_is_stretched_once() {
    enable();
    LEDGER.begin(Speedup::new(0.5).expect("a fraction"), clock::now());
    let inside = LEDGER.open(clock::now()).expect("accounts are left");
    LEDGER.enter(inside, clock::now());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let one = took(|| async { sleep(100).await }).await;
        assert!((180..300).contains(&one), "{one} ms instead of 200");
        let both = took(|| async {
            tokio::join!(sleep(50), sleep(150));
        });
        let both = both.await;
        assert!((280..400).contains(&both), "{both} ms instead of 300");
    });
    LEDGER.end(clock::now());
}
