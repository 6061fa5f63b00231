//! The one that takes part in the polls of tasks of this process.

use super::Tasks;
use crate::process::process;

/// Takes part from now on. Of several calls the first counts.
pub fn install(tasks: &'static dyn Tasks) {
    process().tasks.get_or_init(|| tasks);
}

/// Returns the [`Tasks`] that take part, once some are [installed](install).
pub fn installed() -> Option<&'static dyn Tasks> {
    process().tasks.get().copied()
}
