//! What `#[andweorc::main]` does around the program: start the session, print the report at the right time, and leave
//! the program's own behaviour alone.

mod background;
mod newer;
pub mod rt;
mod signals;
