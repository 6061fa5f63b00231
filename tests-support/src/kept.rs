//! Values for the rest of a test binary.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

static KEPT: Mutex<Vec<&'static (dyn Any + Send + Sync)>> = Mutex::new(Vec::new());

/// Keeps a value for good, where a leak check does not take it for lost.
pub fn kept<T: Any + Send + Sync>(value: T) -> &'static T {
    let value: &'static T = Box::leak(Box::new(value));
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    value
}
