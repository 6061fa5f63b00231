//! The view on a terminal.

use crate::live::Moment;
use crate::live::table::{self, Row};
use andweorc_profile::estimate::Analysis;
use andweorc_profile::plain;
use andweorc_profile::report::metric_name;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use term::Term;

/// How many targets are shown.
const ROWS: usize = 10;

/// A bar, with a table below it.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    bar: ProgressBar,
    drawn: Arc<Mutex<Drawn>>,
}

/// Rows that are drawn on the terminal, all of them full, and of how many columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Drawn {
    columns: usize,
    rows: usize,
}

impl Drawn {
    /// Of these lines, each filled up to the end of its last row.
    fn of<'a>(lines: impl Iterator<Item = &'a str>, columns: usize) -> Drawn {
        let rows = |line: &str| line.chars().count().div_ceil(columns.max(1)).max(1);
        Drawn { columns, rows: lines.map(rows).sum() }
    }

    /// How many rows it takes when the terminal has wrapped it anew.
    fn rows_at(self, columns: usize) -> usize {
        (self.rows * self.columns).div_ceil(columns.max(1))
    }
}

impl Terminal {
    pub(crate) fn new() -> Terminal {
        let style = ProgressStyle::with_template("{bar:30} {prefix}\n{msg}")
            .expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(Some(1), target()).with_style(style);
        Terminal { bar, drawn: Arc::default() }
    }

    /// Draws a moment.
    pub(crate) fn draw(&self, moment: &Moment<'_>, analysis: &Analysis) {
        let mut drawn = self.wiped_if_resized();
        let (time, text) = (moment.time(), format!("{}{}", moment.now(), table_of(analysis)));
        let first = format!("{:30} {time}", "");
        let columns = drawn.columns;
        *drawn = Drawn::of([&*first].into_iter().chain(text.lines()), columns);
        self.bar.set_length(milliseconds(moment.budget));
        self.bar.set_prefix(time);
        self.bar.set_message(text);
        self.bar.set_position(milliseconds(moment.spent()));
    }

    /// Writes something else meanwhile.
    pub(crate) fn suspended<T>(&self, write: impl FnOnce() -> T) -> T {
        let _drawn = self.wiped_if_resized();
        self.bar.suspend(write)
    }

    /// Takes it away.
    pub(crate) fn clear(&self) {
        let _drawn = self.wiped_if_resized();
        self.bar.finish_and_clear();
    }

    /// Wipes what is drawn when the terminal has another width than it was drawn for: it has
    /// wrapped the lines anew, and the bar would clear as many rows as there were before.
    fn wiped_if_resized(&self) -> MutexGuard<'_, Drawn> {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = usize::from(Term::stderr().size().1);
        if drawn.rows > 0 && drawn.columns != columns {
            let above = drawn.rows_at(columns).saturating_sub(1);
            let up = if above > 0 { format!("\x1b[{above}A") } else { String::new() };
            // The new one has drawn nothing yet.
            self.bar.set_draw_target(target());
            io::stderr().write_all(format!("\r{up}\x1b[J").as_bytes()).unwrap_or_default();
            drawn.rows = 0;
        }
        drawn.columns = columns;
        drawn
    }
}

fn target() -> ProgressDrawTarget {
    ProgressDrawTarget::stderr_with_hz(8)
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The table with its heading, each line after a line's end.
fn table_of(analysis: &Analysis) -> String {
    let rows = table::rows(analysis);
    let (Some(point), false) = (analysis.ranking_point(), rows.is_empty()) else {
        return String::new();
    };
    let metric = metric_name(analysis.ranked_by.metric);
    let heading = Row {
        target: "if this were".to_owned(),
        speedup: "faster".to_owned(),
        change: format!("{} {metric}", plain::name(&point.name)),
        then: "then".to_owned(),
        verdict: "",
    };
    let lines: Vec<&Row> = [&heading].into_iter().chain(rows.iter().take(ROWS)).collect();
    let width = |cell: fn(&Row) -> &str| {
        lines.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0)
    };
    let [a, b, c, d] = [
        width(|row| &row.target),
        width(|row| &row.speedup),
        width(|row| &row.change),
        width(|row| &row.then),
    ];
    let mut text: String = lines
        .iter()
        .map(|row| {
            format!(
                "\n  {:<a$}  {:>b$}  {:<c$}  {:>d$}  {}",
                row.target, row.speedup, row.change, row.then, row.verdict
            )
        })
        .collect();
    if rows.len() > ROWS {
        text += &format!("\n  and {} more", rows.len() - ROWS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_a_terminal_wraps_them() {
        let long = "x".repeat(45);
        let drawn = Drawn::of(["", "short", &long].into_iter(), 40);
        assert_eq!(drawn, Drawn { columns: 40, rows: 4 });
        // All rows are full: 160 characters.
        assert_eq!([80, 40, 39, 10].map(|columns| drawn.rows_at(columns)), [2, 4, 5, 16]);
    }
}
