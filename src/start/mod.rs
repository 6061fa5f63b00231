//! Starting a session from the environment, printing its report at the right time, and leaving the
//! program's own behaviour alone. `#[andweorc::main]` does so around the program; in another one
//! its first layer, subscriber or builder of a runtime does.

mod background;
mod deadline;
mod newer;
pub mod rt;
mod signals;
mod spans;
pub(crate) mod without_main;

#[cfg(feature = "layer")]
pub use spans::layer;
pub use spans::subscriber;
