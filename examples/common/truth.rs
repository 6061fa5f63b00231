//! The truth: what really happens when a part gets faster. Short stretches of the program as it is
//! and with the part's cost reduced take turns, so that whatever else changes on the machine meets
//! both alike.

use crate::common::interval::mean;
use crate::common::meter::{Meter, histogram};
use crate::common::work::Cost;
use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long each stretch is measured.
const STRETCH: Duration = Duration::from_millis(800);

/// How long the program is left alone after a change: what was under way at the old cost has to
/// leave.
const SETTLE: Duration = Duration::from_millis(100);

/// How much the reduced cost changed, in percent.
#[derive(Debug)]
pub(crate) struct Truth {
    throughput: f64,
    /// Half the width of its 95 % interval.
    margin: f64,
    p50: f64,
    p99: f64,
    rates: [f64; 2],
    pairs: usize,
}

/// Measures the truth for as long as `duration`: at least three pairs of stretches. Blocks its
/// thread.
pub(crate) fn measure(cost: &Cost, by: f64, meter: &Meter, duration: Duration) -> Truth {
    let pairs = (duration.as_secs_f64() / (2.0 * (STRETCH + SETTLE).as_secs_f64())) as usize;
    let pairs = pairs.max(3);
    let mut latencies = [histogram(), histogram()];
    let mut rates = [0.0, 0.0];
    let mut effects = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        let mut rate = [0.0, 0.0];
        // Every other pair begins with the reduced cost: a steady drift cancels.
        for turn in [pair % 2, 1 - pair % 2] {
            cost.reduce(if turn == 1 { by } else { 0.0 });
            sleep(SETTLE);
            meter.take();
            let start = Instant::now();
            sleep(STRETCH);
            let done = meter.take();
            rate[turn] = done.len() as f64 / start.elapsed().as_secs_f64();
            rates[turn] += rate[turn] / pairs as f64;
            latencies[turn].add(&done).expect("the bounds are alike");
        }
        effects.push(100.0 * (rate[1] / rate[0] - 1.0));
    }
    cost.reduce(0.0);
    let change = |quantile| {
        let [full, reduced] =
            [0, 1].map(|i: usize| latencies[i].value_at_quantile(quantile) as f64);
        100.0 * (reduced / full - 1.0)
    };
    let (throughput, margin) = mean(&effects);
    Truth { throughput, margin, p50: change(0.5), p99: change(0.99), rates, pairs }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Truth { throughput, margin, p50, p99, rates: [full, reduced], pairs } = self;
        write!(
            f,
            "throughput {throughput:+.1} % [{:+.1}, {:+.1}], p50 {p50:+.1} %, p99 {p99:+.1} %  \
             ({full:.0}/s -> {reduced:.0}/s, {pairs} pairs of stretches)",
            throughput - margin,
            throughput + margin,
        )
    }
}
