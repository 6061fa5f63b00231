//! Reports: what a profile says, for people and for machines.

mod json;
mod text;

pub use json::json;
pub use text::text;
