//! Data of the page's view of CPU time.

use crate::cpu::{Group, cpu as stacks_of};
use andweorc_profile::estimate::{Analysis, TargetSummary};
use andweorc_profile::{Run, StackFrame, TargetKind, TargetRecord, plain, settings};
use serde::Serialize;
use std::borrow::Cow;

/// Where CPU time went.
#[derive(Debug, Serialize)]
pub(super) struct Cpu<'a> {
    real_ms: u64,
    /// CPU time of the whole program, and of its samples.
    cpu_ms: u64,
    sampled_ms: u64,
    source: Cow<'a, str>,
    samples: u64,
    lost: u64,
    merged: u64,
    cut_off: u64,
    ended_early: u64,
    unwound: u64,
    /// Functions, each with the indices of the targets that were tested of it.
    frames: Vec<(Cow<'a, str>, Vec<usize>)>,
    /// The kind of code that each function is: 0 the program's own, 1 another crate, 2 std, or no
    /// crate.
    code: Vec<u8>,
    groups: Vec<Part<'a>>,
}

/// Chains of one part of the program.
#[derive(Debug, Serialize)]
struct Part<'a> {
    thread: Cow<'a, str>,
    task: Option<Named<'a>>,
    span: Option<Named<'a>>,
    /// Index of the chain around each, its function, and its own time in ns.
    stacks: Vec<(Option<usize>, usize, u64)>,
}

/// A kind of task or a span, with the indices of the targets that were tested of it.
#[derive(Debug, Serialize)]
struct Named<'a> {
    name: Cow<'a, str>,
    targets: Vec<usize>,
}

/// Where CPU time went, if it was sampled. `tested` tells the targets that were tested of a task or
/// a span.
pub(super) fn cpu<'a>(
    runs: &'a [Run],
    analysis: &Analysis,
    tested: impl Fn(&TargetRecord) -> Vec<usize>,
) -> Option<Cpu<'a>> {
    let cpu = stacks_of(runs);
    let named = |target: Option<&'a TargetRecord>| {
        target.map(|it| Named { name: plain::name(&it.name), targets: tested(it) })
    };
    let part = |group: Group<'a>| Part {
        thread: plain::name(group.thread),
        task: named(group.task),
        span: named(group.span),
        stacks: group.stacks.iter().map(|node| (node.parent, node.frame, node.ns)).collect(),
    };
    let function = |frame: &&'a StackFrame| {
        let kinds = [TargetKind::Function, TargetKind::FunctionSelf];
        let is = |it: &TargetSummary| kinds.contains(&it.kind) && it.name == frame.name;
        let indexed = analysis.targets.iter().enumerate();
        let targets = indexed.filter(|(_, target)| is(target)).map(|(index, _)| index).collect();
        (plain::name(&frame.name), targets)
    };
    (cpu.samples > 0).then(|| Cpu {
        real_ms: cpu.real_ns / 1_000_000,
        cpu_ms: cpu.cpu_ns / 1_000_000,
        sampled_ms: cpu.sampled_ns / 1_000_000,
        source: plain::name(cpu.source),
        samples: cpu.samples,
        lost: cpu.lost,
        merged: cpu.merged,
        cut_off: cpu.cut_off,
        ended_early: cpu.ended_early,
        unwound: cpu.unwound,
        frames: cpu.frames.iter().map(function).collect(),
        code: cpu.frames.iter().map(|frame| code(frame)).collect(),
        groups: cpu.groups.into_iter().map(part).collect(),
    })
}

/// The kind of code that a function is.
fn code(frame: &StackFrame) -> u8 {
    match settings::crate_of(&frame.name) {
        _ if frame.own => 0,
        Some(package) if !settings::is_std(package) && !is_primitive(package) => 1,
        _ => 2,
    }
}

/// Whether methods of a name that begins so are those of a type that has no crate.
fn is_primitive(name: &str) -> bool {
    let is_number = |name: &str| {
        let size = name.strip_prefix(['i', 'u', 'f']).unwrap_or_default();
        ["8", "16", "32", "64", "128", "size"].contains(&size)
    };
    is_number(name) || ["bool", "char", "str"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_known_by_its_crate() {
        let code_of = |name: &str, own| code(&StackFrame { name: name.into(), own });
        assert_eq!(code_of("shop::price", true), 0);
        assert_eq!(["serde::ser", "u7::f", "strum::f"].map(|name| code_of(name, false)), [1; 3]);
        let without = ["alloc::vec::Vec::push", "u64::pow", "usize::min", "str::len", "memcpy"];
        assert_eq!(without.map(|name| code_of(name, false)), [2; 5]);
    }
}
