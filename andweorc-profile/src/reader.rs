//! Reading profiles.
//!
//! A file is read line by line, so that memory is bounded by the longest line and by what the
//! records say. A device or a pipe is refused, since it may never end.

use crate::plain;
use crate::{
    AllocationStacksRecord, AllocationsRecord, EndRecord, EventsRecord, ExamplesRecord,
    ExperimentRecord, Header, JointRun, LONGEST_LINE, LongPollsRecord, NoteRecord, PointRecord,
    PollsRecord, Record, SamplesRecord, StacksRecord, TargetRecord, TimelineRecord, VERSION,
    WallRecord,
};
use serde::Deserialize;
use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{error, fmt};

/// The runs of one file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// In the order of the file; at least one.
    pub runs: Vec<Run>,
}

impl From<Vec<Run>> for Profile {
    /// Takes runs of several files together.
    fn from(runs: Vec<Run>) -> Profile {
        Profile { runs }
    }
}

/// The records of one run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// Its header.
    pub header: Header,
    /// Its targets.
    pub targets: Vec<TargetRecord>,
    /// Its points, the most important first.
    pub points: Vec<PointRecord>,
    /// Its experiments in the order in which they were held.
    pub experiments: Vec<ExperimentRecord>,
    /// How busy targets were.
    pub samples: Vec<SamplesRecord>,
    /// Memory that targets allocated, where the program's allocator counts it.
    pub allocations: Vec<AllocationsRecord>,
    /// Where wall time went; empty in older profiles.
    pub wall: Vec<WallRecord>,
    /// Where the CPU time went by call chains; empty where nothing was sampled.
    pub stacks: Vec<StacksRecord>,
    /// How long polls were; empty in older profiles.
    pub polls: Vec<PollsRecord>,
    /// Events of the processor by target; empty where none were asked for.
    pub events: Vec<EventsRecord>,
    /// The long polls; empty in older profiles, and of a run that did not end in order.
    pub long_polls: Vec<LongPollsRecord>,
    /// Single requests, as they went; empty in older profiles.
    pub examples: Vec<ExamplesRecord>,
    /// The last polls and spans before the first experiment; empty in older profiles.
    pub timeline: Vec<TimelineRecord>,
    /// Call chains of sampled allocations; empty in older profiles.
    pub allocation_stacks: Vec<AllocationStacksRecord>,
    /// The run of several programs that it was part of, if it was.
    pub joint: Option<JointRun>,
    /// Notes on what the user should know.
    pub notes: Vec<NoteRecord>,
    /// Its end, if it ended in order.
    pub end: Option<EndRecord>,
    /// Its last line was torn off and is left out: the program was killed.
    pub torn: bool,
}

impl Run {
    /// A run of which only the header is known.
    pub fn new(header: Header) -> Run {
        Run {
            header,
            targets: Vec::new(),
            points: Vec::new(),
            experiments: Vec::new(),
            samples: Vec::new(),
            allocations: Vec::new(),
            wall: Vec::new(),
            stacks: Vec::new(),
            polls: Vec::new(),
            events: Vec::new(),
            long_polls: Vec::new(),
            examples: Vec::new(),
            timeline: Vec::new(),
            allocation_stacks: Vec::new(),
            joint: None,
            notes: Vec::new(),
            end: None,
            torn: false,
        }
    }

    /// Adds a record. A header is left out: it begins another run.
    pub fn push(&mut self, record: Record) {
        match record {
            Record::Header(_) => {}
            Record::Target(target) => self.targets.push(target),
            Record::Point(point) => {
                // One that is described again has another rank.
                self.points.retain(|before| before.id != point.id);
                let place = self.points.partition_point(|before| before.rank <= point.rank);
                self.points.insert(place, point);
            }
            Record::Experiment(experiment) => self.experiments.push(experiment),
            Record::Samples(samples) => self.samples.push(samples),
            Record::Allocations(allocations) => self.allocations.push(allocations),
            Record::Wall(wall) => self.wall.push(wall),
            Record::Stacks(stacks) => self.stacks.push(stacks),
            Record::Polls(polls) => self.polls.push(polls),
            Record::Events(events) => self.events.push(events),
            Record::LongPolls(polls) => self.long_polls.push(polls),
            Record::Examples(examples) => self.examples.push(examples),
            Record::Timeline(timeline) => self.timeline.push(timeline),
            Record::AllocationStacks(stacks) => self.allocation_stacks.push(stacks),
            Record::Joint(joint) => self.joint = Some(joint),
            Record::Note(note) => self.notes.push(note),
            Record::End(end) => self.end = Some(end),
        }
    }
}

/// The ids that the lines of a run described so far.
#[derive(Default)]
struct Described {
    targets: HashSet<u32>,
    points: HashSet<u32>,
}

impl Described {
    /// Notes what this record describes.
    fn note(&mut self, record: &Record) {
        match record {
            Record::Header(_) => *self = Described::default(),
            Record::Target(target) => {
                self.targets.insert(target.id);
            }
            Record::Point(point) => {
                self.points.insert(point.id);
            }
            _ => {}
        }
    }

    /// The first id that a record names without a target, a point, a stack or a span before it.
    fn unknown_id(&self, record: &Record) -> Option<String> {
        let target = |id: u32| (!self.targets.contains(&id)).then(|| format!("target {id}"));
        let point = |id: u32| (!self.points.contains(&id)).then(|| format!("point {id}"));
        match record {
            Record::Experiment(it) => it
                .target
                .and_then(target)
                .or_else(|| it.points.iter().find_map(|count| point(count.point))),
            Record::Samples(it) => it.targets.iter().find_map(|time| target(time.target)),
            Record::Allocations(it) => it.targets.iter().find_map(|of| target(of.target?)),
            Record::Events(it) => it.targets.iter().find_map(|of| target(of.target?)),
            Record::Polls(it) => it.kinds.iter().find_map(|kind| target(kind.target)),
            Record::LongPolls(it) => it.polls.iter().find_map(|poll| target(poll.target)),
            Record::Wall(it) => it
                .stacks
                .iter()
                .enumerate()
                .find_map(|(at, stack)| {
                    let parent = stack.parent.filter(|parent| *parent as usize >= at);
                    let wakers = stack.tasks.iter().filter_map(|waker| waker.by);
                    parent
                        .map(|parent| format!("stack {parent}"))
                        .or_else(|| stack.target.into_iter().chain(wakers).find_map(target))
                })
                .or_else(|| {
                    let sites = it.wait_sites.sites.iter();
                    sites.flat_map(|site| site.waiter.into_iter().chain(site.by)).find_map(target)
                }),
            Record::Stacks(it) => it.groups.iter().find_map(|group| {
                let nodes = group.stacks.iter().map(|node| (node.parent, node.frame));
                let unknown = unknown_of_chains(nodes, it.frames.len());
                let target = group.task.into_iter().chain(group.span).find_map(target);
                target.or(unknown)
            }),
            Record::AllocationStacks(it) => it.groups.iter().find_map(|group| {
                let nodes = group.stacks.iter().map(|node| (node.parent, node.frame));
                let unknown = unknown_of_chains(nodes, it.frames.len());
                group.target.and_then(target).or(unknown)
            }),
            Record::Timeline(it) => {
                let mut events = it.threads.iter().flat_map(|thread| &thread.events);
                events.find_map(|event| target(event.target))
            }
            Record::Examples(it) => it.requests.iter().find_map(|of| {
                let mut spans = of.examples.iter().flat_map(|one| one.spans.iter().enumerate());
                target(of.target).or_else(|| {
                    spans.find_map(|(at, span)| {
                        let wakers = span.intervals.iter().filter_map(|interval| interval.by);
                        span.parent
                            .filter(|parent| *parent as usize >= at)
                            .map(|parent| format!("span {parent}"))
                            .or_else(|| span.target.into_iter().chain(wakers).find_map(target))
                    })
                })
            }),
            _ => None,
        }
    }
}

/// The first chain or function that chains name and that is not there.
fn unknown_of_chains(
    nodes: impl Iterator<Item = (Option<u32>, u32)>,
    frames: usize,
) -> Option<String> {
    nodes.enumerate().find_map(|(at, (parent, frame))| {
        let parent = parent.filter(|parent| *parent as usize >= at);
        let frame = Some(frame).filter(|frame| *frame as usize >= frames);
        parent.map(|it| format!("stack {it}")).or(frame.map(|it| format!("frame {it}")))
    })
}

impl Profile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it can't be read, is no regular file, is no profile, is one of another schema version,
    /// or is damaged before its last line.
    pub fn read(path: &Path) -> Result<Profile, ReadError> {
        let read = || Profile::read_from(BufReader::new(open(path)?));
        read().map_err(|kind| ReadError { path: path.to_owned(), kind })
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    ///
    /// As [`Profile::read`], without the path.
    pub fn parse(bytes: &[u8]) -> Result<Profile, ReadErrorKind> {
        Profile::read_from(bytes)
    }

    /// Reads to the end, never more than one line ahead.
    pub(super) fn read_from(mut from: impl BufRead) -> Result<Profile, ReadErrorKind> {
        let mut runs: Vec<Run> = Vec::new();
        let mut described = Described::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let longest = LONGEST_LINE as u64 + 1;
            let read = from.by_ref().take(longest).read_until(b'\n', &mut line);
            if read.map_err(ReadErrorKind::Io)? == 0 {
                break;
            }
            // Only the last line may have no end.
            let torn = line.pop_if(|last| *last == b'\n').is_none();
            if line.is_empty() {
                continue;
            }
            if line.len() > LONGEST_LINE {
                return Err(match runs.is_empty() {
                    true => ReadErrorKind::NotAProfile,
                    false => ReadErrorKind::LongLine { line: number },
                });
            }
            let parsed = parse_line(&line);
            if let Ok(record) = &parsed {
                described.note(record);
            }
            match (parsed, runs.last_mut()) {
                (Ok(Record::Header(header)), _) => runs.push(Run::new(header)),
                (Ok(_), None) => return Err(ReadErrorKind::NotAProfile),
                (Ok(record), Some(run)) => {
                    if let Some(id) = described.unknown_id(&record) {
                        return Err(ReadErrorKind::Damaged {
                            line: number,
                            what: format!("it names {id}, which no line before describes"),
                        });
                    }
                    run.push(record);
                }
                (Err(ReadErrorKind::Damaged { .. }), Some(run)) if torn => run.torn = true,
                (Err(ReadErrorKind::Damaged { .. }), None)
                    if torn && line.starts_with(br#"{"record":"header""#) =>
                {
                    return Err(ReadErrorKind::TornHeader);
                }
                (Err(ReadErrorKind::Damaged { .. }), None) => {
                    return Err(ReadErrorKind::NotAProfile);
                }
                (Err(ReadErrorKind::Damaged { what, .. }), Some(_)) => {
                    return Err(ReadErrorKind::Damaged { line: number, what });
                }
                (Err(ReadErrorKind::Schema { found, .. }), _) => {
                    return Err(ReadErrorKind::Schema { line: number, found });
                }
                (Err(error), _) => return Err(error),
            }
        }
        if runs.is_empty() { Err(ReadErrorKind::Empty) } else { Ok(Profile { runs }) }
    }
}

fn parse_line(line: &[u8]) -> Result<Record, ReadErrorKind> {
    /// The part of a header that every version has.
    #[derive(Deserialize)]
    struct AnyHeader {
        record: String,
        schema: u32,
    }
    if let Ok(header) = serde_json::from_slice::<AnyHeader>(line)
        && header.record == "header"
        && header.schema != VERSION
    {
        return Err(ReadErrorKind::Schema { line: 0, found: header.schema });
    }
    serde_json::from_slice(line).map_err(|error| ReadErrorKind::Damaged {
        line: 0,
        // The message may quote the line.
        what: plain::name(&error.to_string()).into_owned(),
    })
}

/// Opens what can be read to its end.
fn open(path: &Path) -> Result<File, ReadErrorKind> {
    let check = |file: io::Result<Metadata>| {
        let file = file.map_err(ReadErrorKind::Io)?;
        if file.is_dir() {
            return Err(ReadErrorKind::Io(io::Error::from_raw_os_error(libc::EISDIR)));
        }
        if file.is_file() { Ok(()) } else { Err(ReadErrorKind::NoFile) }
    };
    // Looked at first: to open a pipe or a device may have effects.
    check(fs::metadata(path))?;
    // Something else may be there by now, whose opening would wait.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(ReadErrorKind::Io)?;
    check(file.metadata())?;
    Ok(file)
}

/// A profile that can't be read.
#[derive(Debug)]
pub struct ReadError {
    path: PathBuf,
    kind: ReadErrorKind,
}

/// Why a profile can't be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The file can't be read.
    Io(io::Error),
    /// A device, a pipe, or a socket, which may never end.
    NoFile,
    /// The file is empty.
    Empty,
    /// The file ends inside its first line, a header.
    TornHeader,
    /// The file does not begin with a header.
    NotAProfile,
    /// A run has another schema version.
    Schema {
        /// The line of its header, from 1.
        line: usize,
        /// The version.
        found: u32,
    },
    /// A line is longer than any record.
    LongLine {
        /// The line, from 1.
        line: usize,
    },
    /// A line is not a record.
    Damaged {
        /// The line, from 1.
        line: usize,
        /// Fault of the line, in words.
        what: String,
    },
}

impl ReadError {
    /// Why it can't be read.
    pub fn kind(&self) -> &ReadErrorKind {
        &self.kind
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", plain::path(&self.path), self.kind)
    }
}

impl fmt::Display for ReadErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadErrorKind::Io(source) => write!(f, "can't be read: {source}"),
            ReadErrorKind::NoFile => f.write_str(
                "is no file but a device, a pipe or a socket, which may never end: write what comes out of it to a file, and read that",
            ),
            ReadErrorKind::LongLine { line } => write!(
                f,
                "is damaged in line {line}: it is longer than {} MiB, and no record is; cut the file before that line to read the rest",
                LONGEST_LINE >> 20
            ),
            ReadErrorKind::Empty => f.write_str(
                "is empty: the program ended before it began to profile; run it again with ANDWEORC_ENABLED=1",
            ),
            ReadErrorKind::TornHeader => f.write_str(
                "ends inside its header: it was cut off, or the program was killed as it began to profile; run it again",
            ),
            ReadErrorKind::NotAProfile => f.write_str(
                "is not a profile: its first line is no header; profiles are what a run writes to ANDWEORC_OUT",
            ),
            ReadErrorKind::Schema { line, found } => write!(
                f,
                "has schema version {found} (line {line}), and this command reads version {VERSION}: use the cargo-andweorc of the \
                 andweorc that wrote it, or profile again"
            ),
            ReadErrorKind::Damaged { line, what } => write!(
                f,
                "is damaged in line {line}: {what}; cut the file before that line to read the rest"
            ),
        }
    }
}

impl error::Error for ReadError {}
