//! Call chains of sampled allocations as functions and lines, on a thread of andweorc's own.

use super::poisson::PARTS;
use super::sampled::{DEPTH, SampledChain, SampledSnapshot};
use crate::sampler::stacks::chain::{End, Part, fold};
use crate::sampler::stacks::{CUT_OFF, EARLY, UNKNOWN};
use crate::symbols::{NamedFrame, Symbols};
use andweorc_profile::settings::crate_of;
use andweorc_profile::{
    AllocationFrame, AllocationGroup, AllocationNode, AllocationStacksRecord, TargetKind, plain,
};
use std::collections::HashMap;

/// So many chains are told apart, their beginnings included.
const MAX_NODES: usize = 10_000;

/// So many functions and lines are told apart.
const MAX_FRAMES: usize = 8_000;

impl SampledSnapshot {
    /// The record of what was sampled since `before`, in a stretch of `real_ns`. `kind` tells the
    /// kind of a target by its id. `None` where nothing was sampled, or the program has no symbols.
    pub(crate) fn record_since(
        &self,
        before: &SampledSnapshot,
        real_ns: u64,
        kind: impl Fn(u32) -> Option<TargetKind>,
        open: impl FnOnce() -> Option<Symbols>,
    ) -> Option<AllocationStacksRecord> {
        let (chains, lost) = self.since(before);
        if chains.is_empty() && lost == 0 {
            return None;
        }
        let mut symbols = open()?;
        let mut record = record(&chains, kind, |address| symbols.frames_at(address));
        (record.real_ns, record.lost) = (real_ns, lost);
        record.samples += lost;
        Some(record)
    }
}

/// Trees of chains that are being made.
#[derive(Debug, Default)]
struct Trees {
    record: AllocationStacksRecord,
    parts: Vec<Part>,
    numbers: HashMap<AllocationFrame, u32>,
    groups: HashMap<(u32, String), usize>,
    nodes: HashMap<(usize, Option<u32>, u32), u32>,
}

fn record(
    chains: &[SampledChain],
    kind: impl Fn(u32) -> Option<TargetKind>,
    mut look_up: impl FnMut(u64) -> Vec<NamedFrame>,
) -> AllocationStacksRecord {
    let mut trees = Trees::default();
    let mut known: HashMap<u64, Vec<NamedFrame>> = HashMap::new();
    for sampled in chains {
        let frames: Vec<&NamedFrame> = {
            for &address in &sampled.chain {
                known.entry(address).or_insert_with(|| look_up(address));
            }
            sampled.chain.iter().flat_map(|address| &known[address]).collect()
        };
        let own = frames.iter().take_while(|frame| is_allocator(&frame.function)).count();
        trees.add(sampled, &frames[own..], kind(sampled.target) == Some(TargetKind::Task));
    }
    trees.record
}

/// Whether a function is on the way from who allocates to the allocator, andweorc's part included.
fn is_allocator(function: &str) -> bool {
    let is_andweorc =
        crate_of(function).is_some_and(|it| it == "andweorc" || it.starts_with("andweorc_"));
    let is_rusts = ["__rust_alloc", "__rust_realloc", "__rust_no_alloc_shim"]
        .iter()
        .any(|part| function.contains(part));
    is_andweorc
        || is_rusts
        || function.starts_with("alloc::alloc::")
        || function.starts_with("<andweorc_")
        || function.starts_with("<alloc::alloc::Global")
}

impl Trees {
    /// Adds a chain, the innermost frame first.
    fn add(&mut self, sampled: &SampledChain, frames: &[&NamedFrame], in_task: bool) {
        let [bytes, parts, samples] = sampled.sums;
        self.record.samples += samples;
        let mut is_whole = true;
        let mut chain: Vec<u32> = Vec::with_capacity(frames.len());
        for frame in frames.iter().rev() {
            match self.number(frame) {
                Some(number) => chain.push(number),
                None => is_whole = false,
            }
        }
        if chain.is_empty() {
            chain.extend(self.mark(UNKNOWN));
        }
        let roles = &self.parts;
        let is_full = sampled.chain.len() == DEPTH;
        let around = match fold(&mut chain, in_task, is_full, |frame| roles[frame as usize]) {
            End::Whole => None,
            End::CutOff => {
                self.record.cut_off += samples;
                self.mark(CUT_OFF)
            }
            End::Early => {
                self.record.ended_early += samples;
                self.mark(EARLY)
            }
        };
        let group = self.group(sampled);
        let mut node: Option<u32> = None;
        for frame in around.into_iter().chain(chain) {
            match self.node(group, node, frame) {
                Some(inner) => node = Some(inner),
                None => {
                    is_whole = false;
                    break;
                }
            }
        }
        match node {
            Some(node) => {
                let node = &mut self.record.groups[group].stacks[node as usize];
                node.samples += samples;
                node.bytes += bytes;
                node.count += (parts + PARTS / 2) / PARTS;
                self.record.merged += if is_whole { 0 } else { samples };
            }
            None => self.record.merged += samples,
        }
    }

    fn number(&mut self, frame: &NamedFrame) -> Option<u32> {
        self.number_of(AllocationFrame {
            name: plain::cut_name(&frame.function).into_owned(),
            file: frame.file.as_deref().map(|file| plain::cut_name(file).into_owned()),
            line: frame.line,
            own: frame.is_in_scope,
        })
    }

    /// The number of what stands for code that is not known.
    fn mark(&mut self, name: &str) -> Option<u32> {
        self.number_of(AllocationFrame { name: name.into(), file: None, line: None, own: false })
    }

    /// The number of a frame; `None` where there are too many.
    fn number_of(&mut self, frame: AllocationFrame) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&frame) {
            return Some(number);
        }
        let number = self.record.frames.len();
        if number >= MAX_FRAMES {
            return None;
        }
        self.parts.push(Part::of(&frame.name));
        self.record.frames.push(frame.clone());
        self.numbers.insert(frame, number as u32);
        Some(number as u32)
    }

    fn group(&mut self, sampled: &SampledChain) -> usize {
        let thread = sampled.thread.to_string();
        let target = (sampled.target != 0).then_some(sampled.target);
        *self.groups.entry((sampled.target, thread.clone())).or_insert_with(|| {
            let thread = target.is_none().then(|| plain::cut_name(&thread).into_owned());
            self.record.groups.push(AllocationGroup { target, thread, stacks: Vec::new() });
            self.record.groups.len() - 1
        })
    }

    /// The place of a frame inside of a chain; `None` where there are too many.
    fn node(&mut self, group: usize, parent: Option<u32>, frame: u32) -> Option<u32> {
        let key = (group, parent, frame);
        if let Some(&node) = self.nodes.get(&key) {
            return Some(node);
        }
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        let stacks = &mut self.record.groups[group].stacks;
        let node = stacks.len() as u32;
        stacks.push(AllocationNode { parent, frame, samples: 0, bytes: 0, count: 0 });
        self.nodes.insert(key, node);
        Some(node)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use andweorc_sampling::thread_name::ThreadName;

    fn frame(function: &str, line: u32) -> NamedFrame {
        let is_in_scope = function.starts_with("shop::");
        let (function, file) = (function.to_owned(), Some("src/shop.rs".to_owned()));
        NamedFrame { function, file, line: Some(line), is_in_scope }
    }

    /// The frames at an address: the allocator's, of std, two lines of one function with what is
    /// inlined there, and a runtime.
    fn look_up(address: u64) -> Vec<NamedFrame> {
        match address {
            1 => vec![frame("andweorc_sampling::own_chain::own_chain", 1)],
            2 => vec![frame("<andweorc_alloc::Alloc as core::alloc::GlobalAlloc>::alloc", 1)],
            3 => vec![frame("__rustc::__rust_alloc", 0), frame("alloc::alloc::alloc", 9)],
            4 => vec![frame("alloc::vec::Vec::push", 5)],
            5 => vec![frame("shop::price", 7), frame("shop::handle", 20)],
            6 => vec![frame("shop::handle", 30)],
            7 => vec![frame("tokio::runtime::task::raw::poll", 1)],
            _ => vec![],
        }
    }

    fn sampled(target: u32, thread: &str, chain: &[u64], bytes: u64) -> SampledChain {
        SampledChain {
            target,
            thread: ThreadName::from(thread.as_bytes()),
            chain: chain.to_vec(),
            sums: [bytes, PARTS * bytes / 10, 1],
        }
    }

    /// The target of a group, and its chains with their bytes.
    type Shown = (Option<u32>, Vec<(String, u64)>);

    /// For each group its chains with their bytes, as names and lines from the outermost on.
    fn shown(record: &AllocationStacksRecord) -> Vec<Shown> {
        let shown = |group: &AllocationGroup| {
            let mut paths: Vec<String> = Vec::new();
            let mut rows = Vec::new();
            for node in &group.stacks {
                let AllocationFrame { name, line, .. } = &record.frames[node.frame as usize];
                let around = node.parent.map(|it| paths[it as usize].clone() + " > ");
                let line = line.map_or(String::new(), |line| format!(":{line}"));
                paths.push(around.unwrap_or_default() + name + &line);
                if node.bytes > 0 {
                    rows.push((paths.last().unwrap().clone(), node.bytes));
                }
            }
            (group.target, rows)
        };
        record.groups.iter().map(shown).collect()
    }

    #[test]
    fn chain_goes_from_the_task_to_the_line_without_the_allocator() {
        let chains = [
            sampled(7, "", &[1, 2, 3, 4, 5, 7], 100),
            sampled(7, "", &[1, 2, 3, 6, 7], 50),
            sampled(0, "db", &[1, 2], 30),
        ];
        let kind = |id| (id == 7).then_some(TargetKind::Task);
        let record = record(&chains, kind, look_up);
        let text = |text: &str, bytes| (text.to_owned(), bytes);
        let inlined = "shop::handle:20 > shop::price:7 > alloc::vec::Vec::push:5";
        let task = vec![text(inlined, 100), text("shop::handle:30", 50)];
        let outside = vec![text("[no frame pointers] > [unknown]", 30)];
        assert_eq!(shown(&record), [(Some(7), task), (None, outside)]);
        assert_eq!(record.groups[1].thread.as_deref(), Some("db"));
        assert_eq!((record.samples, record.merged, record.ended_early), (3, 0, 1));
        assert!(record.frames.iter().any(|it| it.name == "shop::price" && it.own));
    }

    #[test]
    fn chains_beyond_those_that_are_told_apart_are_that_around_them() {
        let chains: Vec<_> =
            (0..MAX_NODES as u64 + 5).map(|at| sampled(7, "", &[100 + at, 7], 1)).collect();
        let look_up = |address: u64| match address {
            7 => look_up(7),
            it => vec![frame("shop::generated", it as u32), frame("shop::handle", 1)],
        };
        let record = record(&chains, |_| Some(TargetKind::Task), look_up);
        assert!(record.frames.len() <= MAX_FRAMES);
        let nodes: Vec<_> = record.groups.iter().flat_map(|it| &it.stacks).collect();
        assert!(nodes.len() <= MAX_NODES && record.merged > 0);
        assert_eq!(nodes.iter().map(|it| it.samples).sum::<u64>(), record.samples);
    }
}
