//! Reports: what a profile says, for people and for machines.

mod json;
mod text;
mod waits;

pub use json::{REPORT_VERSION, json};
pub use text::{counted, load_warning, notes, real_ns, tenths, text, why_nothing};
