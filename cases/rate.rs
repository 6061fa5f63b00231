//! Measurement that the programs of the case studies share: units of work are counted, and their
//! rate is printed when the time is up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Let the program warm up before it is measured.
const WARM_UP: Duration = Duration::from_secs(1);

// Relaxed: nothing but the number is read.
static DONE: AtomicU64 = AtomicU64::new(0);

/// A unit of work is done.
pub fn done() {
    DONE.fetch_add(1, Ordering::Relaxed);
    #[cfg(feature = "andweorc")]
    andweorc::progress!("done");
}

/// Prints the rate per second after as many seconds as the first argument says, and ends the
/// program; on a thread of its own, for it must not starve with what it measures. Without an
/// argument the program goes on until it is stopped.
pub fn measure() {
    let Some(seconds) = std::env::args().nth(1) else { return };
    let seconds = seconds.parse().expect("usage: PROGRAM [SECONDS]");
    std::thread::spawn(move || {
        std::thread::sleep(WARM_UP);
        let (start, before) = (Instant::now(), DONE.load(Ordering::Relaxed));
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let count = DONE.load(Ordering::Relaxed) - before;
        println!("{:.2}", count as f64 / start.elapsed().as_secs_f64());
        std::process::exit(0);
    });
}

/// Computes for about this many microseconds on the machine of the study: counted rounds, for a
/// clock would count what others take too.
#[allow(dead_code, reason = "the nagle study has work of another kind")]
pub fn work(us: u64) -> u64 {
    let mut hash = us;
    for round in 0..us * ROUNDS_PER_US {
        hash = std::hint::black_box((hash ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
    hash
}

const ROUNDS_PER_US: u64 = 500;
