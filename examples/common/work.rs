//! Work of a known size: a number of hash rounds, counted out beforehand. Work that watched a clock
//! instead would take as long on a busy machine as on an idle one, and a profiler has nothing to
//! find in it.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// How many hash rounds one core does in a millisecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace(u32);

impl Pace {
    pub(crate) fn new(rounds_per_ms: u32) -> Pace {
        Pace(rounds_per_ms)
    }

    /// Measures it: the best of many short tries, so that what else the machine does is left out.
    pub(crate) fn measure() -> Pace {
        const ROUNDS: u32 = 100_000;
        let best = (0..400)
            .map(|_| {
                let start = Instant::now();
                hash(ROUNDS);
                start.elapsed()
            })
            .min()
            .expect("there is more than one try");
        Pace((f64::from(ROUNDS) / (best.as_secs_f64() * 1e3)) as u32)
    }

    pub(crate) fn rounds_per_ms(self) -> u32 {
        self.0
    }
}

/// Cost of one part of a program: hash rounds for work, microseconds for a wait outside. It can be
/// turned down as the program runs.
#[derive(Debug)]
pub(crate) struct Cost {
    full: u32,
    now: AtomicU32,
}

impl Cost {
    /// So many microseconds of work.
    pub(crate) fn work(us: u32, pace: Pace) -> Cost {
        Cost::new((u64::from(us) * u64::from(pace.0) / 1000) as u32)
    }

    pub(crate) fn new(full: u32) -> Cost {
        Cost { full, now: AtomicU32::new(full) }
    }

    /// Takes the fraction `by` off the full cost; 0 restores it.
    pub(crate) fn reduce(&self, by: f64) {
        // Relaxed: the number stands for itself, and a stretch is measured only some time after it
        // changed.
        self.now.store((f64::from(self.full) * (1.0 - by)) as u32, Ordering::Relaxed);
    }

    /// The cost at present.
    pub(crate) fn now(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }
}

/// Does the work: `rounds` rounds of a hash (splitmix64), each of which needs the one before.
pub(crate) fn hash(rounds: u32) {
    let mut x = black_box(u64::from(rounds));
    for _ in 0..rounds {
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    }
    black_box(x);
}
