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

/// The longest line of a profile, bytes. A row of ten thousand points, as many of them with
/// latencies as memory is kept for, has 40 MB. The writer writes no longer line, and a reader of
/// something that is no profile stops here.
pub(crate) const LONGEST_LINE: usize = 64 << 20;

#[cfg(test)]
mod tests;
