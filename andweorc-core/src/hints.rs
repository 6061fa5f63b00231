//! Hints for the report of a run, from crates that know why nothing was seen: the one of tracing
//! knows what hides spans.

pub(crate) use crate::process::Hint;

use crate::process::process;

/// Makes runs ask `hint` too from now on.
pub fn add(hint: Hint) {
    process().hints.lock().push(hint);
}

/// All hints that have something to say.
pub(crate) fn all() -> Vec<String> {
    // The lock is not held meanwhile: a hint may run code of the program.
    let hints = process().hints.lock().clone();
    hints.into_iter().filter_map(|hint| hint()).collect()
}
