//! The program takes SIGPROF or SIGURG itself after the session has begun, and gives it back later.
//! How many of these signals it saw that it did not send is printed.

use super::{arg, multi_thread, report, session, works};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

static SEEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn seen(_: i32) {
    SEEN.fetch_add(1, SeqCst);
}

pub fn main() {
    andweorc::subscriber().init();
    let _session = session();
    let signal = if arg(0, String::new()) == "urg" { libc::SIGURG } else { libc::SIGPROF };
    multi_thread(2).block_on(async move {
        andweorc::spawn(works());
        tokio::time::sleep(Duration::from_millis(1800)).await;
        // SAFETY: the handler is async-signal-safe.
        unsafe { libc::signal(signal, seen as *const () as usize) };
        tokio::time::sleep(Duration::from_secs(1)).await;
        let count = SEEN.load(SeqCst);
        // SAFETY: takes plain numbers.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        tokio::time::sleep(Duration::from_millis(700)).await;
        report(format!("seen={count}"))
    })
}
