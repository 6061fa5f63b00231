//! The profile: the file of one run.

mod schema;

pub use schema::{
    EndRecord, ExperimentRecord, Header, NoteRecord, PointCount, PointKind, PointRecord, Record,
    SamplesRecord, TargetKind, TargetRecord, TargetTime, VERSION,
};
