//! The tables of contexts: their shares of a sampled target, and how often they are visited.

use std::sync::atomic::AtomicU64;

/// Targets whose contexts have a share, by their ids. Others are credited by samples.
pub(super) const TARGETS: usize = 4096;

/// How many kinds of polls, and of parts of them, are contexts of their own, in each target.
pub(crate) const PHASES: u32 = 128;

/// A number for each context.
type Table = [AtomicU64; TARGETS * PHASES as usize];

/// The tables of contexts of one process.
#[derive(Clone, Copy)]
pub(crate) struct Contexts {
    /// Of each its share, ppm, and one more; 0 of one that is credited by samples.
    pub(super) shares: &'static Table,
    /// Its visits while shares are learned.
    pub(super) visits: &'static Table,
}

// These are zeroes of the binary: most of them are never written, and so take no memory.
static SHARES: Table = [const { AtomicU64::new(0) }; TARGETS * PHASES as usize];
static VISITS: Table = [const { AtomicU64::new(0) }; TARGETS * PHASES as usize];

impl Contexts {
    /// The tables of the real process.
    pub(crate) const REAL: Contexts = Contexts { shares: &SHARES, visits: &VISITS };
}

#[cfg(test)]
impl Contexts {
    /// Tables of a test's own, which are there as long as the tests run.
    pub(crate) fn new() -> Contexts {
        let table = || {
            let zeroes = (0..TARGETS * PHASES as usize).map(|_| AtomicU64::new(0));
            let table: Box<Table> = zeroes.collect::<Box<[_]>>().try_into().expect("as long");
            Box::leak(table)
        };
        Contexts { shares: table(), visits: table() }
    }
}
