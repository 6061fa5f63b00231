//! What tests of several crates share.

mod kept;
pub mod memory;
#[cfg(feature = "wakes")]
pub mod wakes;

pub use kept::kept;
