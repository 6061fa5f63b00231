//! Helpers that tests of several crates share.

mod interrupts;
mod kept;
pub mod memory;
mod plugin;
mod program;
#[cfg(feature = "sites")]
mod site;
#[cfg(feature = "wakes")]
pub mod wakes;

pub use interrupts::take_interrupts;
pub use kept::kept;
pub use plugin::{Loaded, Plugin};
pub use program::{build_program, code_of};
#[cfg(feature = "sites")]
pub use site::Site;
