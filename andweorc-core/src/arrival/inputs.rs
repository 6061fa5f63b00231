//! When input came for the sockets of the program, as a [thread](super::watch) that slept until then noticed.

use crate::time::Real;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// So many are kept: those of a tenth of a second at 2500 a second.
const KEPT: usize = 256;

/// The last inputs, of all sockets together.
#[derive(Debug)]
pub struct Inputs {
    /// When they came, real ns; 0 before there was one.
    came: [AtomicI64; KEPT],
    counted: AtomicUsize,
}

/// Those of this process.
pub(crate) static INPUTS: Inputs = Inputs::new();

// All accesses are Relaxed: one thread writes, each time is a number of its own, and who does not see the last one yet takes it as if nobody had watched.

impl Inputs {
    /// None yet.
    pub const fn new() -> Inputs {
        Inputs { came: [const { AtomicI64::new(0) }; KEPT], counted: AtomicUsize::new(0) }
    }

    /// One came. Only one thread may say so, in their order.
    pub fn came(&self, at: Real) {
        let place = self.counted.fetch_add(1, Relaxed) % KEPT;
        self.came[place].store(at.0, Relaxed);
    }

    /// When the first one came after `after`, `until` then at the latest.
    pub(super) fn first(&self, after: Real, until: Real) -> Option<Real> {
        let came = self.came.iter().map(|came| Real(came.load(Relaxed)));
        came.filter(|&came| after < came && came <= until).min()
    }
}

impl Default for Inputs {
    fn default() -> Inputs {
        Inputs::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_between_two_times() {
        let inputs = Inputs::new();
        assert_eq!(inputs.first(Real(0), Real(i64::MAX)), None);
        for at in [10, 20, 30] {
            inputs.came(Real(at));
        }
        assert_eq!(inputs.first(Real(0), Real(100)), Some(Real(10)));
        assert_eq!(inputs.first(Real(10), Real(100)), Some(Real(20)));
        assert_eq!(inputs.first(Real(20), Real(30)), Some(Real(30)));
        assert_eq!(inputs.first(Real(20), Real(29)), None);
    }

    #[test]
    fn old_ones_are_forgotten() {
        let inputs = Inputs::new();
        for at in 1..=KEPT as i64 + 3 {
            inputs.came(Real(at));
        }
        assert_eq!(inputs.first(Real(0), Real(i64::MAX)), Some(Real(4)));
    }
}
