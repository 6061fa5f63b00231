//! Words and numbers that the forms of a comparison share.

use crate::sides::Side;
use andweorc_profile::compare::{
    Impact, OutcomeChange, Place, Presence, RankedBy, State, TargetChange,
};
use andweorc_profile::estimate::Metric;
use andweorc_profile::plain;
pub(super) use andweorc_profile::report::value;

/// `regressed`
pub(super) fn state(state: &State) -> &'static str {
    match state {
        State::Regressed => "regressed",
        State::Improved => "improved",
        State::Unchanged { .. } => "unchanged",
        State::Erratic { .. } => "erratic",
        _ => "inconclusive",
    }
}

/// The state of a target, or that it is new or gone.
pub(super) fn state_or_presence(target: &TargetChange) -> &'static str {
    match (&target.state, target.presence) {
        (Some(found), _) => state(found),
        (None, Presence::Gone) => "gone",
        (None, _) => "new",
    }
}

/// Returns the bound or the scatter in the state: ` (within 3.1 %)`, ` (scatters by 23 %)`.
pub(super) fn bound(state: &State, unit: &str) -> String {
    match state {
        State::Unchanged { bound } => format!(" (within {bound:.1} {unit})"),
        State::Erratic { scatter } => format!(" (scatters by {scatter:.0} {unit})"),
        _ => String::new(),
    }
}

/// `checkout throughput`
pub(super) fn outcome(outcome: &OutcomeChange) -> String {
    format!("{} {}", plain::name(&outcome.point), outcome.metric)
}

/// `A change counts from 5 % of checkout throughput, 10 % of checkout p99 on.`
pub(super) fn limits(outcomes: &[OutcomeChange]) -> String {
    let limit = |one: &OutcomeChange| format!("{} % of {}", one.limit_pct, outcome(one));
    let limits: Vec<String> = outcomes.iter().map(limit).collect();
    format!("A change counts from {} on.", limits.join(", "))
}

/// `throughput`, or `mean latency of checkout`; and what an impact on it does when the target
/// regresses.
pub(super) fn ranked_by(by: &RankedBy) -> (String, &'static str) {
    match by.metric {
        Metric::Throughput => ("throughput".to_owned(), "rose"),
        Metric::Mean => (format!("mean latency of {}", plain::name(&by.point)), "fell"),
        metric => (format!("{metric} of {}", plain::name(&by.point)), "fell"),
    }
}

/// `-10.1 % [-12.0, -8.2]`
pub(super) fn change(change: f64, low: Option<f64>, high: Option<f64>, unit: &str) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{change:+.1} {unit} [{low:.1}, {high:.1}]"),
        _ => format!("{change:+.1} {unit} [no interval]"),
    }
}

/// `span stock (src/shop.rs:12)`
pub(super) fn target(target: &TargetChange) -> String {
    let kind = target.kind;
    let name = plain::name(&target.name);
    let at = |place: &Place| {
        let line = place.line.map_or(String::new(), |line| format!(":{line}"));
        format!("{}{line}", plain::name(&place.file))
    };
    match (&target.place_a, &target.place_b) {
        (Some(a), Some(b)) if target.presence == Presence::Moved => {
            format!("{kind} {name} (moved from {} to {})", at(a), at(b))
        }
        (_, Some(place)) | (Some(place), None) if !name.ends_with(&at(place)) => {
            format!("{kind} {name} ({})", at(place))
        }
        _ => format!("{kind} {name}"),
    }
}

/// `+4 %`, or `?` when it was not tested, or `-` when there is no such target.
pub(super) fn impact(impact: Option<Impact>, absent: bool) -> String {
    match impact {
        // Adding zero makes of a negative zero a positive one.
        Some(impact) => format!("{:+.0} %", impact.slope.round() + 0.0),
        None if absent => "-".to_owned(),
        None => "?".to_owned(),
    }
}

/// Both impacts of a target.
pub(super) fn impacts(target: &TargetChange) -> [String; 2] {
    [
        impact(target.impact_a, target.presence == Presence::New),
        impact(target.impact_b, target.presence == Presence::Gone),
    ]
}

/// `A: before.jsonl (shop, 3 runs)`
pub(super) fn side(letter: char, side: &Side) -> String {
    let program = side.runs.first().map_or("", |run| run.header.program.as_str());
    let runs = match side.runs.len() {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    };
    format!("{letter}: {} ({}, {runs})", plain::name(&side.name), plain::name(program))
}
