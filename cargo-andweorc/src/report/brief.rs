//! The verdict of a profile for scripts and coding agents: what to do something about, how sure
//! that is, and the next command.
//!
//! One JSON object, whose keys are those of the JSON report where both have them. A target, and a
//! caveat, is one line. `docs/book/src/reference/report-json.md` says what each key means.

use andweorc_profile::estimate::{
    self, Analysis, Effect, Metric, Now, PointSummary, TargetSummary, Verdict,
};
use andweorc_profile::report::{
    REPORT_VERSION, advice, between_runs, caveats, load_warning, needs, next, notes, real_ns,
    tenths, why_nothing,
};
use andweorc_profile::{PointKind, Run, TargetKind, plain};
use serde::Serialize;

/// Outcome of a profile in one word, for a script to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// A target matters: the first one is what to make faster.
    MakeFaster,
    /// Every target was judged, and none matters.
    NothingMatters,
    /// No target matters as far as is known, but some are undecided, or none was tested.
    Undecided,
    /// No point was measured.
    NothingMeasured,
}

impl Answer {
    fn of(analysis: &Analysis) -> Answer {
        let targets = &analysis.targets;
        let is_open = |it: &TargetSummary| matches!(it.verdict, Verdict::Inconclusive { .. });
        if analysis.ranking_point().is_none() {
            Answer::NothingMeasured
        } else if targets.iter().any(|target| target.verdict == Verdict::Matters) {
            Answer::MakeFaster
        } else if targets.is_empty() || targets.iter().any(is_open) {
            Answer::Undecided
        } else {
            Answer::NothingMatters
        }
    }
}

/// A point and its metrics without delays.
#[derive(Debug, Serialize)]
struct Point<'a> {
    kind: PointKind,
    name: &'a str,
    now: Now,
}

impl<'a> From<&'a PointSummary> for Point<'a> {
    fn from(point: &'a PointSummary) -> Point<'a> {
        let mut now = point.now;
        for value in [&mut now.throughput, &mut now.mean, &mut now.p50, &mut now.p90, &mut now.p99]
        {
            *value = value.map(short);
        }
        Point { kind: point.kind, name: &point.name, now }
    }
}

/// A target with the effect that it is judged by.
#[derive(Debug, Serialize)]
struct Target<'a> {
    kind: TargetKind,
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    share: Option<f64>,
    #[serde(flatten)]
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<String>,
    #[serde(flatten)]
    effect: Option<Judged<'a>>,
}

/// The effect at the largest speedup that was tested.
#[derive(Debug, Serialize)]
struct Judged<'a> {
    point: &'a str,
    metric: Metric,
    speedup: f64,
    effect_pct: f64,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    value: Option<f64>,
}

impl<'a> From<&'a Effect> for Judged<'a> {
    fn from(effect: &'a Effect) -> Judged<'a> {
        Judged {
            point: &effect.point,
            metric: effect.metric,
            speedup: effect.speedup,
            effect_pct: tenths(effect.effect_pct),
            ci_low: effect.ci_low.map(tenths),
            ci_high: effect.ci_high.map(tenths),
            value: effect.value.map(short),
        }
    }
}

/// The verdict, with so many points and targets at most.
pub(crate) fn brief(runs: &[Run], top: usize) -> String {
    let analysis = estimate::analyse(runs);
    let shown: Vec<_> =
        analysis.targets.iter().take(top).map(|target| row(&analysis, target)).collect();
    let points: Vec<_> = analysis.points.iter().take(top).map(Point::from).collect();
    let seconds = runs.iter().map(real_ns).sum::<u64>() as f64 / 1e9;
    let members = [
        ("report_version", one(&REPORT_VERSION)),
        ("program", one(&runs.first().map(|run| &*run.header.program))),
        ("runs", one(&runs.len())),
        ("seconds", one(&tenths(seconds))),
        ("load", one(&analysis.load)),
        ("points", list(&points)),
        ("answer", one(&Answer::of(&analysis))),
        ("targets", list(&shown)),
        ("more_targets", one(&(analysis.targets.len() - shown.len()))),
        ("advice", list(&advice(runs, &analysis))),
        ("caveats", list(&doubts(runs, &analysis))),
        ("next", one(&next(runs, &analysis))),
    ];
    let members = members.map(|(key, value)| format!("  \"{key}\": {value}"));
    plain::json(format!("{{\n{}\n}}", members.join(",\n"))) + "\n"
}

fn row<'a>(analysis: &Analysis, target: &'a TargetSummary) -> Target<'a> {
    let is_open = matches!(target.verdict, Verdict::Inconclusive { .. });
    Target {
        kind: target.kind,
        name: &target.name,
        file: target.file.as_deref(),
        line: target.line,
        share: target.share.map(|share| (share * 1e3).round() / 1e3),
        verdict: target.verdict,
        needs: is_open.then(|| needs(analysis, target)),
        effect: target.ranking_effect().map(Judged::from),
    }
}

/// All that lets the answer be trusted less, a sentence each.
fn doubts(runs: &[Run], analysis: &Analysis) -> Vec<String> {
    let mut doubts = Vec::new();
    if analysis.ranking_point().is_none() {
        doubts.push(why_nothing(runs).to_owned());
    }
    doubts.extend(load_warning(analysis));
    doubts.extend(caveats::busy(analysis));
    doubts.extend(caveats::others(analysis));
    doubts.extend(between_runs(runs.len(), analysis));
    doubts.extend(caveats::cost(analysis));
    doubts.extend(notes(runs).iter().map(|note| plain::cut_sentence(note).into_owned()));
    doubts
}

/// The number with four digits that count, as the text report has it or more.
fn short(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

/// A value on the line of its key.
fn one(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names are strings and numbers are numbers")
}

/// A list with one line for each of its values.
fn list(values: &[impl Serialize]) -> String {
    if values.is_empty() {
        return "[]".to_owned();
    }
    let lines: Vec<_> = values.iter().map(|value| format!("    {}", one(value))).collect();
    format!("[\n{}\n  ]", lines.join(",\n"))
}
