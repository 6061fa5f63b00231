//! Folded stacks: what most flame graph tools read.

use super::stacks::{Frame, Stacks};
use std::fmt::Write;

/// One quantity, a line for each stack and state that had any: of allocations that is their bytes,
/// the last of theirs.
pub(super) fn folded(stacks: &Stacks) -> String {
    let mut text = String::new();
    for sample in stacks.measured.iter().flat_map(|measured| &measured.samples) {
        let frames = sample.stack.iter().map(|frame| separable(&stacks.frames[*frame]));
        let state = sample.state_frame().map(|state| state.replace(';', ":"));
        let line: Vec<String> = frames.chain(state).collect();
        if let Some(value) = sample.values.last().filter(|value| **value > 0) {
            writeln!(text, "{} {value}", line.join(";")).expect("a string takes all");
        }
    }
    text
}

/// A frame in which nothing separates frames.
fn separable(frame: &Frame) -> String {
    frame.name.replace(';', ":")
}
