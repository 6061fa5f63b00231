//! What `#[andweorc::main]` does around the program: start the session, print the report at the right time, and leave
//! the program's own behaviour alone.

#[cfg(tokio_unstable)]
mod all_tasks;
mod background;
mod deadline;
mod newer;
pub mod rt;
mod signals;

#[cfg(tokio_unstable)]
pub use all_tasks::{layer, subscriber};
