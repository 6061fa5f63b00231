//! Folded stacks: what most flame graph tools read.

use crate::cpu::{Cpu, Group, cpu};
use crate::flame::{Flame, State, flame};
use andweorc_profile::{Run, TargetRecord, plain};
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write;

/// Wall time by stacks of spans, a line for each stack and state.
pub(super) fn folded(runs: &[Run]) -> Result<String, Box<dyn Error>> {
    let flame = flame(runs);
    if flame.frames.is_empty() {
        return Err(
            "no wall time was recorded in this profile: an older version wrote it, or the \
                    program had no load while it was observed"
                .into(),
        );
    }
    Ok(lines(&flame))
}

/// CPU time by task or thread, span and call chain, a line for each chain.
pub(super) fn folded_cpu(runs: &[Run]) -> Result<String, Box<dyn Error>> {
    let cpu = cpu(runs);
    if cpu.samples == 0 {
        return Err("no samples were taken in this profile: profile with \
                    `cargo andweorc run --targets functions`"
            .into());
    }
    Ok(cpu_lines(&cpu))
}

/// A line for each chain that had any time of its own, in the order in which they were seen first.
fn cpu_lines(cpu: &Cpu<'_>) -> String {
    let (mut lines, mut places) = (Vec::<(String, u64)>::new(), HashMap::<String, usize>::new());
    for group in &cpu.groups {
        let mut chains = Vec::<String>::new();
        for node in &group.stacks {
            let around = node.parent.map_or_else(|| part(group), |parent| chains[parent].clone());
            let chain = format!("{around};{}", frame(&cpu.frames[node.frame].name));
            if node.ns > 0 {
                // The same task may run on threads of several names.
                let place = *places.entry(chain.clone()).or_insert_with(|| {
                    lines.push((chain.clone(), 0));
                    lines.len() - 1
                });
                lines[place].1 = lines[place].1.saturating_add(node.ns);
            }
            chains.push(chain);
        }
    }
    lines.into_iter().fold(String::new(), |mut text, (chain, ns)| {
        writeln!(text, "{chain} {ns}").expect("a string takes all");
        text
    })
}

/// The part of the program that a group is of, as the frames around its chains.
fn part(group: &Group<'_>) -> String {
    let outer = group
        .task
        .map_or_else(|| format!("thread {}", frame(group.thread)), |task| called(Some(task)));
    group.span.map_or(outer.clone(), |span| format!("{outer};{}", called(Some(span))))
}

/// A line for each stack and state that had any time.
fn lines(flame: &Flame<'_>) -> String {
    let (mut text, mut stacks) = (String::new(), Vec::<String>::new());
    for frame in &flame.frames {
        let around = frame.parent.map(|parent| format!("{};", stacks[parent]));
        let stack = around.unwrap_or_default() + &called(frame.target);
        let mut line = |state: &str, ns: u64| {
            if ns > 0 {
                writeln!(text, "{stack};[{state}] {ns}").expect("a string takes all");
            }
        };
        for (state, ns) in State::ALL.into_iter().zip(frame.states) {
            if state == State::Task {
                for (by, ns) in &frame.wakers {
                    line(&waited_for(*by), *ns);
                }
            } else {
                line(state.words(), ns);
            }
        }
        stacks.push(stack);
    }
    text
}

/// A target as a frame, in which nothing separates frames.
fn called(target: Option<&TargetRecord>) -> String {
    target.map_or("other requests".to_owned(), |it| frame(&it.name))
}

/// A name as a frame.
fn frame(name: &str) -> String {
    plain::name(name).replace(';', ":")
}

/// A wait for another task as a frame.
fn waited_for(by: Option<&TargetRecord>) -> String {
    let state = State::Task.words();
    by.map_or(state.to_owned(), |by| format!("{state}: {}", called(Some(by))))
}
