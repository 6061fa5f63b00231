//! Cost of a sample, and how much samples slow a thread that works: `--sampling-cost`.

use crate::work::{Pace, hash};
use andweorc_core::clock;
use andweorc_core::sampler::{COARSE, Event, FINE, Sampling};
use andweorc_core::symbols::Symbols;
use andweorc_core::time::Nanos;
use std::error::Error;

/// How long each stretch is, on a thread that is left alone, and how many there are of each kind.
/// They take turns.
const STRETCH_MS: u32 = 50;
const STRETCHES: u32 = 20;

/// CPU time of one stretch.
fn stretch(pace: Pace) -> Nanos {
    let begun = clock::thread_cpu();
    hash(pace.rounds_per_ms() * STRETCH_MS);
    clock::thread_cpu() - begun
}

/// Measures and prints it.
pub(crate) fn print() -> Result<(), Box<dyn Error>> {
    andweorc_core::thread::enable();
    andweorc_core::thread::register();
    let pace = Pace::measure();
    // Of no samples, and of both periods: the least time of a stretch, and all samples.
    let mut least = [Nanos(i64::MAX); 3];
    for _ in 0..STRETCHES {
        least[0] = least[0].min(stretch(pace));
        for (number, period) in [(1, COARSE), (2, FINE)] {
            let sampling = Sampling::start(Symbols::of_this_program()?, Event::default())?;
            sampling.set_period(period);
            least[number] = least[number].min(stretch(pace));
        }
    }
    for (took, period) in least[1..].iter().zip([COARSE, FINE]) {
        let more = *took - least[0];
        let samples = took.as_secs_f64() / period.as_secs_f64();
        println!(
            "SAMPLING period={period} cost_ns={:.0} overhead={:.1}%",
            more.0 as f64 / samples,
            100.0 * more.as_secs_f64() / least[0].as_secs_f64()
        );
    }
    Ok(())
}
