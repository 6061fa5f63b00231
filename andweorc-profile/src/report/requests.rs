//! Single requests, as they went: examples of each kind, and what they spent their time in.

use crate::estimate::{Analysis, PointSummary};
use crate::plain;
use crate::report::words::time;
use crate::{
    ExampleOf, ExamplePart, ExampleState, PointKind, RequestExample, RequestExamples, Run,
    TargetRecord,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// So many parts of a request are told, from this share of it on.
const PARTS: usize = 3;
const LEAST_PART: f64 = 0.045;

/// One kind of request, and its examples.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The outermost span.
    pub target: &'a TargetRecord,
    /// Its examples.
    pub examples: &'a RequestExamples,
    targets: HashMap<u32, &'a TargetRecord>,
}

/// The kinds of requests of which there are examples, the most frequent first. Where several runs
/// have one, that with the most such requests tells of it.
pub fn requests(runs: &[Run]) -> Vec<Request<'_>> {
    let mut all: Vec<Request<'_>> = Vec::new();
    for run in runs {
        let targets: HashMap<u32, &TargetRecord> =
            run.targets.iter().map(|target| (target.id, target)).collect();
        for examples in run.examples.iter().flat_map(|record| &record.requests) {
            let Some(target) = targets.get(&examples.target).copied() else { continue };
            let request = Request { target, examples, targets: targets.clone() };
            match all.iter_mut().find(|other| is_same(other.target, target)) {
                Some(other) if other.examples.count < examples.count => *other = request,
                Some(_) => {}
                None => all.push(request),
            }
        }
    }
    all.sort_by_key(|request| Reverse(request.examples.count));
    all
}

fn is_same(one: &TargetRecord, other: &TargetRecord) -> bool {
    (one.kind, &one.name, &one.file, one.line) == (other.kind, &other.name, &other.file, other.line)
}

impl<'a> Request<'a> {
    /// The target of this id.
    pub fn target(&self, id: Option<u32>) -> Option<&'a TargetRecord> {
        self.targets.get(&id?).copied()
    }

    /// Whether its span is what this point measures.
    pub fn is_of(&self, point: &PointSummary) -> bool {
        let Request { target, .. } = self;
        point.kind == PointKind::Latency
            && (&target.name, &target.file, target.line) == (&point.name, &point.file, point.line)
    }

    /// The name of the span with this index; of one that could not be told apart that of the
    /// request.
    fn span(&self, example: &RequestExample, index: usize) -> &'a str {
        let target = example.spans.get(index).and_then(|span| self.target(span.target));
        &target.unwrap_or(self.target).name
    }

    /// A part of an example in words: `waiting for stock keeper in stock`.
    fn part(&self, example: &RequestExample, part: &ExamplePart) -> String {
        let what = match (part.state, self.target(part.by)) {
            (ExampleState::Running, _) => "running".to_owned(),
            (ExampleState::Queue, _) => "in the run queue".to_owned(),
            (ExampleState::Outside, _) => "waiting for I/O".to_owned(),
            (ExampleState::Timer, _) => "waiting for a timer".to_owned(),
            (ExampleState::Task, Some(by)) => format!("waiting for {}", plain::name(&by.name)),
            (ExampleState::Task, None) => "waiting for another task".to_owned(),
            (ExampleState::Unknown, _) => "waiting for something unknown".to_owned(),
        };
        format!("{what} in {}", plain::name(self.span(example, part.span)))
    }

    /// Time of an example by its largest parts: `16.2 ms, 57 % waiting for stock keeper in stock,
    /// 20 % running in render`.
    pub fn words(&self, example: &RequestExample) -> String {
        let length = example.length_ns();
        let share = |part: &ExamplePart| part.ns as f64 / length as f64;
        let parts = example.parts();
        let told = parts.iter().filter(|part| share(part) >= LEAST_PART).take(PARTS);
        let told =
            told.map(|part| format!("{:.0} % {}", 100.0 * share(part), self.part(example, part)));
        let all: Vec<String> = [time(length as f64)].into_iter().chain(told).collect();
        all.join(", ")
    }
}

/// Points whose spans are requests, and the example of each about its 99th percentile in words.
pub(super) fn slow_requests<'a>(
    runs: &[Run],
    analysis: &'a Analysis,
) -> Vec<(&'a PointSummary, String)> {
    let requests = requests(runs);
    let slow = |point: &'a PointSummary| {
        let request = requests.iter().find(|request| request.is_of(point))?;
        let example = request.examples.example(ExampleOf::P99)?;
        Some((point, request.words(example)))
    };
    analysis.points.iter().filter_map(slow).collect()
}

/// A kind of request in the report for machines.
#[derive(Debug, Serialize)]
pub(super) struct RequestSummary<'a> {
    name: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    count: u64,
    examples: Vec<ExampleSummary<'a>>,
}

#[derive(Debug, Serialize)]
struct ExampleSummary<'a> {
    of: ExampleOf,
    about_ns: u64,
    length_ns: u64,
    parts: Vec<PartSummary<'a>>,
}

#[derive(Debug, Serialize)]
struct PartSummary<'a> {
    span: &'a str,
    state: ExampleState,
    by: Option<&'a str>,
    ns: u64,
}

/// The kinds of requests, for machines.
pub(super) fn summaries(runs: &[Run]) -> Vec<RequestSummary<'_>> {
    fn summary(request: Request<'_>) -> RequestSummary<'_> {
        let part = |example: &RequestExample, part: ExamplePart| PartSummary {
            span: request.span(example, part.span),
            state: part.state,
            by: request.target(part.by).map(|by| &*by.name),
            ns: part.ns,
        };
        let example = |of: &RequestExample| ExampleSummary {
            of: of.of,
            about_ns: of.about_ns,
            length_ns: of.length_ns(),
            parts: of.parts().into_iter().map(|one| part(of, one)).collect(),
        };
        let examples = request.examples.examples.iter().map(example).collect();
        let TargetRecord { name, file, line, .. } = request.target;
        let count = request.examples.count;
        RequestSummary { name, file: file.as_deref(), line: *line, count, examples }
    }
    requests(runs).into_iter().map(summary).collect()
}
