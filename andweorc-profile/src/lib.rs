//! Profiles of andweorc, a causal profiler for tokio services: the file of a run, and what it
//! tells.
//!
//! This crate knows neither the clock nor the program that was profiled. A [`Run`] is read from a
//! file of JSON lines (schema 1); all else is computed from it, without I/O and without `unsafe`.
//!
//! | module | job |
//! |---|---|
//! | the crate's root | [`Record`]s, the [`Writer`] that a run appends them with, the [reader](Profile) |
//! | [`estimate`] | effects, impacts and verdicts with their intervals |
//! | [`compare`] | what changed between two versions, from their profiles |
//! | [`report`] | the report as text and as JSON, and the words that other reports share |
//! | [`stats`] | quantiles, regressions and p-values that these need |
//! | [`joint`] | one report over the profiles of several services |
//! | [`coordination`] | how several programs are profiled as one: the protocol, and a participant |
//! | [`settings`] | the settings of a run, from the environment or in code |
//! | [`time`] | units of time, real and virtual, and speedups |
//! | [`plain`] | names and texts from anywhere, made fit to be shown |
//!
//! ```no_run
//! use andweorc_profile::{Profile, estimate, report};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runs = Profile::read("target/andweorc/shop.jsonl".as_ref())?.runs;
//! let analysis = estimate::analyse(&runs);
//! print!("{}", report::text(&runs, &analysis, report::Looks::default()));
//! # Ok(())
//! # }
//! ```
//!
//! Where next: `docs/book/src/reference/report-json.md` for the JSON report,
//! `docs/book/src/reference/reports.md` for the words, and [`estimate`] for how effects and
//! intervals are computed.

#![forbid(unsafe_code)]

pub mod compare;
pub mod coordination;
pub mod estimate;
mod file;
pub mod joint;
pub mod plain;
mod reader;
pub mod report;
mod schema;
pub mod settings;
pub mod stats;
pub mod time;
mod writer;

pub use reader::{Profile, ReadError, ReadErrorKind, Run};
pub use schema::{
    AllocationFrame, AllocationGroup, AllocationNode, AllocationStacksRecord, AllocationsRecord,
    EndRecord, EventTotal, EventsRecord, ExampleInterval, ExampleOf, ExamplePart, ExampleSpan,
    ExampleState, ExamplesRecord, ExperimentRecord, Header, JointRun, KindPolls, LongPoll,
    LongPollsRecord, NoteRecord, PointCount, PointKind, PointRecord, PollsRecord, Record,
    RequestExample, RequestExamples, SamplesRecord, StackFrame, StackGroup, StackNode,
    StacksRecord, TargetAllocations, TargetEvents, TargetKind, TargetRecord, TargetTime,
    TimeHistogram, TimelineEvent, TimelineRecord, TimelineThread, VERSION, WaitSite, WaitSites,
    WaitTime, WallRecord, WallStack, WallWaker,
};
pub use writer::{WriteError, Writer};

/// The longest line of a profile, bytes. A row of ten thousand points, as many of them with
/// latencies as memory is kept for, has 40 MB. The writer writes no longer line, and a reader of
/// something that is no profile stops here.
pub(crate) const LONGEST_LINE: usize = 64 << 20;

#[cfg(test)]
mod tests;
