//! Reports: what a profile says, for people and for machines.

mod between;
mod json;
mod text;
mod waits;

pub use between::between_runs;
pub use json::{REPORT_VERSION, json};
pub use text::{
    change, counted, load_warning, metric_name, notes, real_ns, tenths, text, why_nothing,
};
