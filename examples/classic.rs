//! Two plain threads that meet after every item: `slow` works 3 ms on it, `fast` 1.5 ms. Only the
//! line in `slow` matters.
//!
//! ```sh
//! ANDWEORC_ENABLED=1 cargo run --release --example classic
//! cargo run --release --example classic -- --truth 25     # slow really 25 % faster
//! ```

use std::hint::{black_box, spin_loop};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

static SLOW: AtomicU64 = AtomicU64::new(0);
static FAST: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("classic: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let profiling = andweorc::init()?;
    let truth = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => None,
        [flag, percent] if flag == "--truth" => Some(percent.parse::<u64>()?),
        _ => return Err("usage: classic [--truth PERCENT]".into()),
    };
    let per_us = calibrate();
    let (slow_rounds, fast_rounds) = (3000 * per_us, 1500 * per_us);
    SLOW.store(slow_rounds, Ordering::Relaxed);
    FAST.store(fast_rounds, Ordering::Relaxed);

    let meeting = [AtomicU64::new(0), AtomicU64::new(0)];
    std::thread::scope(|scope| {
        scope.spawn(|| thread(&meeting[0], &meeting[1], slow));
        scope.spawn(|| thread(&meeting[1], &meeting[0], fast));
        let result = match truth {
            Some(percent) => {
                measure(percent, slow_rounds);
                Ok(())
            }
            None if profiling => andweorc::run_experiments("item").map(drop),
            None => {
                println!("nothing to do: set ANDWEORC_ENABLED=1, or give --truth PERCENT");
                Ok(())
            }
        };
        STOP.store(true, Ordering::SeqCst);
        result
    })?;
    Ok(())
}

/// Works on one item after the other, and waits for the other thread after each.
fn thread(mine: &AtomicU64, other: &AtomicU64, work: fn()) {
    if let Err(error) = andweorc::start_profiling() {
        eprintln!("{error}");
    }
    while !STOP.load(Ordering::SeqCst) {
        work();
        if mine.fetch_add(1, Ordering::SeqCst) < other.load(Ordering::SeqCst) {
            DONE.fetch_add(1, Ordering::Relaxed);
            andweorc::progress!("item");
        }
        while other.load(Ordering::SeqCst) < mine.load(Ordering::SeqCst)
            && !STOP.load(Ordering::SeqCst)
        {
            spin_loop();
        }
    }
}

#[inline(never)]
fn slow() {
    let mut x = 1u64;
    for i in 0..SLOW.load(Ordering::Relaxed) {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i));
    }
}

#[inline(never)]
fn fast() {
    let mut x = 1u64;
    for i in 0..FAST.load(Ordering::Relaxed) {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i));
    }
}

/// Rounds of the loops in a microsecond, on a machine that is not disturbed: the best of many.
fn calibrate() -> u64 {
    SLOW.store(100_000, Ordering::Relaxed);
    let best = (0..100).map(|_| {
        let start = Instant::now();
        slow();
        start.elapsed().as_nanos() as u64
    });
    100_000_000 / best.min().unwrap_or(1).max(1)
}

/// Alternates the cost of `slow` and prints what that does to the throughput.
fn measure(percent: u64, rounds: u64) {
    let rate = |rounds: u64| {
        SLOW.store(rounds, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(50));
        let (start, before) = (Instant::now(), DONE.load(Ordering::Relaxed));
        std::thread::sleep(Duration::from_millis(400));
        (DONE.load(Ordering::Relaxed) - before) as f64 / start.elapsed().as_secs_f64()
    };
    let ratios: Vec<f64> =
        (0..8).map(|_| rate(rounds * (100 - percent.min(100)) / 100) / rate(rounds)).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    println!("slow() really {percent} % faster: throughput {:+.1} %", (mean - 1.0) * 100.0);
}
