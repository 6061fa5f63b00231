//! Differences that are small against the noise of the machine: A and B in turns, in CPU time, and
//! the median of the differences.

use crate::part::Row;
use andweorc_core::clock;
use std::fmt;

/// How often A and B take turns, where nothing else is said.
pub(crate) const ROUNDS: usize = 81;

/// Cost of B above that of A, ns for each operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    /// The median over the rounds.
    pub(crate) median: f64,
    quartiles: [f64; 2],
    /// Cost of A: the median.
    plain: f64,
}

impl Difference {
    /// The difference as a row of a table.
    pub(crate) fn row(&self, of: String) -> Row {
        let Difference { median, quartiles: [low, high], plain } = *self;
        Row { of, without: Some(plain), rate: None, figure: median, low, high }
    }

    /// How many of B's are done in the time in which one of A's is.
    pub(crate) fn ratio(&self) -> f64 {
        self.plain / (self.plain + self.median)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { median, quartiles: [low, high], plain } = self;
        write!(f, "{median:+8.2} ns  (middle half {low:+.2} to {high:+.2}) on {plain:.2} ns")
    }
}

/// Runs `a` and `b` in turns, each of which does `ops` operations, and compares the CPU time of
/// this thread.
pub(crate) fn compare(ops: u32, mut a: impl FnMut(), mut b: impl FnMut()) -> Difference {
    compare_timed(ROUNDS, || time(ops, &mut a), || time(ops, &mut b))
}

/// Does what [`compare`] does, in so many rounds, for operations that time themselves: `a` and `b`
/// return ns for each.
pub(crate) fn compare_timed(
    rounds: usize,
    mut a: impl FnMut() -> f64,
    mut b: impl FnMut() -> f64,
) -> Difference {
    // The first round warms up.
    let rounds: Vec<[f64; 2]> = (0..=rounds)
        .map(|round| {
            // Who is first changes: a steady drift cancels.
            if round % 2 == 0 {
                let plain = a();
                [plain, b()]
            } else {
                let with = b();
                [a(), with]
            }
        })
        .skip(1)
        .collect();
    let differences = sorted(rounds.iter().map(|[plain, with]| with - plain));
    let plain = sorted(rounds.iter().map(|[plain, _]| *plain));
    let at = |quarter: usize| differences[rounds.len() * quarter / 4];
    Difference { median: at(2), quartiles: [at(1), at(3)], plain: plain[rounds.len() / 2] }
}

/// CPU time of `f` on this thread, ns for each of its `ops` operations.
fn time(ops: u32, f: &mut impl FnMut()) -> f64 {
    let begin = clock::thread_cpu();
    f();
    (clock::thread_cpu() - begin).0 as f64 / f64::from(ops)
}

fn sorted(of: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<_> = of.collect();
    all.sort_by(f64::total_cmp);
    all
}
