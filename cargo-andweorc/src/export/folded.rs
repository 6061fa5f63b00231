//! Folded stacks: what most flame graph tools read.

use crate::flame::{Flame, State, flame};
use andweorc_profile::{Run, TargetRecord, plain};
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
    target.map_or("other requests".to_owned(), |it| plain::name(&it.name).replace(';', ":"))
}

/// A wait for another task as a frame.
fn waited_for(by: Option<&TargetRecord>) -> String {
    let state = State::Task.words();
    by.map_or(state.to_owned(), |by| format!("{state}: {}", called(Some(by))))
}
