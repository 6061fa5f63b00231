//! The view on a terminal.

use crate::live::Moment;
use crate::live::table::{self, Row};
use andweorc_core::estimate::Analysis;
use andweorc_core::plain;
use andweorc_core::report::metric_name;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How many targets are shown.
const ROWS: usize = 10;

/// A bar, with a table below it.
#[derive(Clone, Debug)]
pub(crate) struct Terminal(ProgressBar);

impl Terminal {
    pub(crate) fn new() -> Terminal {
        let style = ProgressStyle::with_template("{bar:30} {prefix}\n{msg}")
            .expect("the template is well formed");
        let target = ProgressDrawTarget::stderr_with_hz(8);
        Terminal(ProgressBar::with_draw_target(Some(1), target).with_style(style))
    }

    /// Draws a moment.
    pub(crate) fn draw(&self, moment: &Moment<'_>, analysis: &Analysis) {
        self.0.set_length(milliseconds(moment.budget));
        self.0.set_prefix(moment.time());
        self.0.set_message(format!("{}{}", moment.now(), table_of(analysis)));
        self.0.set_position(milliseconds(moment.spent()));
    }

    /// Writes something else meanwhile.
    pub(crate) fn suspended<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }

    /// Takes it away.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
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
