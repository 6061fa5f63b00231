//! Single requests, as the page's script reads them.

use super::data::shown_place;
use andweorc_profile::estimate::Analysis;
use andweorc_profile::report::{Request, requests};
use andweorc_profile::{ExampleInterval, ExampleOf, ExampleSpan, RequestExample, Run, plain};
use serde::Serialize;
use std::borrow::Cow;

/// The requests of which there are examples.
#[derive(Debug, Serialize)]
pub(super) struct Requests<'a> {
    kinds: Vec<RequestKind<'a>>,
    /// Requests that could be no example.
    untraced: u64,
}

/// One kind of request.
#[derive(Debug, Serialize)]
struct RequestKind<'a> {
    name: Cow<'a, str>,
    place: Option<String>,
    /// Index of the point that its span is.
    point: Option<usize>,
    count: u64,
    examples: Vec<Example<'a>>,
}

#[derive(Debug, Serialize)]
struct Example<'a> {
    of: ExampleOf,
    about: u64,
    /// The request in words.
    words: String,
    spans: Vec<Span<'a>>,
    merged: u64,
    left_out: u64,
}

/// A span. Times are ns since the begin of the request.
#[derive(Debug, Serialize)]
struct Span<'a> {
    parent: Option<u32>,
    name: Cow<'a, str>,
    place: Option<String>,
    begin: u64,
    end: u64,
    intervals: Vec<Interval<'a>>,
}

/// Number of the state among those of the flame graph, begin, end, and the one that ended a wait
/// for another task.
type Interval<'a> = (usize, u64, u64, Option<Cow<'a, str>>);

/// Single requests of these runs; `None` where there are none.
pub(super) fn page_requests<'a>(runs: &'a [Run], analysis: &Analysis) -> Option<Requests<'a>> {
    let kinds: Vec<_> = requests(runs).into_iter().map(|it| kind(&it, analysis)).collect();
    let untraced = runs.iter().flat_map(|run| &run.examples).map(|it| it.untraced);
    let untraced = untraced.fold(0, u64::saturating_add);
    (!kinds.is_empty()).then_some(Requests { kinds, untraced })
}

fn kind<'a>(request: &Request<'a>, analysis: &Analysis) -> RequestKind<'a> {
    let target = request.target;
    RequestKind {
        name: plain::name(&target.name),
        place: shown_place(&target.name, target.file.as_deref(), target.line),
        point: analysis.points.iter().position(|point| request.is_of(point)),
        count: request.examples.count,
        examples: request.examples.examples.iter().map(|it| example(request, it)).collect(),
    }
}

fn example<'a>(request: &Request<'a>, example: &'a RequestExample) -> Example<'a> {
    Example {
        of: example.of,
        about: example.about_ns,
        words: request.words(example),
        spans: example.spans.iter().map(|it| span(request, it)).collect(),
        merged: example.merged,
        left_out: example.left_out,
    }
}

fn span<'a>(request: &Request<'a>, span: &ExampleSpan) -> Span<'a> {
    let target = request.target(span.target);
    let interval = |it: &ExampleInterval| {
        let by = request.target(it.by).map(|by| plain::name(&by.name));
        (it.state as usize, it.begin_ns, it.end_ns, by)
    };
    Span {
        parent: span.parent,
        name: target.map_or("other span".into(), |target| plain::name(&target.name)),
        place: target.and_then(|it| shown_place(&it.name, it.file.as_deref(), it.line)),
        begin: span.begin_ns,
        end: span.end_ns,
        intervals: span.intervals.iter().map(interval).collect(),
    }
}
