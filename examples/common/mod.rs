//! Modules that the examples share: work of a known size, and the truth to check a prediction
//! against.

pub(crate) mod interval;
pub(crate) mod meter;
pub(crate) mod options;
pub(crate) mod truth;
pub(crate) mod work;
