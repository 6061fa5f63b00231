//! Hints for the report of a run, from crates that know why nothing was seen: the one of tracing
//! knows what hides spans.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Says why something is not seen, if it knows.
///
/// A run calls it at its end, on the profiler's thread, while andweorc is on.
pub(crate) type Hint = fn() -> Option<String>;

fn hints() -> MutexGuard<'static, Vec<Hint>> {
    static HINTS: Mutex<Vec<Hint>> = Mutex::new(Vec::new());
    HINTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes runs ask `hint` too from now on.
pub fn add(hint: Hint) {
    hints().push(hint);
}

/// All hints that have something to say.
pub(crate) fn all() -> Vec<String> {
    // The lock is not held meanwhile: a hint may run code of the program.
    let hints = hints().clone();
    hints.into_iter().filter_map(|hint| hint()).collect()
}
