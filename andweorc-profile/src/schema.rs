//! The records of a profile, schema version [`VERSION`].
//!
//! A profile is JSON Lines: one record a line, the field `record` says which. The first line of a
//! run is its [`Header`]; runs are merged by concatenating their files, so that a further header
//! begins a further run. Ids of targets and points are local to their run. Rows are raw: every
//! estimate can be computed anew from them.
//!
//! **Bump [`VERSION`] whenever a field changes its meaning, its unit or its name**; a new optional
//! field needs no bump.

mod allocation_stacks;
mod events;
mod examples;
mod joint;
mod polls;
mod timeline;
mod wall;

pub use allocation_stacks::{
    AllocationFrame, AllocationGroup, AllocationNode, AllocationStacksRecord,
};
pub use events::{EventTotal, EventsRecord, TargetEvents};
pub use examples::{
    ExampleInterval, ExampleOf, ExamplePart, ExampleSpan, ExampleState, ExamplesRecord,
    RequestExample, RequestExamples,
};
pub use joint::JointRun;
pub use polls::{KindPolls, LongPoll, LongPollsRecord, PollsRecord, TimeHistogram};
pub use timeline::{TimelineEvent, TimelineRecord, TimelineThread};
pub use wall::{WaitSite, WaitSites, WallRecord, WallStack, WallWaker};

use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of this schema, written to every header. Readers refuse any other.
pub const VERSION: u32 = 1;

/// One line of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The first line of a run.
    Header(Header),
    /// A target, written before the first record that names its id.
    Target(TargetRecord),
    /// A point, written before the first record that names its id.
    Point(PointRecord),
    /// One experiment, or one baseline.
    Experiment(ExperimentRecord),
    /// How busy each target was over a stretch of the run.
    Samples(SamplesRecord),
    /// Memory that each target allocated over a stretch of the run.
    Allocations(AllocationsRecord),
    /// Where the wall time of requests and tasks went, over the same stretch.
    Wall(WallRecord),
    /// Where the CPU time went by call chains, over the same stretch.
    Stacks(StacksRecord),
    /// How long polls were, over the same stretch.
    Polls(PollsRecord),
    /// Events of the processor by target, over a stretch of their own after that one.
    Events(EventsRecord),
    /// The long polls of the whole run.
    LongPolls(LongPollsRecord),
    /// Single requests of the same stretch, as they went.
    Examples(ExamplesRecord),
    /// The last polls and spans of each thread before the first experiment.
    Timeline(TimelineRecord),
    /// Where memory is allocated, by the call chains of samples.
    AllocationStacks(AllocationStacksRecord),
    /// The run of several programs that this one is part of, written before the first experiment.
    Joint(JointRun),
    /// Something the user should know: a warning, a limit, a loss.
    Note(NoteRecord),
    /// The last line of a run that ended in order.
    End(EndRecord),
}

/// Header of a run: what ran, where, and with which settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// [`VERSION`] of the writer.
    pub schema: u32,
    /// File name of the program.
    pub program: String,
    /// Build id of the program in hex, where the binary has one.
    pub build_id: Option<String>,
    /// Name of the host.
    pub host: String,
    /// Number of processors the program may use.
    pub cores: usize,
    /// Version of andweorc that wrote the run.
    pub andweorc: String,
    /// Version of tokio, where the program has one from a registry.
    pub tokio: Option<String>,
    /// Whether the program was built with `--cfg tokio_unstable`, by which all tasks can be seen
    /// and not only wrapped ones. `None` in profiles from before this was told.
    #[serde(default)]
    pub tokio_unstable: Option<bool>,
    /// Whether the program was built with the feature `sampling`, by which lines and functions can
    /// be targets. `None` in profiles from before this was told.
    #[serde(default)]
    pub sampling: Option<bool>,
    /// Time budget of the run in ns.
    pub duration_ns: u64,
    /// Speedups that the run tests, fractions from 0 to 1.
    pub speedups: Vec<f64>,
    /// Names of targets asked for; empty when andweorc chose.
    pub targets: Vec<String>,
    /// Names of points asked for; empty when andweorc chose.
    pub points: Vec<String>,
    /// Start of the run, ms since the Unix epoch.
    pub start_unix_ms: u64,
}

impl Header {
    /// A header of this version for a run of `program` of which nothing else is known: no host, no
    /// settings, no time, one processor.
    pub fn new(program: impl Into<String>) -> Header {
        Header {
            schema: VERSION,
            program: program.into(),
            build_id: None,
            host: String::new(),
            cores: 1,
            andweorc: env!("CARGO_PKG_VERSION").to_owned(),
            tokio: None,
            tokio_unstable: None,
            sampling: None,
            duration_ns: 0,
            speedups: Vec::new(),
            targets: Vec::new(),
            points: Vec::new(),
            start_unix_ms: 0,
        }
    }

    /// Which build of tokio the program has, in words, where it has one and that is known.
    pub(crate) fn build_of_tokio(&self) -> Option<&'static str> {
        self.tokio.as_ref()?;
        Some(if self.tokio_unstable? { "tokio_unstable" } else { "stable tokio" })
    }
}

/// Kind of a thing that is virtually sped up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TargetKind {
    /// A kind of task: all tasks of one spawn site or name. Its time is that of its polls.
    Task,
    /// A span: name and call site. Its time is that between enter and exit.
    Span,
    /// A function, sampled: with all that it calls.
    Function,
    /// A function, sampled: without what it calls that is in scope itself.
    #[serde(rename = "function-self")]
    FunctionSelf,
    /// A source line, sampled.
    Line,
    /// A wait: the time in which a task or an open span is not running.
    Wait,
    /// No part of the program: everything is delayed alike, to see whether the load waits for the
    /// program.
    Probe,
    /// A target of another program that took part in the same run: `inventory/lookup`. No time is
    /// spent in it here.
    Remote,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TargetKind::Task => "task",
            TargetKind::Span => "span",
            TargetKind::Function => "function",
            TargetKind::FunctionSelf => "function-self",
            TargetKind::Line => "line",
            TargetKind::Wait => "wait",
            TargetKind::Probe => "probe",
            TargetKind::Remote => "remote",
        })
    }
}

/// A target as the profile names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TargetRecord {
    /// Id, unique in its run.
    pub id: u32,
    /// Its kind.
    pub kind: TargetKind,
    /// Its name.
    pub name: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line in `file`, 1-based, where known.
    pub line: Option<u32>,
}

impl TargetRecord {
    /// A target whose place is not known.
    pub fn new(id: u32, kind: TargetKind, name: impl Into<String>) -> TargetRecord {
        TargetRecord { id, kind, name: name.into(), file: None, line: None }
    }
}

/// Kind of a thing that is measured. There is no third: a point has latencies, or it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    /// Counts units of work done: throughput only.
    Progress,
    /// An interval with begin and end: throughput of its ends, and a latency distribution.
    Latency,
}

/// A point as the profile names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PointRecord {
    /// Id, unique in its run.
    pub id: u32,
    /// Its kind.
    pub kind: PointKind,
    /// Its name.
    pub name: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line in `file`, 1-based, where known.
    pub line: Option<u32>,
    /// Place in the order of importance: targets are ranked by the point with the lowest. A point
    /// that is described once more has the later rank.
    pub rank: u32,
}

impl PointRecord {
    /// A point whose place is not known, `rank`-th in importance.
    pub fn new(id: u32, kind: PointKind, name: impl Into<String>, rank: u32) -> PointRecord {
        PointRecord { id, kind, name: name.into(), file: None, line: None, rank }
    }
}

/// One (target, speedup) held for a stretch of time, with what every point did meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExperimentRecord {
    /// Number of the experiment in its run, from 0, baselines included, in the order in which they
    /// were held.
    pub seq: u32,
    /// Id of the target; `None` in a baseline.
    pub target: Option<u32>,
    /// The speedup, a fraction from 0 to 1; 0 in a baseline.
    pub speedup: f64,
    /// Begin of the measured stretch, ns since the start of the run.
    pub start_ns: u64,
    /// Length of the measured stretch in real ns.
    pub real_ns: u64,
    /// Delay that the program owed for it: growth of D in ns. Virtual length = `real_ns -
    /// delay_ns`.
    pub delay_ns: u64,
    /// CPU time that the program used for it, ns, all threads, without what pauses used. `None`
    /// where it was not measured: by versions before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Counts of each point. Points that did nothing are left out.
    pub points: Vec<PointCount>,
    /// CPU time in the sampled targets that the run tests, as samples saw it. Targets without any
    /// are left out, and none is there where nothing is sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<TargetTime>,
    /// Number of the experiment in the run of several programs, the same in the profiles of all of
    /// them. `None` in a run of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<u32>,
    /// Why the experiment must not be used, if so (for example `"steal 7 %"`). It is kept, and
    /// counted.
    #[serde(rename = "spoiled")]
    pub discarded: Option<String>,
}

impl ExperimentRecord {
    /// A baseline without delay, in which no point was hit: the `seq`-th hold of its run, which
    /// began at `start_ns` and took `real_ns`. Whatever else is known is set by its fields.
    pub fn new(seq: u32, start_ns: u64, real_ns: u64) -> ExperimentRecord {
        ExperimentRecord {
            seq,
            target: None,
            speedup: 0.0,
            start_ns,
            real_ns,
            delay_ns: 0,
            cpu_ns: None,
            points: Vec::new(),
            sampled: Vec::new(),
            joint: None,
            discarded: None,
        }
    }
}

/// Counts of one point in one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PointCount {
    /// Id of the point.
    pub point: u32,
    /// How often it was hit.
    pub count: u64,
    /// Latencies in virtual ns as (value, count) pairs in rising order; empty for progress points.
    /// A value is the middle of a histogram's bin, within 0.8 % of each latency in it, and more
    /// precise where the latencies are of few octaves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<(u64, u64)>,
}

impl PointCount {
    /// A point that was hit `count` times, without latencies.
    pub fn new(point: u32, count: u64) -> PointCount {
        PointCount { point, count, latency: Vec::new() }
    }
}

/// How busy each target was over a stretch of the run without any delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplesRecord {
    /// Length of the stretch in real ns.
    pub real_ns: u64,
    /// CPU time of the whole program in it, ns.
    pub cpu_ns: u64,
    /// CPU time of all other processes in it, ns, on the processors that the program may use: the
    /// load, say. `None` where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_ns: Option<u64>,
    /// How targets were timed: `"timed"` (tasks, spans) or the name of the sampler (functions,
    /// lines).
    pub source: String,
    /// Time of each target. Targets without any are left out.
    pub targets: Vec<TargetTime>,
    /// Samples lost or throttled.
    pub lost: u64,
}

impl SamplesRecord {
    /// A stretch of `real_ns` in which the program used `cpu_ns`, no target was seen to be busy and
    /// no sample was lost.
    pub fn new(source: impl Into<String>, real_ns: u64, cpu_ns: u64) -> SamplesRecord {
        SamplesRecord {
            real_ns,
            cpu_ns,
            others_ns: None,
            source: source.into(),
            targets: Vec::new(),
            lost: 0,
        }
    }
}

/// Time of one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TargetTime {
    /// Id of the target.
    pub target: u32,
    /// Time inside it in ns, summed over threads (for waits: over waiters).
    pub busy_ns: u64,
    /// How often it was entered (timed) or sampled.
    pub count: u64,
    /// For waits: what they waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitTime>,
}

impl TargetTime {
    /// The time of a target that is no wait.
    pub fn new(target: u32, busy_ns: u64, count: u64) -> TargetTime {
        TargetTime { target, busy_ns, count, waits: None }
    }
}

/// The time of a wait by what ended it. What is left of the whole is unknown: the task around it is
/// not profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitTime {
    /// Waiting for the world outside, a timer or a socket, ns.
    pub outside_ns: u64,
    /// Of that, for timers. `None` where they can't be told from sockets: the program's clock was
    /// real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_ns: Option<u64>,
    /// Waiting for another task or thread of the program, ns.
    pub task_ns: u64,
    /// Ready, but not yet polled: the delay of the run queue, ns.
    pub queue_ns: u64,
}

/// Memory that each target allocated over a stretch of the run without any delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationsRecord {
    /// Number of the baseline that is the stretch; `None` before the first.
    pub seq: Option<u32>,
    /// Length of the stretch in real ns.
    pub real_ns: u64,
    /// Allocations of each target. Targets that neither allocated nor freed anything, and hold
    /// nothing, are left out.
    pub targets: Vec<TargetAllocations>,
}

/// Memory that one target allocated: that was allocated while the target was the innermost one that
/// the thread was in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetAllocations {
    /// Id of the target; `None` for what was allocated outside of all.
    pub target: Option<u32>,
    /// Bytes allocated in the stretch. Memory that is resized counts as freed, and allocated anew.
    pub bytes: u64,
    /// Allocations in the stretch.
    pub count: u64,
    /// Bytes of the target's that were freed in the stretch, by any thread.
    pub freed_bytes: u64,
    /// Allocations that these were.
    pub freed_count: u64,
    /// Of the bytes freed, those that the same thread had allocated in the same poll, or outside of
    /// tasks in the same outermost span. 0 outside of all targets.
    pub churned_bytes: u64,
    /// Allocations that these were.
    pub churned_count: u64,
    /// Bytes that were allocated since andweorc was switched on, and not yet freed at the end of
    /// the stretch.
    pub live_bytes: u64,
    /// Allocations that these are.
    pub live_count: u64,
    /// The most bytes that were so at a time up to then; too low by 64 KiB at most for each thread
    /// that allocates or frees there.
    pub peak_bytes: u64,
}

/// Where the CPU time of sampled threads went over a stretch of the run without any delay, by call
/// chains. Only runs that sample lines or functions have one, and older profiles have none.
///
/// A chain begins with the first code that a task or thread runs; what starts threads and polls
/// tasks is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StacksRecord {
    /// Length of the stretch in real ns.
    pub real_ns: u64,
    /// CPU time of the whole program in it, ns, in threads that are not sampled too.
    pub cpu_ns: u64,
    /// CPU time that a sample stands for, ns.
    pub sample_ns: u64,
    /// Name of the sampler.
    pub source: String,
    /// Functions, by their numbers in chains.
    pub frames: Vec<StackFrame>,
    /// The chains of each part of the program.
    pub groups: Vec<StackGroup>,
    /// Samples in all.
    pub samples: u64,
    /// Samples lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Samples that are counted as a chain around theirs, or without some functions of it, since
    /// there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub merged: u64,
    /// Samples whose chain has more frames than are kept: the outermost are not in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_off: u64,
    /// Samples whose chain ended before the start of its task or thread, at a function without a
    /// frame pointer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended_early: u64,
    /// Samples whose chain was unwound by the tables that code has for panics, and not by frame
    /// pointers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unwound: u64,
}

/// A function in a call chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// Its name. Those in brackets stand for what is not known.
    pub name: String,
    /// Whether it is in scope: of the program's own crates, unless the scope says otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// The call chains of one part of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackGroup {
    /// The name of its threads.
    pub thread: String,
    /// Id of the kind of task that the thread polled; `None` outside of tasks, and where it is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// Id of the innermost span that the thread was in; `None` outside of spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<u32>,
    /// The chains and their beginnings, each after the one that it goes on from.
    pub stacks: Vec<StackNode>,
}

/// A call chain, or the beginning of some: an array of three numbers in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Option<u32>, u32, u64)", into = "(Option<u32>, u32, u64)")]
pub struct StackNode {
    /// Index of the chain of the caller; `None` where there is none.
    pub parent: Option<u32>,
    /// Index of its innermost function.
    pub frame: u32,
    /// Samples in that function itself, not in what it calls.
    pub samples: u64,
}

impl From<(Option<u32>, u32, u64)> for StackNode {
    fn from((parent, frame, samples): (Option<u32>, u32, u64)) -> StackNode {
        StackNode { parent, frame, samples }
    }
}

impl From<StackNode> for (Option<u32>, u32, u64) {
    fn from(node: StackNode) -> Self {
        (node.parent, node.frame, node.samples)
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Something the user should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NoteRecord {
    /// ns since the start of the run.
    pub at_ns: u64,
    /// The text, one sentence that says what happened and what to do.
    pub text: String,
}

impl NoteRecord {
    /// A note, `at_ns` after the start of the run.
    pub fn new(at_ns: u64, text: impl Into<String>) -> NoteRecord {
        NoteRecord { at_ns, text: text.into() }
    }
}

/// How a run ended, and what was lost on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EndRecord {
    /// Why it ended: `"settled"`, `"time"`, `"main returned"`, `"signal SIGINT"`, ...
    pub reason: String,
    /// Length of the run in real ns.
    pub real_ns: u64,
    /// Experiments held, baselines included.
    pub experiments: u32,
    /// Of these, how many were discarded.
    #[serde(rename = "spoiled")]
    pub discarded: u32,
    /// Samples lost or throttled in all.
    pub lost_samples: u64,
    /// Records that could not be written.
    pub lost_records: u64,
}

impl EndRecord {
    /// The end of a run that took `real_ns`, held no experiment and lost nothing.
    pub fn new(reason: impl Into<String>, real_ns: u64) -> EndRecord {
        EndRecord {
            reason: reason.into(),
            real_ns,
            experiments: 0,
            discarded: 0,
            lost_samples: 0,
            lost_records: 0,
        }
    }
}
