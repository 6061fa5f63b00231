//! Tables in which threads tell each other of the processors that they run on.

use super::processor::{Lately, Occupants, Times};

/// Tables with a row for each processor. All zeroes at first.
pub(crate) struct Processors {
    /// By how much L of threads inside the target grew last on each processor, and when.
    pub(super) grew: Lately,
    /// The processor time that andweorc's own threads took.
    pub(super) taken: Times,
    /// The thread that was seen last on each.
    pub(super) occupants: Occupants,
}

impl Processors {
    /// Nobody has run yet.
    pub(crate) const fn new() -> Processors {
        Processors { grew: Lately::new(), taken: Times::new(), occupants: Occupants::new() }
    }
}
