//! The comparison as a page, for a browser. Its flame graph is drawn by a script; all else needs
//! none.

use crate::diff::{wall, words};
use crate::sides::Side;
use crate::web::{self, Sources, escaped};
use andweorc_profile::compare::{Comparison, Limits, State, TargetChange};
use andweorc_profile::plain;

/// The meaning of the states, in short; docs/book/src/reference/comparisons.md has it in full.
const STATES: [(&str, &str); 7] = [
    (
        "regressed",
        "The interval lies on the worse side of zero, and the change is large enough to count.",
    ),
    ("improved", "The same on the better side."),
    ("unchanged", "The whole interval lies within the change that counts, on either side of zero."),
    (
        "erratic",
        "A side scatters too much for more runs to help: look for two modes, or for other work on the machine.",
    ),
    ("inconclusive", "None of these: more runs of A and B in turns, or longer ones, would tell."),
    ("new", "Only B has this target."),
    ("gone", "Only A has this target."),
];

/// A page of the outcome and the targets, and the notes. `verdict` is the sentence that `ci` ends
/// with.
pub(crate) fn html(
    sides: &[Side; 2],
    comparison: &Comparison,
    verdict: Option<&str>,
    sources: &Sources,
) -> String {
    let [a, b] = sides;
    let program = b.runs.first().map_or("", |run| run.header.program.as_str());
    let mut body = String::new();
    put(
        &mut body,
        &[
            "<div id=\"page\">\n<header class=\"top\"><p class=\"mark\">andweorc</p><h1>",
            &escaped(&plain::name(program)),
            "</h1><p class=\"hint\">",
            &escaped(&words::side('A', a)),
            "<br>",
            &escaped(&words::side('B', b)),
            "</p></header>\n<main>\n",
        ],
    );
    put(&mut body, &["<p class=\"lead\">", &lead(comparison, verdict), "</p>\n"]);
    outcomes(&mut body, comparison);
    targets(&mut body, comparison, sources);
    let (section, is_drawn) = wall::section(sides);
    body += &section;
    if !comparison.notes.is_empty() {
        body += "<section class=\"notes\"><h2>Notes</h2><ul>";
        for note in &comparison.notes {
            put(&mut body, &["<li>", &escaped(&plain::sentence(note)), "</li>"]);
        }
        body += "</ul></section>\n";
    }
    body += "<details><summary><h2>What the states mean</h2></summary><dl>";
    for (state, meaning) in STATES {
        put(&mut body, &["<dt>", state, "</dt><dd>", &escaped(meaning), "</dd>"]);
    }
    let (what, worse) = words::ranked_by(&comparison.ranked_by);
    let impact = format!(
        "Intervals are 95 %. {} Impact: change of the {what} for a speedup of 100 %, by its slope; a target regressed when its impact {worse}: \
         it holds the service back more than before. `?`: not tested.",
        words::limits(&comparison.outcomes)
    );
    put(&mut body, &["</dl></details>\n</main>\n<footer>", &escaped(&impact), "</footer>\n</div>"]);
    web::page(
        &format!("{}: what changed", plain::name(program)),
        &body,
        is_drawn.then_some(wall::SCRIPT),
    )
}

/// The verdict, and each outcome in a sentence.
fn lead(comparison: &Comparison, verdict: Option<&str>) -> String {
    let mut lead = verdict.map_or(String::new(), |verdict| format!("<b>{}</b> ", escaped(verdict)));
    for one in &comparison.outcomes {
        let [a, b] = [one.a, one.b].map(|value| escaped(&words::value(one.metric, value)));
        put(
            &mut lead,
            &[
                "<code>",
                &escaped(&words::outcome(one)),
                "</code> went from ",
                &a,
                " to ",
                &b,
                ", <b class=\"",
                tone(Some(&one.state)),
                "\">",
                &format!("{:+.1} %", one.change_pct),
                "</b>: ",
                words::state(&one.state),
                ". ",
            ],
        );
    }
    lead
}

/// The table of the outcome.
fn outcomes(out: &mut String, comparison: &Comparison) {
    let axis =
        Axis::of(comparison.outcomes.iter().map(|one| (one.change_pct, one.ci_low, one.ci_high)));
    *out += "<section><h2>Outcome</h2><div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Changes\"><table class=\"changes\"><thead><tr><th scope=\"col\">state</th>\
             <th scope=\"col\">outcome</th><th scope=\"col\">A</th><th scope=\"col\">B</th><th scope=\"col\">change, 95 % interval</th><th></th></tr></thead><tbody>";
    for one in &comparison.outcomes {
        let change = words::change(one.change_pct, one.ci_low, one.ci_high, "%");
        let note = one.note.as_ref().map_or(String::new(), |note| {
            format!("<p class=\"hint\">{}</p>", escaped(&plain::sentence(note)))
        });
        let (tone, state) = (tone(Some(&one.state)), words::state(&one.state));
        let [a, b] = [one.a, one.b].map(|value| escaped(&words::value(one.metric, value)));
        put(
            out,
            &[
                &format!(
                    "<tr class=\"{tone}\"><td><span class=\"chip state\">{state}</span></td><th scope=\"row\">"
                ),
                &escaped(&words::outcome(one)),
                &note,
                &format!("</th><td>{a}</td><td>{b}</td><td>"),
                &escaped(&(change + &words::bound(&one.state, "%"))),
                "</td><td>",
                &axis.forest(one.change_pct, one.ci_low, one.ci_high, one.limit_pct),
                "</td></tr>",
            ],
        );
    }
    *out += "</tbody></table></div></section>\n";
}

/// The table of the targets.
fn targets(out: &mut String, comparison: &Comparison, sources: &Sources) {
    *out += "<section><h2>Targets</h2>";
    if comparison.targets.is_empty() {
        *out += "<p class=\"hint\">No target was tested, so that nothing is said of what holds the service back. Give the runs more time, or name what \
                 to test: <code>cargo andweorc run --duration 1m --targets NAME</code>.</p></section>\n";
        return;
    }
    let limit = Limits::default().impact;
    let axis = Axis::of(
        comparison.targets.iter().filter_map(|one| Some((one.change?, one.ci_low, one.ci_high))),
    );
    *out += "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Changes\"><table class=\"changes\"><thead><tr><th scope=\"col\">state</th><th scope=\"col\">target</th>\
             <th scope=\"col\">impact A</th><th scope=\"col\">impact B</th><th scope=\"col\">change, 95 % interval</th><th></th></tr></thead><tbody>";
    for one in &comparison.targets {
        let [a, b] = words::impacts(one);
        let bound = one.state.as_ref().map_or(String::new(), |state| words::bound(state, "points"));
        let change = one.change.map_or(String::new(), |change| {
            words::change(change, one.ci_low, one.ci_high, "points") + &bound
        });
        let forest = one
            .change
            .map_or(String::new(), |change| axis.forest(change, one.ci_low, one.ci_high, limit));
        let (tone, state) = (tone(one.state.as_ref()), words::state_or_presence(one));
        put(
            out,
            &[
                &format!(
                    "<tr class=\"{tone}\"><td><span class=\"chip state\">{state}</span></td><th scope=\"row\">"
                ),
                &named(one, sources),
                &format!("</th><td>{}</td><td>{}</td><td>", escaped(&a), escaped(&b)),
                &escaped(&change),
                &format!("</td><td>{forest}</td></tr>"),
            ],
        );
    }
    *out += "</tbody></table></div></section>\n";
}

/// A target, as a link to its place where an editor can be asked for it.
fn named(target: &TargetChange, sources: &Sources) -> String {
    let name = escaped(&words::target(target));
    let place = target.place_b.as_ref().or(target.place_a.as_ref());
    match place.and_then(|place| sources.address(&place.file, place.line?)) {
        Some(address) => format!("<a href=\"{}\">{name}</a>", escaped(&address)),
        None => name,
    }
}

/// The colour of a state.
fn tone(state: Option<&State>) -> &'static str {
    match state {
        Some(State::Regressed) => "bad",
        Some(State::Improved) => "good",
        Some(State::Inconclusive | State::Erratic { .. }) => "open",
        _ => "none",
    }
}

/// The axis that the intervals of a table share.
struct Axis {
    /// Its end on either side of zero.
    end: f64,
}

impl Axis {
    /// An axis for these changes; intervals that are far wider are cut off.
    fn of(changes: impl Iterator<Item = (f64, Option<f64>, Option<f64>)>) -> Axis {
        let (mut most, mut widest) = (4.0_f64, 4.0_f64);
        for (change, low, high) in changes {
            most = most.max(change.abs());
            widest = widest.max(low.map_or(0.0, f64::abs)).max(high.map_or(0.0, f64::abs));
        }
        Axis { end: 1.06 * widest.min(2.5 * most) }
    }

    fn x(&self, value: f64) -> String {
        format!("{:.1}%", 50.0 + 50.0 * (value / self.end).clamp(-1.0, 1.0))
    }

    /// A change with its interval, and a stripe in which a change does not count.
    fn forest(&self, change: f64, low: Option<f64>, high: Option<f64>, limit: f64) -> String {
        let whisker = low.zip(high).map_or(String::new(), |(low, high)| {
            let (low, high) = (self.x(low), self.x(high));
            format!("<line class=\"whisker\" x1=\"{low}\" x2=\"{high}\" y1=\"50%\" y2=\"50%\"/>")
        });
        let width = 100.0 * (limit / self.end).min(1.0);
        format!(
            "<svg class=\"forest\" aria-hidden=\"true\"><rect class=\"nil\" x=\"{}\" y=\"0\" width=\"{width:.1}%\" height=\"100%\"/>\
             <line class=\"zero\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"100%\"/>{whisker}<circle class=\"dot\" cx=\"{}\" cy=\"50%\" r=\"5\"/></svg>",
            self.x(-limit),
            self.x(change)
        )
    }
}

/// Appends all parts.
fn put(out: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| out.push_str(part));
}
