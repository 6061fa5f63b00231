//! What tests of several crates share.

pub mod memory;
