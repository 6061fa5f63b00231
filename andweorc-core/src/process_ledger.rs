//! The ledger of this process, which all of the crate can name without the state of threads.

use crate::ledger::Ledger;

/// The ledger of this process.
#[cfg(not(loom))]
pub static LEDGER: Ledger = Ledger::new();

#[cfg(loom)]
loom::lazy_static! {
    /// The ledger of this run of the model.
    pub static ref LEDGER: Ledger = Ledger::new();
}
