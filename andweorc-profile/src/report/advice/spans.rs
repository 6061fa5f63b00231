//! Spans that are entered while their task is not polled.

use super::{Advice, Pattern};
use crate::{Run, TargetKind, TargetRecord};
use std::collections::BTreeMap;

/// The span that was most often entered as a poll of its task ended, if any was.
pub(super) fn entered_over_await(runs: &[Run]) -> Option<Advice> {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for run in runs {
        for stack in run.wall.iter().flat_map(|wall| &wall.stacks).filter(|it| it.held > 0) {
            let is_it =
                |it: &&TargetRecord| Some(it.id) == stack.target && it.kind == TargetKind::Span;
            if let Some(span) = run.targets.iter().find(is_it) {
                *all.entry(&span.name).or_default() += stack.held;
            }
        }
    }
    let (span, held) = all.into_iter().max_by_key(|(_, held)| *held)?;
    let times = if held == 1 { "once".to_owned() } else { format!("{held} times") };
    let text = format!(
        "It was entered in a poll and not left as the poll ended, {times}: a guard of `enter` or \
         `entered` is held over an await. What the thread does meanwhile counts as this span's, so \
         figures of it are wrong, as are traces. Use `instrument` for async code."
    );
    let target = format!("span:{span}");
    Some(Advice { pattern: Pattern::EnteredOverAwait, target, text })
}
