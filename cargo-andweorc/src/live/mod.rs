//! The live view: how far the run is, what it does at the moment, and what is known of the targets
//! so far.
//!
//! On a terminal it is a bar and a table that are drawn anew in their place; elsewhere it is plain
//! lines, one now and then. All goes to stderr. The estimates are those of the report, made from
//! the profile as far as it is written; they are made seldom, since the machine has a service to
//! run.

mod table;
mod terminal;

use crate::console::Console;
use crate::drive::Stream;
use andweorc_profile::Run;
use andweorc_profile::estimate::{self, Analysis};
use andweorc_profile::plain;
use andweorc_profile::report::metric_name;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal::Terminal;

/// How often the estimates are made anew for a terminal.
const ESTIMATE: Duration = Duration::from_secs(2);
/// How often a terminal is drawn.
const DRAW: Duration = Duration::from_millis(250);
/// How many plain lines a run has.
const LINES: u32 = 6;
/// A line has so many characters at most, and the name of this program before it.
const WIDTH: usize = 180;
/// So far apart are plain lines at least and at most.
const APART: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Shows how a run goes.
#[derive(Debug)]
pub(crate) struct View {
    form: Form,
    /// Latest analysis, and whether it is of all records.
    analysis: Analysis,
    fresh: bool,
    estimated: Option<Instant>,
    shown: Option<Instant>,
    /// How many notes of the run have been said.
    noted: usize,
}

#[derive(Debug)]
enum Form {
    Quiet,
    Plain,
    Terminal(Terminal),
}

/// A moment of a run.
pub(crate) struct Moment<'a> {
    /// Name of the program.
    pub(crate) name: &'a str,
    /// The runs before.
    pub(crate) earlier: &'a [Run],
    /// The run under way, as far as it is written.
    pub(crate) run: &'a Run,
    /// There are records that no moment before had.
    pub(crate) new: bool,
    /// Since the profile of this run began.
    pub(crate) elapsed: Duration,
    /// Time budget of all runs.
    pub(crate) budget: Duration,
    /// Function that returns what the program says it does.
    pub(crate) under_way: &'a dyn Fn() -> Option<String>,
}

impl View {
    /// The view that suits the place where stderr goes.
    pub(crate) fn new(console: Console) -> View {
        let form = match (console.quiet, io::stderr().is_terminal()) {
            (true, _) => Form::Quiet,
            (false, false) => Form::Plain,
            (false, true) => Form::Terminal(Terminal::new()),
        };
        View {
            form,
            analysis: Analysis::default(),
            fresh: true,
            estimated: None,
            shown: None,
            noted: 0,
        }
    }

    /// Returns a printer that does not run into the view.
    pub(crate) fn printer(&self) -> Printer {
        Printer(match &self.form {
            Form::Terminal(terminal) => Some(terminal.clone()),
            Form::Quiet | Form::Plain => None,
        })
    }

    /// A line about what happens, unless quiet; several if it is long.
    pub(crate) fn say(&self, text: impl Display) {
        if !matches!(self.form, Form::Quiet) {
            for line in folded(&plain::sentence(&text.to_string())) {
                self.printer().write(Stream::Err, format!("andweorc: {line}\n").as_bytes());
            }
        }
    }

    /// Says what the program notes before the first experiment: that is why there is none, if
    /// nothing is done about it. Later notes, and those that a run ends with, are in the report.
    fn say_notes(&mut self, moment: &Moment<'_>) {
        let notes = &moment.run.notes;
        self.noted = self.noted.min(notes.len());
        if moment.run.experiments.is_empty() && moment.run.end.is_none() {
            notes[self.noted..].iter().for_each(|note| self.say(&note.text));
        }
        self.noted = notes.len();
    }

    /// Shows a moment, if it is time to.
    pub(crate) fn show(&mut self, moment: &Moment<'_>) {
        self.fresh &= !moment.new;
        self.say_notes(moment);
        let apart = match self.form {
            Form::Quiet => return,
            Form::Plain => (moment.budget / LINES).clamp(APART.0, APART.1),
            Form::Terminal(_) => DRAW,
        };
        let Some(shown) = self.shown else {
            self.shown = Some(Instant::now());
            self.say(format_args!(
                "profiling {} for {}",
                moment.name,
                humantime::format_duration(moment.budget)
            ));
            return;
        };
        if shown.elapsed() < apart {
            return;
        }
        self.shown = Some(Instant::now());
        self.estimate(moment);
        match &self.form {
            Form::Quiet => {}
            Form::Plain => self.say(plain(moment, &self.analysis)),
            Form::Terminal(terminal) => terminal.draw(moment, &self.analysis),
        }
    }

    fn estimate(&mut self, moment: &Moment<'_>) {
        let due = self.estimated.is_none_or(|at| at.elapsed() >= ESTIMATE);
        if self.fresh || (matches!(self.form, Form::Terminal(_)) && !due) {
            return;
        }
        let runs: Vec<Run> = moment.earlier.iter().chain([moment.run]).cloned().collect();
        self.analysis = estimate::analyse_ranking(&runs);
        (self.fresh, self.estimated) = (true, Some(Instant::now()));
    }

    /// Takes the view away: what follows is the result.
    pub(crate) fn clear(&self) {
        if let Form::Terminal(terminal) = &self.form {
            terminal.clear();
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A line: `12 s of 30 s, 18 s left, 14 experiments, now: stock 25 % faster; checkout throughput,
/// if stock were 50 % faster +25.1 % [20.0, 30.2]`.
fn plain(moment: &Moment<'_>, analysis: &Analysis) -> String {
    let mut line = format!("{}, {}", moment.time(), moment.now());
    let rows = table::rows(analysis);
    if let Some(point) = analysis.ranking_point()
        && !rows.is_empty()
    {
        let metric = metric_name(analysis.ranked_by.metric);
        line += &format!("; {} {metric}", plain::name(&point.name));
        for (i, row) in rows.iter().enumerate() {
            let one = format!(", if {} were {} faster {}", row.target, row.speedup, row.change);
            let more = format!(", and {} more", rows.len() - i);
            if line.chars().count() + one.chars().count() + more.len() > WIDTH {
                return line + &more;
            }
            line += &one;
        }
    }
    line
}

/// Lines of [`WIDTH`] characters at most, broken between words where there are any.
fn folded(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let line = lines.last_mut().expect("there is one from the begin on");
            let has = line.chars().count();
            if has > 0 && has + 1 + word.len() <= WIDTH {
                line.push(' ');
            } else if has > 0 {
                lines.push(String::new());
                continue;
            }
            let rest = word.split_off(word.len().min(WIDTH));
            line.extend(word);
            if rest.is_empty() {
                break;
            }
            word = rest;
        }
    }
    lines
}

impl Moment<'_> {
    /// How long all runs have taken, of the budget at most.
    fn spent(&self) -> Duration {
        let earlier: u64 = self.earlier.iter().map(andweorc_profile::report::real_ns).sum();
        (Duration::from_nanos(earlier) + self.elapsed).min(self.budget)
    }

    /// `12 s of 30 s, 14 experiments`
    fn time(&self) -> String {
        let runs = self.earlier.iter().chain([self.run]);
        let held: usize = runs.map(|run| run.experiments.len()).sum();
        let (spent, budget) = (self.spent().as_secs(), self.budget.as_secs_f64().ceil() as u64);
        let left = (self.budget - self.spent()).as_secs_f64().ceil() as u64;
        let runs = match self.earlier.len() {
            0 => String::new(),
            n => format!(", run {}", n + 1),
        };
        format!("{spent} s of {budget} s, {left} s left{runs}, {held} experiments")
    }

    /// Returns what happens: said by the program, else seen from the profile.
    fn now(&self) -> String {
        if let Some(said) = (self.under_way)() {
            return format!("now: {}", plain::name(&said));
        }
        if self.run.end.is_some() {
            return "done".to_owned();
        }
        let Some(last) = self.run.experiments.last() else { return "now: observing".to_owned() };
        let target = self.run.targets.iter().find(|target| Some(target.id) == last.target);
        match target {
            Some(target) => {
                format!("last: {} {:.0} % faster", plain::name(&target.name), last.speedup * 100.0)
            }
            None => "last: baseline".to_owned(),
        }
    }
}

/// Prints without running into the view on the terminal.
#[derive(Clone, Debug)]
pub(crate) struct Printer(Option<Terminal>);

impl Printer {
    /// Whether there is a view to run into.
    pub(crate) fn is_live(&self) -> bool {
        self.0.is_some()
    }

    /// Writes to one of our streams. That nobody reads it any more is no reason to stop.
    pub(crate) fn write(&self, to: Stream, text: &[u8]) {
        let write = || match to {
            Stream::Out => {
                let mut out = io::stdout().lock();
                out.write_all(text).and_then(|()| out.flush())
            }
            Stream::Err => io::stderr().lock().write_all(text),
        };
        let written = match &self.0 {
            Some(terminal) => terminal.suspended(write),
            None => write(),
        };
        written.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andweorc_profile::Profile;

    fn run(lines: &str) -> Run {
        Profile::parse(lines.as_bytes()).unwrap().runs.remove(0)
    }

    const SHOP: &str = include_str!("../../tests/fixtures/shop.jsonl");

    fn moment<'a>(run: &'a Run, under_way: &'a dyn Fn() -> Option<String>) -> Moment<'a> {
        let (elapsed, budget) = (Duration::from_millis(12_300), Duration::from_secs(30));
        Moment { name: "shop", earlier: &[], run, new: true, elapsed, budget, under_way }
    }

    #[test]
    fn a_line_says_how_far_it_is_what_happens_and_what_is_known() {
        let run = run(SHOP);
        let said = || Some("stock 25 % faster\u{7}".to_owned());
        let line =
            plain(&moment(&run, &said), &estimate::analyse_ranking(std::slice::from_ref(&run)));
        let begin = format!("12 s of 30 s, 18 s left, {} experiments", run.experiments.len());
        assert!(line.starts_with(&begin), "{line}");
        assert!(line.contains(", now: stock 25 % faster\\u{7}; "), "{line}");
        assert!(line.contains(" were 75 % faster +") && line.ends_with("], and 4 more"), "{line}");
    }

    #[test]
    fn a_line_stays_short_however_many_targets_there_are() {
        let run = run(SHOP);
        let mut analysis = estimate::analyse_ranking(std::slice::from_ref(&run));
        let first = analysis.targets[0].clone();
        analysis.targets.extend((0..30).map(|_| first.clone()));
        let line = plain(&moment(&run, &|| None), &analysis);
        assert!(line.chars().count() <= WIDTH, "{line}");
        assert!(line.contains("if stock were") && line.ends_with(" more"), "{line}");
    }

    #[test]
    fn a_long_sentence_is_folded_between_words() {
        let text = "word ".repeat(60) + &"x".repeat(400) + " end";
        let lines = folded(&text);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        assert!(
            lines[0].ends_with(" word") && lines.last().unwrap().ends_with(" end"),
            "{lines:?}"
        );
        assert_eq!(folded(""), [""]);
    }

    #[test]
    fn a_program_that_does_not_say_what_it_does_is_seen_by_its_profile() {
        let silent = || None;
        let whole = run(SHOP);
        assert_eq!(moment(&whole, &silent).now(), "done");
        let header = run(SHOP.lines().next().unwrap());
        assert_eq!(moment(&header, &silent).now(), "now: observing");
        let mut part = whole.clone();
        part.end = None;
        part.experiments.truncate(1);
        assert_eq!(moment(&part, &silent).now(), "last: baseline");
    }

    #[test]
    fn further_runs_count_with_those_before_and_never_beyond_the_budget() {
        let whole = run(SHOP);
        let earlier = [whole.clone()];
        let silent = || None;
        let mut moment = moment(&whole, &silent);
        moment.earlier = &earlier;
        moment.budget = Duration::from_nanos(andweorc_profile::report::real_ns(&whole))
            + Duration::from_secs(13);
        let held = 2 * whole.experiments.len();
        assert!(moment.time().contains("1 s left, run 2, "), "{}", moment.time());
        assert!(moment.time().ends_with(&format!("{held} experiments")), "{}", moment.time());
        moment.elapsed = Duration::from_secs(999);
        assert!(moment.time().contains(" 0 s left"), "{}", moment.time());
    }
}
