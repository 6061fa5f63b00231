//! The comparison as Markdown, for a comment or a summary.

use crate::diff::words;
use crate::sides::Side;
use andweorc_profile::compare::{Comparison, State};
use andweorc_profile::estimate::Metric;
use andweorc_profile::plain;

/// Tables of the outcome and the targets, and the notes.
pub(crate) fn markdown(sides: &[Side; 2], comparison: &Comparison) -> String {
    let [a, b] = sides;
    let mut lines = vec![
        format!("{}, {}", cell(&words::side('A', a)), cell(&words::side('B', b))),
        String::new(),
        "| outcome | A | B | change [95 % interval] | state |".to_owned(),
        "|---|---:|---:|---|---|".to_owned(),
    ];
    for one in &comparison.outcomes {
        lines.push(format!(
            "| {} | {} | {} | {} | {}{}{} |",
            cell(&words::outcome(one)),
            words::value(one.metric, one.a),
            words::value(one.metric, one.b),
            words::change(one.change_pct, one.ci_low, one.ci_high, "%"),
            marked(Some(&one.state), words::state(&one.state)),
            words::bound(&one.state, "%"),
            one.note
                .as_ref()
                .map_or(String::new(), |note| format!("<br>⚠️ {}", cell(&plain::sentence(note)))),
        ));
    }
    lines.push(String::new());
    lines.push(cell(&words::limits(&comparison.outcomes)));
    if !comparison.targets.is_empty() {
        lines.push(String::new());
        lines.push("| target | impact A | impact B | change [95 % interval] | state |".to_owned());
        lines.push("|---|---:|---:|---|---|".to_owned());
    }
    for one in &comparison.targets {
        let [a, b] = words::impacts(one);
        let change = one.change.map_or(String::new(), |change| {
            words::change(change, one.ci_low, one.ci_high, "points")
        });
        let state = marked(one.state.as_ref(), words::state_or_presence(one));
        let bound = one.state.as_ref().map_or(String::new(), |state| words::bound(state, "points"));
        lines.push(format!(
            "| {} | {a} | {b} | {change} | {state}{bound} |",
            cell(&words::target(one))
        ));
    }
    if comparison.ranked_by.metric != Metric::Throughput && !comparison.targets.is_empty() {
        let (what, worse) = words::ranked_by(&comparison.ranked_by);
        lines.push(String::new());
        lines.push(format!(
            "Impact: change of the {} for a speedup of 100 %; a target regressed when it {worse}.",
            cell(&what)
        ));
    }
    if !comparison.notes.is_empty() {
        lines.push(String::new());
        lines.extend(
            comparison.notes.iter().map(|note| format!("- {}", cell(&plain::sentence(note)))),
        );
    }
    lines.join("\n") + "\n"
}

fn marked(state: Option<&State>, word: &str) -> String {
    match state {
        Some(State::Regressed) => format!("❌ **{word}**"),
        Some(State::Improved) => format!("✅ **{word}**"),
        Some(State::Erratic { .. } | State::Inconclusive) => format!("❔ {word}"),
        _ => word.to_owned(),
    }
}

/// Text that Markdown shows as it is, in a table too: a program's names are not ours.
fn cell(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if r"\`*_{}[]<>#|~@!&".contains(c) {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_program_are_no_markup() {
        assert_eq!(cell("a|b <img> @me *x*"), r"a\|b \<img\> \@me \*x\*");
    }
}
