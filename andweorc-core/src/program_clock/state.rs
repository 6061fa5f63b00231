//! State that the clock goes by which the program reads.

use std::sync::atomic::{AtomicI64, AtomicU8};

/// State of the program's clock.
#[derive(Debug)]
pub(crate) struct ProgramClock {
    /// How readings are answered: a [`Mode`](super::Mode).
    pub(super) mode: AtomicU8,
    /// By how much the clock is behind real time: an amount, shifted by one, and in the lowest bit
    /// whether that is all (1) or comes to D (0). One word, so that a reader never sees the amount
    /// of one kind with the bit of the other.
    pub(super) behind: AtomicI64,
    /// No reading of a clock in an experiment may be less, ns.
    pub(super) last: [AtomicI64; 4],
}

impl ProgramClock {
    /// A clock that shows real time.
    pub(crate) const fn new() -> ProgramClock {
        ProgramClock {
            mode: AtomicU8::new(super::Mode::Off as u8),
            behind: AtomicI64::new(0),
            last: [const { AtomicI64::new(0) }; 4],
        }
    }
}
