//! Whole call chains of samples, by kind of task, span and thread: recorded while a run
//! [observes](crate::experiment) the program, and not in experiments or in their baselines.
//!
//! The handler of the signal knows nothing of this. The thread that resolves samples counts each
//! chain in a tree of functions, one for each group of samples, in which what starts threads and
//! polls tasks is [left out](chain).

pub(crate) mod chain;
mod unwound;

pub(super) use unwound::FramePointers;

use crate::sampler::{site_timeline, target_fraction};
use crate::target::targets;
use crate::time::Nanos;
use andweorc_profile::{StackFrame, StackGroup, StackNode, StacksRecord, TargetKind};
use andweorc_sampling::queue::Sample;
use andweorc_sampling::symbols::Frame;
use andweorc_sampling::thread_name::ThreadName;
use chain::{End, Part, fold};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// So many chains are told apart, their beginnings included.
const MAX_NODES: usize = 20_000;

/// So many bytes of names are kept.
const MAX_NAMES: usize = 1 << 20;

/// Frame around chains that are cut off.
pub(crate) const CUT_OFF: &str = "[cut off]";

/// Frame around chains that end early.
pub(crate) const EARLY: &str = "[no frame pointers]";

/// Frame of code that nobody knows a name of.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// Part of the program that a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Origin {
    thread: ThreadName,
    /// Ids of the innermost kind of task, and of the innermost span in it.
    task: Option<u32>,
    span: Option<u32>,
}

impl Origin {
    /// The origin of a sample of a thread, given the kinds of targets by their ids.
    fn of(
        sample: &Sample,
        thread: ThreadName,
        mut kind: impl FnMut(u32) -> Option<TargetKind>,
    ) -> Origin {
        let task = Some(sample.task).filter(|&task| kind(task) == Some(TargetKind::Task));
        if site_timeline::of(sample.context).is_some() {
            return Origin { thread, task: None, span: None };
        }
        let context = target_fraction::target_of(sample.context);
        match kind(context) {
            Some(TargetKind::Task) => Origin { thread, task: Some(context), span: None },
            Some(TargetKind::Span) => Origin { thread, task, span: Some(context) },
            _ => Origin { thread, task: None, span: None },
        }
    }
}

/// Call chains that were counted since the recording began.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    frames: Vec<StackFrame>,
    parts: Vec<Part>,
    numbers: HashMap<Arc<str>, u32>,
    bytes: usize,
    /// Frames of each address seen, innermost first.
    addresses: HashMap<u64, Box<[Option<u32>]>>,
    /// Kinds of targets by their ids, as far as they were asked for.
    kinds: HashMap<u32, TargetKind>,
    groups: Vec<StackGroup>,
    places: HashMap<Origin, usize>,
    /// The place of each frame inside of a node of a group.
    nodes: HashMap<(usize, Option<u32>, u32), u32>,
    samples: u64,
    /// CPU time that they stand for.
    ran: Nanos,
    merged: u64,
    cut_off: u64,
    ended_early: u64,
    unwound: u64,
}

impl Stacks {
    /// Counts a sample of a thread of this name. `look_up` tells the frames of an address.
    pub(super) fn count(
        &mut self,
        sample: &Sample,
        thread: ThreadName,
        mut look_up: impl FnMut(u64) -> Arc<[Frame]>,
    ) {
        self.samples += 1;
        self.ran += sample.ran;
        self.unwound += u64::from(sample.is_unwound());
        let origin = Origin::of(sample, thread, |id| self.kind(id));
        let mut is_whole_name = true;
        let mut chain: Vec<u32> = Vec::new();
        for (depth, &address) in sample.chain().iter().enumerate() {
            if !self.addresses.contains_key(&address) {
                let frames = look_up(address);
                let frames = frames.iter().map(|it| self.number(&it.function, it.is_own)).collect();
                self.addresses.insert(address, frames);
            }
            let frames = &self.addresses[&address];
            is_whole_name &= frames.iter().all(Option::is_some);
            chain.extend(frames.iter().flatten());
            if depth == 0 && frames.is_empty() {
                chain.extend(self.number(&UNKNOWN.into(), false));
            }
        }
        chain.reverse();
        let part = |frame| self.parts[frame as usize];
        let end = fold(&mut chain, origin.task.is_some(), sample.is_full(), part);
        let around = match end {
            End::Whole => None,
            End::CutOff => {
                self.cut_off += 1;
                self.number(&CUT_OFF.into(), false)
            }
            End::Early => {
                self.ended_early += 1;
                self.number(&EARLY.into(), false)
            }
        };
        let group = self.group(origin);
        let is_apart = self.add(group, around.into_iter().chain(chain));
        self.merged += u64::from(!(is_apart && is_whole_name));
    }

    fn kind(&mut self, id: u32) -> Option<TargetKind> {
        if id != 0 && !self.kinds.contains_key(&id) {
            self.kinds.extend(targets().into_iter().map(|target| (target.id(), target.kind())));
        }
        self.kinds.get(&id).copied()
    }

    /// The number of a function; `None` where there are too many.
    fn number(&mut self, name: &Arc<str>, is_own: bool) -> Option<u32> {
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        if self.bytes + name.len() > MAX_NAMES {
            return None;
        }
        self.bytes += name.len();
        let number = self.frames.len() as u32;
        self.frames.push(StackFrame { name: name.to_string(), own: is_own });
        self.parts.push(Part::of(name));
        self.numbers.insert(Arc::clone(name), number);
        Some(number)
    }

    fn group(&mut self, origin: Origin) -> usize {
        *self.places.entry(origin).or_insert_with(|| {
            self.groups.push(StackGroup {
                thread: origin.thread.to_string(),
                task: origin.task,
                span: origin.span,
                stacks: Vec::new(),
            });
            self.groups.len() - 1
        })
    }

    /// Counts a chain of a group, the outermost frame first: as what is around it, from where on
    /// there are too many. Returns whether it is told apart.
    fn add(&mut self, group: usize, chain: impl IntoIterator<Item = u32>) -> bool {
        let stacks = &mut self.groups[group].stacks;
        let mut around: Option<u32> = None;
        let mut is_apart = true;
        for frame in chain {
            let key = (group, around, frame);
            let node = match self.nodes.get(&key) {
                Some(&node) => node,
                None if self.nodes.len() < MAX_NODES => {
                    let node = stacks.len() as u32;
                    stacks.push(StackNode { parent: around, frame, samples: 0 });
                    self.nodes.insert(key, node);
                    node
                }
                None => {
                    is_apart = false;
                    break;
                }
            };
            around = Some(node);
        }
        match around {
            Some(node) => stacks[node as usize].samples += 1,
            None => is_apart = false,
        }
        is_apart
    }

    /// Forgets the addresses in these ranges, whose code was loaded or unloaded.
    pub(super) fn forget(&mut self, changed: &[Range<u64>]) {
        self.addresses.retain(|address, _| !changed.iter().any(|code| code.contains(address)));
    }

    /// The record of what was counted: the times of the program and what was lost are set by who
    /// knows them.
    pub(super) fn into_record(self) -> StacksRecord {
        StacksRecord {
            sample_ns: self.ran.0.unsigned_abs() / self.samples.max(1),
            frames: self.frames,
            groups: self.groups,
            samples: self.samples,
            merged: self.merged,
            cut_off: self.cut_off,
            ended_early: self.ended_early,
            unwound: self.unwound,
            ..StacksRecord::default()
        }
    }
}

#[cfg(test)]
mod tests;
