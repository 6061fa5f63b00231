//! Examples of requests.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// Examples of the requests of a stretch without any delay: of each kind of request one that took
/// about as long as half of them, one that was slower than 99 %, and the slowest. Older profiles
/// have none.
///
/// A request is what it is in a [`WallRecord`](super::WallRecord).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExamplesRecord {
    /// The kinds of requests, the most frequent first.
    pub requests: Vec<RequestExamples>,
    /// Requests that could be no example: there were too many kinds of them, or no memory was left
    /// for more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untraced: u64,
}

/// Examples of one kind of request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestExamples {
    /// Id of the target that is its outermost span.
    pub target: u32,
    /// Requests that ended, and could have been an example.
    pub count: u64,
    /// The examples, the fastest first.
    pub examples: Vec<RequestExample>,
}

impl RequestExamples {
    /// The example of this part of the requests.
    pub fn example(&self, of: ExampleOf) -> Option<&RequestExample> {
        self.examples.iter().find(|example| example.of == of)
    }
}

/// Part of the requests that an example stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExampleOf {
    /// Requests about as slow as the median.
    P50,
    /// Requests about as slow as the 99th percentile.
    P99,
    /// The slowest of all.
    Max,
}

/// One request, as it went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestExample {
    /// Requests that it stands for.
    pub of: ExampleOf,
    /// The percentile that it stands for, ns. Its own length is near it.
    pub about_ns: u64,
    /// Its spans, each after the one around it. The first begins at 0, and is as long as the
    /// request; others may outlive it.
    pub spans: Vec<ExampleSpan>,
    /// Intervals that were joined with the one beside them, since the request had too many: their
    /// time is that of the longer one's state.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub merged: u64,
    /// Spans that are left out, since the request had too many: their intervals are those of the
    /// span around them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl RequestExample {
    /// How long its outermost span was open, ns.
    pub fn length_ns(&self) -> u64 {
        self.spans.first().map_or(0, |span| span.end_ns)
    }

    /// Where the time of the request went: the parts of its spans and their states, the longest
    /// first. Each moment is that of the spans that run, in equal parts, or else of those that
    /// wait. Moments of which nothing is known are left out.
    pub fn parts(&self) -> Vec<ExamplePart> {
        let length = self.length_ns();
        let mut all: Vec<(usize, &ExampleInterval)> = Vec::new();
        for (at, span) in self.spans.iter().enumerate() {
            all.extend(span.intervals.iter().map(|interval| (at, interval)));
        }
        all.sort_by_key(|(_, interval)| interval.begin_ns);
        let ends = all.iter().flat_map(|(_, interval)| [interval.begin_ns, interval.end_ns]);
        let mut moments: Vec<u64> = ends.map(|at| at.min(length)).collect();
        moments.sort_unstable();
        moments.dedup();
        let mut parts: Vec<(ExamplePart, f64)> = Vec::new();
        let mut later = all.into_iter().peekable();
        let mut open: Vec<(usize, &ExampleInterval)> = Vec::new();
        for moment in moments.windows(2) {
            while let Some(one) = later.next_if(|(_, one)| one.begin_ns <= moment[0]) {
                open.push(one);
            }
            open.retain(|(_, interval)| interval.end_ns > moment[0]);
            let runs = |one: &ExampleInterval| one.state == ExampleState::Running;
            let many = open.iter().filter(|(_, one)| runs(one)).count();
            let share =
                (moment[1] - moment[0]) as f64 / (if many > 0 { many } else { open.len() }) as f64;
            for (span, interval) in open.iter().filter(|(_, one)| many == 0 || runs(one)) {
                let part =
                    ExamplePart { span: *span, state: interval.state, by: interval.by, ns: 0 };
                match parts.iter_mut().find(|(known, _)| *known == part) {
                    Some((_, ns)) => *ns += share,
                    None => parts.push((part, share)),
                }
            }
        }
        let rounded =
            |(part, ns): (ExamplePart, f64)| ExamplePart { ns: ns.round() as u64, ..part };
        let mut parts: Vec<_> = parts.into_iter().map(rounded).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
        parts
    }
}

/// Time that one span of a request was in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExamplePart {
    /// Index of the span.
    pub span: usize,
    /// The state.
    pub state: ExampleState,
    /// Id of the target that ended the wait for another task, where that is known.
    pub by: Option<u32>,
    /// The time, ns.
    pub ns: u64,
}

/// A span of a request. Times are ns since the begin of the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExampleSpan {
    /// Index of the span around it; `None` of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Id of its target. `None` of one that could not be told apart.
    pub target: Option<u32>,
    /// When it was opened, ns.
    pub begin_ns: u64,
    /// When it was closed, ns.
    pub end_ns: u64,
    /// Intervals that are its own, in the order of their begin. While it has none, spans inside of
    /// it are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<ExampleInterval>,
}

/// A stretch of a span in one state. Times are ns since the begin of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleInterval {
    /// Its state.
    pub state: ExampleState,
    /// Id of the target that ended a wait for another task. `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u32>,
    /// Its begin, ns.
    pub begin_ns: u64,
    /// Its end, ns.
    pub end_ns: u64,
}

/// State of a span, and so of the wall time of its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExampleState {
    /// Polled, or running on a plain thread.
    Running,
    /// Ready, but not yet polled.
    Queue,
    /// Waiting for the world outside, and for timers where they can't be told from it.
    Outside,
    /// Waiting for a timer.
    Timer,
    /// Waiting for another task or thread of the program.
    Task,
    /// Waiting, and nobody saw for what.
    Unknown,
}

impl ExampleState {
    /// All of them, in the order in which pages number them.
    pub const ALL: [ExampleState; 6] = [
        ExampleState::Running,
        ExampleState::Queue,
        ExampleState::Outside,
        ExampleState::Timer,
        ExampleState::Task,
        ExampleState::Unknown,
    ];

    /// The state in words, as a heading.
    pub fn words(self) -> &'static str {
        match self {
            ExampleState::Running => "running",
            ExampleState::Queue => "run queue",
            ExampleState::Outside => "I/O",
            ExampleState::Timer => "timer",
            ExampleState::Task => "other task",
            ExampleState::Unknown => "unknown wait",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_numbered_in_their_order() {
        let numbers = ExampleState::ALL.map(|state| state as usize);
        assert_eq!(numbers, std::array::from_fn(|number| number));
    }

    #[test]
    fn moment_is_that_of_those_that_run_or_else_of_those_that_wait() {
        let interval =
            |state, begin_ns, end_ns| ExampleInterval { state, by: None, begin_ns, end_ns };
        let span = |parent, end_ns, intervals: &[ExampleInterval]| ExampleSpan {
            parent,
            target: Some(1),
            begin_ns: 0,
            end_ns,
            intervals: intervals.to_vec(),
        };
        let example = RequestExample {
            of: ExampleOf::P99,
            about_ns: 100,
            spans: vec![
                span(None, 100, &[interval(ExampleState::Running, 0, 10)]),
                span(Some(0), 90, &[interval(ExampleState::Outside, 10, 90)]),
                span(
                    Some(0),
                    110,
                    &[
                        interval(ExampleState::Timer, 10, 40),
                        interval(ExampleState::Running, 60, 110),
                    ],
                ),
            ],
            merged: 0,
            left_out: 0,
        };
        let parts: Vec<_> =
            example.parts().into_iter().map(|part| (part.span, part.state, part.ns)).collect();
        assert_eq!(
            parts,
            [
                (2, ExampleState::Running, 40),
                (1, ExampleState::Outside, 35),
                (2, ExampleState::Timer, 15),
                (0, ExampleState::Running, 10),
            ]
        );
    }
}
