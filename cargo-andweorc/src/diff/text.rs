//! The comparison for people.

use crate::console::style::{BAD, BOLD, DIM, DOUBT, END, GOOD};
use crate::diff::words;
use crate::sides::Side;
use andweorc_profile::compare::{Comparison, State};
use andweorc_profile::plain;
use anstyle::Style;

/// In plain words, in colours (see `console`).
pub(crate) fn text(sides: &[Side; 2], comparison: &Comparison) -> String {
    let [a, b] = sides;
    let mut lines = vec![format!("{}, {}", words::side('A', a), words::side('B', b))];
    lines.push(format!("\n{BOLD}Outcome{END}"));
    let outcomes = comparison.outcomes.iter().map(|one| Row {
        style: style(Some(&one.state)),
        cells: [
            words::state(&one.state).to_owned(),
            words::outcome(one),
            format!("{} -> {}", words::value(one.metric, one.a), words::value(one.metric, one.b)),
            words::change(one.change_pct, one.ci_low, one.ci_high, "%")
                + &words::bound(&one.state, "%"),
        ],
    });
    for (line, one) in table(&outcomes.collect::<Vec<_>>()).zip(&comparison.outcomes) {
        lines.push(line);
        lines.extend(
            one.note.iter().map(|note| format!("    {DOUBT}note{END}: {}", plain::sentence(note))),
        );
    }
    lines.push(format!("\n{BOLD}Targets{END}"));
    let targets = comparison.targets.iter().map(|one| {
        let [a, b] = words::impacts(one);
        let change = one.change.map_or(String::new(), |change| {
            words::change(change, one.ci_low, one.ci_high, "points")
        });
        let bound = one.state.as_ref().map_or(String::new(), |state| words::bound(state, "points"));
        Row {
            style: style(one.state.as_ref()),
            cells: [
                words::state_or_presence(one).to_owned(),
                words::target(one),
                format!("impact {a} -> {b}"),
                change + &bound,
            ],
        }
    });
    lines.extend(table(&targets.collect::<Vec<_>>()));
    if comparison.targets.is_empty() {
        lines.push("  none was tested".to_owned());
    }
    if !comparison.notes.is_empty() {
        lines.push(format!("\n{BOLD}Notes{END}"));
        lines.extend(comparison.notes.iter().map(|note| format!("  - {}", plain::sentence(note))));
    }
    let (what, worse) = words::ranked_by(&comparison.ranked_by);
    lines.push(format!(
        "\n{DIM}[low, high] are 95 % intervals. {} Impact: change of the {what} for a speedup of 100 %,\n\
         by its slope; a target regressed when its impact {worse}: it holds the service back more than before. `?`: not tested.{END}",
        words::limits(&comparison.outcomes)
    ));
    lines.join("\n") + "\n"
}

fn style(state: Option<&State>) -> Style {
    match state {
        Some(State::Regressed) => BAD,
        Some(State::Improved) => GOOD,
        Some(State::Unchanged { .. }) => DIM,
        None => BOLD,
        Some(_) => DOUBT,
    }
}

/// A row of a table, its first cell in a style.
struct Row {
    style: Style,
    cells: [String; 4],
}

/// The rows, their cells below each other.
fn table(rows: &[Row]) -> impl Iterator<Item = String> {
    let width = |i: usize| rows.iter().map(|row| row.cells[i].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    rows.iter().map(move |Row { style, cells: [state, what, values, change] }| {
        let [w0, w1, w2] = widths;
        let line = format!("  {style}{state:<w0$}{style:#}  {what:<w1$}  {values:<w2$}  {change}");
        line.trim_end().to_owned()
    })
}
