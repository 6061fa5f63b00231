//! What tests of several crates share.

pub mod memory;
#[cfg(feature = "wakes")]
pub mod wakes;
