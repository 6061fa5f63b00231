//! The report for people: 80 columns, one line a target, and what to do next.

mod head;
mod services;
mod table;
mod targets;

use crate::Run;
use crate::estimate::Analysis;
use crate::plain;
use crate::report::allocations::{allocations as told_allocations, lines as allocating_lines};
use crate::report::requests::slow_requests;
use crate::report::sections::{allocation_label, place};
use crate::report::words::{shortened, time};
use crate::report::{
    advice, between_runs, caveats, event_label, event_losses, load_warning,
    long_polls as told_long_polls, long_polls_left_out, next, notes, service_notes, untested_waits,
    wait_sites, why_nothing,
};
use anstyle::{AnsiColor, Style};
use table::{Cell, Row};
use textwrap::{Options, WordSplitter};

/// Columns of the report.
const WIDTH: usize = 80;

/// Columns that the name of a point has at most in a heading.
const PER: usize = 16;

/// A space at which no line is broken. Texts have no other: it is not seen, and so escaped.
const NO_BREAK: &str = "\u{a0}";

/// Units that stand behind a number.
const UNITS: [&str; 3] = ["%", "ms", "us"];

/// How the report for people looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Looks {
    /// With colours, as ANSI escape codes.
    pub styled: bool,
    /// So many lines a section at most.
    pub top: usize,
}

impl Default for Looks {
    /// Plain text, ten lines a section.
    fn default() -> Looks {
        Looks { styled: false, top: 10 }
    }
}

/// The meaning of a text, by which it is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Heading,
    Good,
    Bad,
    Doubt,
    Aside,
}

impl Looks {
    /// The text in its colour.
    fn paint(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            _ if !self.styled => Style::new(),
            Tone::Plain => Style::new(),
            Tone::Heading => Style::new().bold(),
            Tone::Good => AnsiColor::Green.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Doubt => AnsiColor::Yellow.on_default(),
            Tone::Aside => Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}

/// The lines of a report as they are made.
struct Page {
    looks: Looks,
    out: String,
}

impl Page {
    /// A line as it is.
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// Text of any length, in lines of which all but the first are indented. No word is broken.
    fn prose(&mut self, tone: Tone, first: &str, text: &str) {
        let rest = " ".repeat(textwrap::core::display_width(first));
        let options = Options::new(WIDTH)
            .initial_indent(first)
            .subsequent_indent(&rest)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false);
        // A number stays with its unit.
        let joined = UNITS.iter().fold(text.to_owned(), |text, unit| {
            text.replace(&format!(" {unit}"), &format!("{NO_BREAK}{unit}"))
        });
        for line in textwrap::wrap(&joined, options) {
            let painted = self.looks.paint(tone, &line.replace(NO_BREAK, " "));
            self.line(&painted);
        }
    }

    /// A table, and how many more rows it would have.
    fn table(&mut self, rows: &[Row], more: usize) {
        for line in table::lines(rows, self.looks) {
            self.line(&line);
        }
        if more > 0 {
            let all = self.looks.top + more;
            let text = format!("  and {more} more: cargo andweorc report --top {all}");
            let painted = self.looks.paint(Tone::Aside, &text);
            self.line(&painted);
        }
    }
}

/// The report for people: where and how the program ran and what it does now, the targets by their
/// verdicts, the waits that nobody tested and those for each other, allocations that stand out,
/// long polls, events of the processor, notes, and a command to run next.
///
/// Names are shortened where a line would have more than 80 columns, numbers never.
pub fn text(runs: &[Run], analysis: &Analysis, looks: Looks) -> String {
    let mut page = Page { looks, out: String::new() };
    if runs.is_empty() {
        page.line("andweorc: no run");
        return page.out;
    }
    head::write(&mut page, runs, analysis);
    if analysis.ranking_point().is_none() {
        page.line("");
        page.prose(Tone::Bad, "", why_nothing(runs));
        services::write(&mut page, analysis);
    } else {
        if let Some(warning) = load_warning(analysis) {
            page.line("");
            page.prose(Tone::Doubt, "", &warning);
        }
        targets::write(&mut page, analysis);
        services::write(&mut page, analysis);
        between(&mut page, runs, analysis);
        requests(&mut page, runs, analysis);
        waits(&mut page, runs, analysis);
        contended(&mut page, analysis);
        advise(&mut page, runs, analysis);
        allocations(&mut page, analysis);
    }
    long_polls(&mut page, analysis);
    events(&mut page, analysis);
    foot(&mut page, runs, analysis);
    page.out
}

/// The patterns that were found.
fn advise(page: &mut Page, runs: &[Run], analysis: &Analysis) {
    let all = advice(runs, analysis);
    if all.is_empty() {
        return;
    }
    page.line("");
    let heading = page.looks.paint(Tone::Heading, "ADVICE");
    page.line(&heading);
    for one in all {
        page.prose(Tone::Plain, "  ", &format!("{}: {}", one.target, one.text));
    }
}

/// How the runs differ.
fn between(page: &mut Page, runs: &[Run], analysis: &Analysis) {
    let sentences = between_runs(runs.len(), analysis);
    if sentences.is_empty() {
        return;
    }
    page.line("");
    let heading = page.looks.paint(Tone::Heading, "BETWEEN THE RUNS");
    page.line(&heading);
    for sentence in sentences {
        page.prose(Tone::Plain, "  - ", &sentence);
    }
}

/// Time of a slow request of each point, by its parts.
fn requests(page: &mut Page, runs: &[Run], analysis: &Analysis) {
    let slow = slow_requests(runs, analysis);
    if slow.is_empty() {
        return;
    }
    page.line("");
    let heading = page.looks.paint(Tone::Heading, "A SLOW REQUEST, about the p99");
    page.line(&heading);
    for (point, words) in slow.iter().take(page.looks.top) {
        page.prose(Tone::Plain, "  ", &format!("{}: {words}", plain::name(&point.name)));
    }
}

/// The waits that nobody tested.
fn waits(page: &mut Page, runs: &[Run], analysis: &Analysis) {
    let waits = untested_waits(runs, analysis);
    if waits.is_empty() {
        return;
    }
    page.line("");
    let mut rows = vec![Row::heading("WAITS, untested", [])];
    rows.extend(waits.iter().take(page.looks.top).map(|wait| Row {
        name: plain::name(&wait.summary.name).into_owned(),
        place: place(&wait.summary.name, wait.summary.file.as_deref(), wait.summary.line),
        is_heading: false,
        cells: vec![Cell::left(wait.words.clone())],
    }));
    page.table(&rows, waits.len().saturating_sub(page.looks.top));
}

/// The locks and channels at which tasks wait for each other.
fn contended(page: &mut Page, analysis: &Analysis) {
    let sites = wait_sites(analysis);
    if sites.is_empty() {
        return;
    }
    page.line("");
    let heading = page.looks.paint(Tone::Heading, "WAITS FOR EACH OTHER");
    page.line(&heading);
    for site in sites.iter().take(page.looks.top) {
        page.prose(Tone::Plain, "  ", site);
    }
}

/// Tasks that keep their worker from all others.
fn long_polls(page: &mut Page, analysis: &Analysis) {
    let polls = told_long_polls(analysis);
    if polls.is_empty() {
        return;
    }
    page.line("");
    let threshold = analysis.long_polls.as_ref().map_or(0, |it| it.threshold_ns);
    let heading = format!("LONG POLLS, {} and more", time(threshold as f64));
    let heading = page.looks.paint(Tone::Heading, &heading);
    page.line(&heading);
    for poll in polls.iter().take(page.looks.top) {
        let task = plain::name(&poll.summary.name);
        page.prose(Tone::Plain, "  ", &format!("{task} {}", poll.text));
        if let Some(tested) = &poll.tested {
            page.prose(Tone::Aside, "    ", tested);
        }
    }
    let more = polls.len().saturating_sub(page.looks.top);
    page.table(&[], more);
    if let Some(left_out) = long_polls_left_out(analysis) {
        page.prose(Tone::Aside, "  ", &left_out);
    }
}

/// The targets whose allocations stand out.
fn allocations(page: &mut Page, analysis: &Analysis) {
    let (point, shown) = told_allocations(analysis);
    if shown.is_empty() {
        return;
    }
    page.line("");
    let per = point.unwrap_or_else(|| "second".to_owned());
    let name = format!("ALLOCATIONS per {}", shortened(&per, PER));
    let cells = ["bytes", "count", "freed at once", "held"].map(str::to_owned);
    let mut rows = vec![Row::heading(&name, cells.map(Cell::right))];
    rows.extend(shown.into_iter().map(|it| Row {
        name: allocation_label(it.summary),
        place: place(&it.summary.name, it.summary.file.as_deref(), it.summary.line),
        is_heading: false,
        cells: [it.bytes, it.count, it.churn, it.held].map(Cell::right).into(),
    }));
    page.table(&rows, 0);
    let lines = allocating_lines(analysis);
    if lines.is_empty() {
        return;
    }
    let cells = ["bytes", "count", "of all"].map(str::to_owned);
    let mut rows = vec![Row::heading("  by line", cells.map(Cell::right))];
    rows.extend(lines.into_iter().map(|it| Row {
        name: plain::name(&it.summary.function).into_owned(),
        place: place(&it.summary.function, it.summary.file.as_deref(), it.summary.line),
        is_heading: false,
        cells: [it.bytes, it.count, it.part].map(Cell::right).into(),
    }));
    page.table(&rows, 0);
}

/// Events of the processor by target.
fn events(page: &mut Page, analysis: &Analysis) {
    let Some(summary) = &analysis.events else { return };
    page.line("");
    let has_ipc = summary.targets.iter().any(|it| it.ipc.is_some());
    let ipc = has_ipc.then(|| "IPC".to_owned());
    let names = summary.events.iter().map(|it| plain::name(&it.name).into_owned());
    let mut rows =
        vec![Row::heading("EVENTS, shares", ipc.into_iter().chain(names).map(Cell::right))];
    rows.extend(summary.targets.iter().take(page.looks.top).map(|target| {
        let ipc = has_ipc.then(|| target.ipc.map_or(String::new(), |ipc| format!("{ipc:.2}")));
        let part =
            |share: Option<f64>| share.map_or(String::new(), |it| format!("{:.0} %", 100.0 * it));
        let parts = target.events.iter().map(|it| part(it.share));
        Row {
            name: event_label(target),
            place: place(&target.name, target.file.as_deref(), target.line),
            is_heading: false,
            cells: ipc.into_iter().chain(parts).map(Cell::right).collect(),
        }
    }));
    page.table(&rows, summary.targets.len().saturating_sub(page.looks.top));
    for loss in event_losses(summary) {
        page.prose(Tone::Aside, "  ", &loss);
    }
}

/// Notes, how to read it, and what to do next.
fn foot(page: &mut Page, runs: &[Run], analysis: &Analysis) {
    let mut notes = notes(runs);
    notes.extend(service_notes(analysis));
    if !notes.is_empty() {
        page.line("");
        let heading = page.looks.paint(Tone::Heading, "NOTES");
        page.line(&heading);
    }
    for note in notes {
        page.prose(Tone::Plain, "  - ", &plain::sentence(&note));
    }
    if !analysis.targets.is_empty() {
        page.line("");
        page.prose(
            Tone::Aside,
            "",
            "[low,high] are 95 % intervals; verdicts are by the one at the largest speedup. \
             CPU shares overlap where spans nest.",
        );
        if let Some(cost) = caveats::cost(analysis) {
            page.prose(Tone::Aside, "", &cost);
        }
    }
    page.line("");
    let next = next(runs, analysis);
    let command = format!("{}  {}", page.looks.paint(Tone::Heading, "NEXT"), next.command);
    page.line(&command);
    page.prose(Tone::Aside, "      ", &next.why);
    if runs.iter().any(|run| !run.wall.is_empty()) {
        let aside = "where wall time went, by span: cargo andweorc view, Flame graph";
        page.prose(Tone::Aside, "      ", aside);
    }
}

#[cfg(test)]
mod tests;
