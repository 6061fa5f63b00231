//! Where CPU time went, of all runs of a profile together: trees of call chains by name.

use crate::flame::{Identity, identity};
use andweorc_profile::{Run, StackFrame, StackGroup, StacksRecord, TargetRecord};
use std::collections::HashMap;

/// So many chains are told apart, as in one run.
const MAX_NODES: usize = 20_000;

/// The call chains of all runs.
#[derive(Debug, Default)]
pub(crate) struct Cpu<'a> {
    /// Functions, each once.
    pub(crate) frames: Vec<&'a StackFrame>,
    pub(crate) groups: Vec<Group<'a>>,
    /// Length of the stretches that were sampled, ns.
    pub(crate) real_ns: u64,
    /// CPU time of the program in them, and of that what the samples stand for, ns.
    pub(crate) cpu_ns: u64,
    pub(crate) sampled_ns: u64,
    /// Name of the first run's sampler.
    pub(crate) source: &'a str,
    pub(crate) samples: u64,
    pub(crate) lost: u64,
    /// Samples that are counted as a chain around theirs.
    pub(crate) merged: u64,
    pub(crate) cut_off: u64,
    pub(crate) ended_early: u64,
    pub(crate) unwound: u64,
}

/// Chains of one part of the program.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) thread: &'a str,
    pub(crate) task: Option<&'a TargetRecord>,
    pub(crate) span: Option<&'a TargetRecord>,
    /// Each after the one around it.
    pub(crate) stacks: Vec<Node>,
}

/// A call chain, without those that go on from it.
#[derive(Debug)]
pub(crate) struct Node {
    /// Index of the chain around it.
    pub(crate) parent: Option<usize>,
    /// Index of its innermost function.
    pub(crate) frame: usize,
    /// Its own CPU time, ns.
    pub(crate) ns: u64,
}

/// Places of what is known by its name.
#[derive(Debug, Default)]
struct Places<'a> {
    frames: HashMap<&'a str, usize>,
    groups: HashMap<(&'a str, Identity<'a>, Identity<'a>), usize>,
    nodes: HashMap<(usize, Option<usize>, usize), usize>,
}

/// The call chains of these runs. Empty where nothing was sampled.
pub(crate) fn cpu(runs: &[Run]) -> Cpu<'_> {
    let (mut cpu, mut places) = (Cpu::default(), Places::default());
    for run in runs {
        let targets: HashMap<u32, &TargetRecord> =
            run.targets.iter().map(|target| (target.id, target)).collect();
        for record in &run.stacks {
            cpu.add(record, &targets, &mut places);
        }
    }
    cpu
}

impl<'a> Cpu<'a> {
    fn add(
        &mut self,
        record: &'a StacksRecord,
        targets: &HashMap<u32, &'a TargetRecord>,
        places: &mut Places<'a>,
    ) {
        // A profile may say anything.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.real_ns, record.real_ns);
        add(&mut self.cpu_ns, record.cpu_ns);
        add(&mut self.sampled_ns, record.samples.saturating_mul(record.sample_ns));
        add(&mut self.samples, record.samples);
        add(&mut self.lost, record.lost);
        add(&mut self.merged, record.merged);
        add(&mut self.cut_off, record.cut_off);
        add(&mut self.ended_early, record.ended_early);
        add(&mut self.unwound, record.unwound);
        if self.source.is_empty() {
            self.source = &record.source;
        }
        let number = |frame: &'a StackFrame| {
            *places.frames.entry(&frame.name).or_insert_with(|| {
                self.frames.push(frame);
                self.frames.len() - 1
            })
        };
        let frames: Vec<usize> = record.frames.iter().map(number).collect();
        for group in &record.groups {
            let target = |id: Option<u32>| id.and_then(|id| targets.get(&id).copied());
            let (task, span) = (target(group.task), target(group.span));
            let key = (group.thread.as_str(), identity(task), identity(span));
            let place = *places.groups.entry(key).or_insert_with(|| {
                let stacks = Vec::new();
                self.groups.push(Group { thread: &group.thread, task, span, stacks });
                self.groups.len() - 1
            });
            self.add_chains(place, group, &frames, record.sample_ns, &mut places.nodes);
        }
    }

    /// Adds the chains of a group to the one at `place`.
    fn add_chains(
        &mut self,
        place: usize,
        group: &StackGroup,
        frames: &[usize],
        sample_ns: u64,
        nodes: &mut HashMap<(usize, Option<usize>, usize), usize>,
    ) {
        let stacks = &mut self.groups[place].stacks;
        let mut known: Vec<Option<usize>> = Vec::with_capacity(group.stacks.len());
        for node in &group.stacks {
            let parent = node.parent.and_then(|parent| known[parent as usize]);
            let is_lost = node.parent.is_some() && parent.is_none();
            let (frame, many) = (frames[node.frame as usize], nodes.len());
            let own = match nodes.get(&(place, parent, frame)) {
                Some(&own) if !is_lost => Some(own),
                None if !is_lost && many < MAX_NODES => {
                    nodes.insert((place, parent, frame), stacks.len());
                    stacks.push(Node { parent, frame, ns: 0 });
                    Some(stacks.len() - 1)
                }
                _ => {
                    self.merged = self.merged.saturating_add(node.samples);
                    parent
                }
            };
            if let Some(own) = own {
                let ns = node.samples.saturating_mul(sample_ns);
                stacks[own].ns = stacks[own].ns.saturating_add(ns);
            }
            known.push(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andweorc_profile::{Header, Record, StackNode, TargetKind};

    /// A run with chains of one span that are `a`, `a > b` and so on, each of two samples of 3 ns.
    fn run(id: u32, names: &[&str]) -> Run {
        let mut run = Run::new(Header::new("shop"));
        run.push(Record::Target(TargetRecord::new(id, TargetKind::Span, "checkout")));
        let own = |(at, _)| StackNode {
            parent: (at as u32).checked_sub(1),
            frame: at as u32,
            samples: 2,
        };
        run.push(Record::Stacks(StacksRecord {
            sample_ns: 3,
            samples: 2 * names.len() as u64,
            frames: names.iter().map(|&name| StackFrame { name: name.into(), own: true }).collect(),
            groups: vec![StackGroup {
                thread: "main".into(),
                task: None,
                span: Some(id),
                stacks: names.iter().enumerate().map(own).collect(),
            }],
            ..StacksRecord::default()
        }));
        run
    }

    #[test]
    fn chains_of_two_runs_are_one_by_their_names() {
        let runs = [run(1, &["a", "b"]), run(7, &["a", "c", "b"])];
        let cpu = cpu(&runs);
        assert_eq!((cpu.groups.len(), cpu.samples, cpu.sampled_ns), (1, 10, 30));
        let group = &cpu.groups[0];
        let rows: Vec<_> = group
            .stacks
            .iter()
            .map(|node| (node.parent, cpu.frames[node.frame].name.as_str(), node.ns))
            .collect();
        assert_eq!(
            rows,
            [(None, "a", 12), (Some(0), "b", 6), (Some(0), "c", 6), (Some(2), "b", 6)]
        );
        assert_eq!((group.thread, group.span.unwrap().name.as_str()), ("main", "checkout"));
    }

    #[test]
    fn chains_beyond_those_that_are_told_apart_are_that_around_them() {
        let names: Vec<String> = (0..MAX_NODES + 5).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let runs = [run(1, &names)];
        let cpu = cpu(&runs);
        let stacks = &cpu.groups[0].stacks;
        assert_eq!((stacks.len(), cpu.merged), (MAX_NODES, 10));
        assert_eq!(stacks.last().unwrap().ns, 6 * 6);
        assert_eq!(stacks.iter().map(|node| node.ns).sum::<u64>(), cpu.sampled_ns);
    }
}
