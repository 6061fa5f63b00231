//! Stacks of named frames with values: the form of a profile that every format is written from.

use super::allocations::allocations;
use super::table::Table;
use crate::cpu::{Group, cpu};
use crate::flame::{self, flame};
use andweorc_profile::estimate::AllocationSummary;
use andweorc_profile::{ExampleState, Run, TargetKind, TargetRecord, plain};
use std::collections::HashMap;

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Nanoseconds,
    Count,
    Bytes,
}

/// One value of each sample.
#[derive(Debug)]
pub(super) struct Quantity {
    /// Name in formats that have names without spaces.
    pub(super) name: &'static str,
    /// Name for people.
    pub(super) title: &'static str,
    pub(super) unit: Unit,
}

const WALL: [Quantity; 1] =
    [Quantity { name: "wall", title: "Wall time", unit: Unit::Nanoseconds }];

const CPU: [Quantity; 1] = [Quantity { name: "cpu", title: "CPU time", unit: Unit::Nanoseconds }];

/// Names as pprof's own profiles of memory have them.
pub(super) const ALLOCATIONS: [Quantity; 2] = [
    Quantity { name: "alloc_objects", title: "Allocations", unit: Unit::Count },
    Quantity { name: "alloc_space", title: "Bytes allocated", unit: Unit::Bytes },
];

/// Part of the program: a span, a kind of task, or what is known of neither.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    pub(super) kind: Option<TargetKind>,
    /// Name that can be shown everywhere.
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
}

/// Values of one stack, in one state.
#[derive(Debug)]
pub(super) struct Sample {
    /// Indices of its frames, the outermost first.
    pub(super) stack: Vec<usize>,
    /// The state that wall time was spent in.
    pub(super) state: Option<ExampleState>,
    /// Name of what ended the wait, if another task did that is known.
    pub(super) woken_by: Option<String>,
    /// A value for each of the quantities.
    pub(super) values: Vec<u64>,
}

/// Samples of one source.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) quantities: &'static [Quantity],
    pub(super) samples: Vec<Sample>,
    /// Length of the stretches in which it was measured, ns.
    pub(super) real_ns: u64,
    /// Sentences on what was not recorded, or not told apart.
    pub(super) losses: Vec<String>,
}

/// A profile as stacks.
#[derive(Debug)]
pub(super) struct Stacks {
    /// Name of the program.
    pub(super) program: String,
    pub(super) build_id: Option<String>,
    /// Start of the first run, ms since the Unix epoch.
    pub(super) start_unix_ms: u64,
    pub(super) frames: Vec<Frame>,
    /// Sources that have any sample.
    pub(super) measured: Vec<Measured>,
}

impl Unit {
    /// The unit as pprof and OTLP write it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Count => "count",
            Unit::Bytes => "bytes",
        }
    }
}

impl Measured {
    /// Each quantity, and its place in the values of the samples.
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, &'static Quantity)> {
        self.quantities.iter().enumerate()
    }
}

impl Sample {
    /// The state as a frame, for formats that have nothing but frames: `[other task: NAME]`.
    pub(super) fn state_frame(&self) -> Option<String> {
        let state = self.state?.words();
        Some(match &self.woken_by {
            Some(by) => format!("[{state}: {by}]"),
            None => format!("[{state}]"),
        })
    }
}

impl Stacks {
    /// The wall time of these runs.
    ///
    /// # Errors
    ///
    /// When none was recorded.
    pub(super) fn of_wall_time(runs: &[Run]) -> Result<Stacks, String> {
        let mut frames = Table::of([]);
        let wall = wall(runs, &mut frames).ok_or(
            "no wall time was recorded in this profile: an older version wrote it, or the program \
             had no load while it was observed",
        )?;
        Ok(Stacks::new(runs, frames, vec![wall]))
    }

    /// The CPU time of these runs, by task or thread, span and call chain.
    ///
    /// # Errors
    ///
    /// When no samples were taken.
    pub(super) fn of_cpu_time(runs: &[Run]) -> Result<Stacks, String> {
        let mut frames = Table::of([]);
        let cpu = cpu_time(runs, &mut frames).ok_or(
            "no samples were taken in this profile: profile with \
             `cargo andweorc run --targets functions`",
        )?;
        Ok(Stacks::new(runs, frames, vec![cpu]))
    }

    /// The memory that each target allocated in these runs.
    ///
    /// # Errors
    ///
    /// When no allocations were counted.
    pub(super) fn of_allocations(runs: &[Run]) -> Result<Stacks, String> {
        let mut frames = Table::of([]);
        let allocations = allocations(runs, &mut frames).ok_or(
            "no allocations were counted in this profile: make `andweorc::Alloc` the allocator of \
             the program (feature `alloc`, docs/book/src/how-to/allocations.md), and profile it \
             again",
        )?;
        Ok(Stacks::new(runs, frames, vec![allocations]))
    }

    /// All that these runs have in stacks.
    ///
    /// # Errors
    ///
    /// When that is nothing.
    pub(super) fn of_all(runs: &[Run]) -> Result<Stacks, String> {
        let mut frames = Table::of([]);
        let sources =
            [wall(runs, &mut frames), cpu_time(runs, &mut frames), allocations(runs, &mut frames)];
        let measured: Vec<Measured> = sources.into_iter().flatten().collect();
        if measured.is_empty() {
            return Err(
                "neither wall time nor allocations were recorded in this profile: an older \
                 version wrote it, or the program had no load while it was observed"
                    .to_owned(),
            );
        }
        Ok(Stacks::new(runs, frames, measured))
    }

    /// Labels of a sample, which say what its stack and values do not: keys and texts, each key
    /// once.
    pub(super) fn labels<'a>(&'a self, of: &'a Sample) -> Vec<(&'static str, &'a str)> {
        let mut frames = of.stack.iter().map(|frame| &self.frames[*frame]);
        let task = frames.find(|frame| frame.kind == Some(TargetKind::Task));
        let labels = [
            ("state", of.state.map(ExampleState::words)),
            ("woken_by", of.woken_by.as_deref()),
            ("task", task.map(|frame| frame.name.as_str())),
        ];
        labels.into_iter().filter_map(|(key, text)| Some((key, text?))).collect()
    }

    fn new(runs: &[Run], frames: Table<Frame>, measured: Vec<Measured>) -> Stacks {
        let header = runs.first().map(|run| &run.header);
        Stacks {
            program: header.map_or_else(String::new, |it| plain::name(&it.program).into_owned()),
            build_id: header.and_then(|it| Some(plain::name(it.build_id.as_ref()?).into_owned())),
            start_unix_ms: header.map_or(0, |it| it.start_unix_ms),
            frames: frames.into_items(),
            measured,
        }
    }
}

/// Wall time by stacks of spans and by state.
fn wall(runs: &[Run], frames: &mut Table<Frame>) -> Option<Measured> {
    let flame = flame(runs);
    let mut stacks: Vec<Vec<usize>> = Vec::with_capacity(flame.frames.len());
    let mut samples = Vec::new();
    for of in &flame.frames {
        let mut stack = of.parent.map_or_else(Vec::new, |parent| stacks[parent].clone());
        stack.push(frames.index(&target_frame(of.target)));
        let mut add = |state: ExampleState, woken_by: Option<String>, ns: u64| {
            if ns > 0 {
                let (stack, state, values) = (stack.clone(), Some(state), vec![ns]);
                samples.push(Sample { stack, state, woken_by, values });
            }
        };
        for (state, ns) in ExampleState::ALL.into_iter().zip(of.states) {
            if state == ExampleState::Task {
                for (by, ns) in &of.wakers {
                    add(state, by.map(|by| plain::name(&by.name).into_owned()), *ns);
                }
            } else {
                add(state, None, ns);
            }
        }
        stacks.push(stack);
    }
    let losses = flame.losses();
    let measured = Measured { quantities: &WALL, samples, real_ns: flame.real_ns, losses };
    (!measured.samples.is_empty()).then_some(measured)
}

/// CPU time by task or thread, span and call chain.
fn cpu_time(runs: &[Run], frames: &mut Table<Frame>) -> Option<Measured> {
    let cpu = cpu(runs);
    let (mut samples, mut places) = (Vec::<Sample>::new(), HashMap::<Vec<usize>, usize>::new());
    for group in &cpu.groups {
        let mut stacks: Vec<Vec<usize>> = Vec::with_capacity(group.stacks.len());
        for node in &group.stacks {
            let mut stack =
                node.parent.map_or_else(|| part(group, frames), |parent| stacks[parent].clone());
            stack.push(frames.index(&named_frame(&cpu.frames[node.frame].name)));
            if node.ns > 0 {
                // The same task may run on threads of several names.
                let place = *places.entry(stack.clone()).or_insert_with(|| {
                    let stack = stack.clone();
                    samples.push(Sample { stack, state: None, woken_by: None, values: vec![0] });
                    samples.len() - 1
                });
                let sum = &mut samples[place].values[0];
                *sum = sum.saturating_add(node.ns);
            }
            stacks.push(stack);
        }
    }
    let losses = [
        (cpu.lost, "samples were lost."),
        (cpu.merged, "samples could not be told apart and are counted as the stack around them."),
    ];
    let losses = losses.into_iter().filter(|(count, _)| *count > 0);
    let losses = losses.map(|(count, text)| format!("{count} {text}")).collect();
    let measured = Measured { quantities: &CPU, samples, real_ns: cpu.real_ns, losses };
    (!measured.samples.is_empty()).then_some(measured)
}

/// The frames around the chains of a group: the part of the program that it is of.
fn part(group: &Group<'_>, frames: &mut Table<Frame>) -> Vec<usize> {
    let outermost = match group.task {
        Some(task) => target_frame(Some(task)),
        None => named_frame(&format!("thread {}", group.thread)),
    };
    let around = [Some(outermost), group.span.map(|span| target_frame(Some(span)))];
    around.iter().flatten().map(|frame| frames.index(frame)).collect()
}

/// A frame of which nothing but a name is known.
fn named_frame(name: &str) -> Frame {
    Frame { kind: None, name: plain::name(name).into_owned(), file: None, line: None }
}

fn target_frame(target: Option<&TargetRecord>) -> Frame {
    Frame {
        kind: target.map(|it| it.kind),
        name: target.map_or(flame::OTHER.into(), |it| plain::name(&it.name)).into_owned(),
        file: target.and_then(|it| shown(it.file.as_ref())),
        line: target.and_then(|it| it.line),
    }
}

pub(super) fn allocating_frame(of: &AllocationSummary) -> Frame {
    Frame {
        kind: of.kind,
        name: plain::name(&of.name).into_owned(),
        file: shown(of.file.as_ref()),
        line: of.line,
    }
}

pub(super) fn shown(file: Option<&String>) -> Option<String> {
    file.map(|file| plain::name(file).into_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A span in another, which runs for 5 ns; a task that waits for 7 ns; and 2 allocations of it.
    pub(in crate::export) fn made_up() -> Stacks {
        let frame = |kind, name: &str, line| Frame {
            kind: Some(kind),
            name: name.into(),
            file: Some("src/shop.rs".into()),
            line: Some(line),
        };
        let sample = |stack: &[usize], state, woken_by: Option<&str>, values: &[u64]| Sample {
            stack: stack.to_vec(),
            state,
            woken_by: woken_by.map(str::to_owned),
            values: values.to_vec(),
        };
        let wall = Measured {
            quantities: &WALL,
            samples: vec![
                sample(&[0, 1], Some(ExampleState::Running), None, &[5]),
                sample(&[2], Some(ExampleState::Task), Some("shop"), &[7]),
            ],
            real_ns: 1_000,
            losses: vec!["One is lost.".into()],
        };
        let allocations = Measured {
            quantities: &ALLOCATIONS,
            samples: vec![sample(&[2], None, None, &[2, 64])],
            real_ns: 2_000,
            losses: Vec::new(),
        };
        Stacks {
            program: "shop".into(),
            build_id: None,
            start_unix_ms: 1,
            frames: vec![
                frame(TargetKind::Span, "shop", 10),
                frame(TargetKind::Span, "stock", 12),
                frame(TargetKind::Task, "audit", 40),
            ],
            measured: vec![wall, allocations],
        }
    }
}
