//! Work of a known cost, which can be dialed from outside: what the services under `services/` are
//! slow by.
//!
//! Work is a number of hash rounds, counted out beforehand. Work that watched a clock instead would
//! take as long on a busy machine as on an idle one, and a profiler has nothing to find in it.
//!
//! | variable | meaning |
//! |---|---|
//! | `DIAL_US` | what the dialed part costs, in microseconds |
//! | `DIAL_PACE` | hash rounds per millisecond, as the program `dial` prints them; measured at the first work if it is not set |

use std::env::{self, VarError};
use std::hint::black_box;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Instant;

static PACE: LazyLock<u32> = LazyLock::new(|| setting("DIAL_PACE").unwrap_or_else(pace));

/// A part of a program that costs so much each time.
#[derive(Debug)]
pub struct Work {
    rounds: u32,
}

impl Work {
    /// A part of a fixed cost in microseconds.
    pub fn fixed(us: u32) -> Work {
        Work { rounds: (u64::from(us) * u64::from(*PACE) / 1000) as u32 }
    }

    /// The part whose cost is dialed: `DIAL_US`, or `us` microseconds.
    pub fn dialed(us: u32) -> Work {
        Work::fixed(setting("DIAL_US").unwrap_or(us))
    }

    /// Does the work.
    pub fn run(&self) {
        hash(self.rounds);
    }
}

/// How many hash rounds one core does in a millisecond: the best of many short tries, so that what
/// else the machine does is left out.
pub fn pace() -> u32 {
    const ROUNDS: u32 = 100_000;
    let best = (0..400)
        .map(|_| {
            let start = Instant::now();
            hash(ROUNDS);
            start.elapsed()
        })
        .min()
        .expect("there is more than one try");
    (f64::from(ROUNDS) / (best.as_secs_f64() * 1e3)) as u32
}

/// A number from the environment.
///
/// # Panics
///
/// If it is set to something else.
fn setting<T: FromStr>(name: &str) -> Option<T> {
    match env::var(name) {
        Ok(text) => match text.parse() {
            Ok(number) => Some(number),
            Err(_) => panic!("{name} is `{text}`: it must be a whole number"),
        },
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => panic!("{name} must be a whole number"),
    }
}

/// Rounds of a hash (splitmix64), each of which needs the one before.
fn hash(rounds: u32) {
    let mut x = black_box(u64::from(rounds));
    for _ in 0..rounds {
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    }
    black_box(x);
}
