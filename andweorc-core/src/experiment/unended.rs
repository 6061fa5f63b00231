//! Names spans and intervals that begin and never end, so that they count nowhere: spans that stay
//! open, spans that nobody enters, `begin!` without `end!`.

use crate::experiment::choose::names;
use crate::point::{Importance, Point, points};
use crate::target::{Target, targets};
use andweorc_profile::{PointKind, TargetKind};
use std::cmp::Reverse;

/// A span that was entered less often than this may be about to end, if other points are hit.
const MIN_ENTERED: u64 = 10;

/// How many spans that are never closed are told of, each by itself.
const MAX_TOLD: usize = 3;

/// Says which spans and intervals of the workspace's own code never end, and why that may be.
///
/// A span that is open for the whole run may be meant so: where other points were hit it is told
/// only if it was entered often.
pub(crate) fn unended() -> Vec<String> {
    let points: Vec<_> = points().into_iter().filter(|it| it.is_own()).collect();
    let targets = targets();
    let nothing_hit = points.iter().all(|point| point.count() == 0);
    let mut told = Vec::new();
    let (explicit, spans): (Vec<_>, Vec<_>) = points
        .into_iter()
        .filter(|it| it.kind() == PointKind::Latency)
        .partition(|it| it.importance() == Importance::Explicit);
    let never = explicit.iter().filter(|it| it.count() == 0).map(|it| it.name());
    told.extend(list(never).map(begun));
    let mut spans: Vec<Span> =
        spans.into_iter().filter_map(|point| Span::new(point, &targets)).collect();
    spans.sort_by_key(|span| Reverse(span.entered));
    let least = if nothing_hit { 1 } else { MIN_ENTERED };
    let open = spans.iter().filter(|span| span.closed == 0 && span.entered >= least);
    told.extend(open.take(MAX_TOLD).map(|span| never_closed(span.name, span.entered)));
    let closed_only = spans.iter().filter(|span| span.closed > 0 && span.entered == 0);
    told.extend(list(closed_only.map(|span| span.name)).map(never_entered));
    if nothing_hit {
        let neither = spans.iter().filter(|span| span.closed == 0 && span.entered == 0);
        told.extend(list(neither.map(|span| span.name)).map(never_left));
    }
    told
}

/// How far the spans of a call site have got.
struct Span {
    name: &'static str,
    /// How often one was entered and left again.
    entered: u64,
    closed: u64,
}

impl Span {
    /// The span that `point` counts.
    fn new(point: &'static Point, targets: &[&'static Target]) -> Option<Span> {
        let is = |target: &&&Target| {
            target.kind() == TargetKind::Span
                && (target.name(), target.file(), target.line())
                    == (point.name(), point.file(), point.line())
        };
        let entered = targets.iter().find(is)?.count();
        Some(Span { name: point.name(), entered, closed: point.count() })
    }
}

/// The names as a list in words. `None` if there are no names.
fn list<'a>(names_of: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut names_of = names_of.peekable();
    names_of.peek()?;
    Some(names(names_of))
}

fn begun(names: String) -> String {
    format!(
        "{names}: no interval went from `begin!` to `end!` on one thread, so none was measured: is there an `end!` on each way out, `?` and early returns \
         too? In async code use a tracing span"
    )
}

fn never_closed(name: &str, entered: u64) -> String {
    format!(
        "`{name}` was entered {} and never closed, so it counts nothing: is a guard held across an await (use `.instrument(..)`), a handle of it or of a span \
         inside of it kept, or is it open for as long as its connection or the program (give each unit of work a span)?",
        times(entered)
    )
}

fn never_entered(names: String) -> String {
    format!(
        "{names}: closed and never entered, so that there is no time in it and it can't be a target: enter it by `.instrument(..)`, `.in_scope(..)` or \
         `#[tracing::instrument]`"
    )
}

fn never_left(names: String) -> String {
    format!(
        "{names}: opened, and neither left nor closed: is it entered for as long as the program runs, or a handle of it kept without entering it?"
    )
}

/// `once`, `4,000 times`
fn times(count: u64) -> String {
    if count == 1 {
        return "once".to_owned();
    }
    let digits = count.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} times")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::point;
    use crate::target::target;
    use crate::time::{Nanos, Virtual};

    #[test]
    fn numbers_are_grouped() {
        let counts = [1, 12, 999, 4_000, 1_234_567].map(times);
        assert_eq!(counts, ["once", "12 times", "999 times", "4,000 times", "1,234,567 times"]);
    }

    #[test]
    fn only_what_never_ended_is_told_and_by_its_name() {
        let span = |name: &str, entered: u64, closed: u64| {
            let file = Some("src/unended.rs");
            let point = point(PointKind::Latency, name, file, Some(1), false);
            let target = target(TargetKind::Span, name, file, Some(1));
            (0..entered).for_each(|_| target.record(Nanos(1), Nanos(1)));
            (0..closed).for_each(|_| point.hit_interval(Virtual(0), Virtual(1)));
        };
        span("unended: open", 4_000, 0);
        span("unended: ends", 4_000, 400);
        span("unended: just begun", 2, 0);
        span("unended: not entered", 0, 5);
        point(PointKind::Latency, "unended: begun", None, None, true);
        let ended = point(PointKind::Latency, "unended: measured", None, None, true);
        ended.hit_interval(Virtual(0), Virtual(1));
        let told = unended();
        let of = |name: &str| {
            let name = format!("`unended: {name}`");
            told.iter().find(|text| text.contains(&name))
        };
        assert!(of("open").unwrap().contains("entered 4,000 times and never closed"), "{told:?}");
        assert!(of("not entered").unwrap().contains("never entered"), "{told:?}");
        assert!(of("begun").unwrap().contains("`begin!` to `end!`"), "{told:?}");
        assert!(
            ["ends", "just begun", "measured"].iter().all(|name| of(name).is_none()),
            "{told:?}"
        );
    }
}
