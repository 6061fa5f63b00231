//! What others know of why nothing was seen, for the report of a run: tracing's side knows what hides spans.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Says why something is not seen, if it knows. Asked at the end of a run, on the profiler's thread, while andweorc is on.
pub type Hint = fn() -> Option<String>;

fn hints() -> MutexGuard<'static, Vec<Hint>> {
    static HINTS: Mutex<Vec<Hint>> = Mutex::new(Vec::new());
    HINTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks `hint` too from now on.
pub fn add(hint: Hint) {
    hints().push(hint);
}

/// What is known.
pub(crate) fn all() -> Vec<String> {
    // Not under the lock: who is asked may run code of the program.
    let hints = hints().clone();
    hints.into_iter().filter_map(|hint| hint()).collect()
}
