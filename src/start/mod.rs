//! Starting a session from the environment, printing its report at the right time, and leaving the program's own behaviour alone: around the
//! program, by `#[andweorc::main]`, or inside of it, by the first layer, subscriber or builder of a runtime.

mod background;
mod newer;
pub mod rt;
mod signals;
mod spans;
pub(crate) mod without_main;

pub use spans::{layer, subscriber};
