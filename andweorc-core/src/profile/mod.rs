//! The profile: the file of one run, JSON Lines.

mod file;
mod reader;
mod schema;
mod writer;

pub use reader::{Profile, ReadError, ReadErrorKind, Run};
pub use schema::{
    EndRecord, ExperimentRecord, Header, NoteRecord, PointCount, PointKind, PointRecord, Record,
    SamplesRecord, TargetKind, TargetRecord, TargetTime, VERSION, WaitTime,
};
pub use writer::{WriteError, Writer};

#[cfg(test)]
mod tests;
