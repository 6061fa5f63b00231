//! Experiments: what is held, for how long, in which order.

mod hold;
mod noise;

pub use hold::{Experimenter, Lengths, Stop};
pub(crate) use hold::to_ns;
