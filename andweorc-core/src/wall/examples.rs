//! Examples of requests: which traces are kept while requests end, and which are told at last.

use super::trace::Trace;
use crate::time::Nanos;
use andweorc_profile::{ExampleOf, ExamplesRecord, RequestExample, RequestExamples};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// So many kinds of requests have examples.
const MAX_KINDS: usize = 32;

/// Lengths of one kind that its percentiles are told by: all of them up to so many requests.
const LENGTHS: usize = 4096;

/// Traces of one kind that are kept of all its requests, and of slow ones.
const SAMPLE: usize = 64;
const SLOW_SAMPLE: usize = 32;

/// Slow requests are those from this percentile on, so that the 99th is amid them.
const SLOW: f64 = 0.98;

/// Some of a stream, each part of which is among them with the same likelihood.
#[derive(Debug)]
struct Reservoir<T> {
    kept: Vec<T>,
    most: usize,
    seen: u64,
}

impl<T> Reservoir<T> {
    fn new(most: usize) -> Reservoir<T> {
        Reservoir { kept: Vec::new(), most, seen: 0 }
    }

    fn offer(&mut self, one: T) {
        self.seen += 1;
        if self.kept.len() < self.most {
            self.kept.push(one);
        } else if let Some(place) = self.kept.get_mut((scramble(self.seen) % self.seen) as usize) {
            *place = one;
        }
    }
}

/// A number that looks like chance, and is the same for the same one: SplitMix64.
fn scramble(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A trace, and the length of its request.
type Kept = Arc<(Nanos, Trace)>;

/// Requests of one kind.
#[derive(Debug)]
struct Kind {
    count: u64,
    lengths: Reservoir<Nanos>,
    sample: Reservoir<Kept>,
    slow: Reservoir<Kept>,
    /// From which length on a request is a slow one.
    slow_from: Nanos,
    slowest: Option<Kept>,
}

impl Kind {
    fn new() -> Kind {
        Kind {
            count: 0,
            lengths: Reservoir::new(LENGTHS),
            sample: Reservoir::new(SAMPLE),
            slow: Reservoir::new(SLOW_SAMPLE),
            slow_from: Nanos(0),
            slowest: None,
        }
    }

    fn offer(&mut self, length: Nanos, trace: Trace) {
        self.count += 1;
        self.lengths.offer(length);
        if self.count.is_power_of_two() {
            self.slow_from = self.percentile(SLOW);
        }
        let kept = Arc::new((length, trace));
        if length >= self.slow_from {
            self.slow.offer(Arc::clone(&kept));
        }
        if self.slowest.as_ref().is_none_or(|slowest| slowest.0 < length) {
            self.slowest = Some(Arc::clone(&kept));
        }
        self.sample.offer(kept);
    }

    /// The length that so many requests don't exceed.
    fn percentile(&self, part: f64) -> Nanos {
        let mut lengths = self.lengths.kept.clone();
        let place = (part * lengths.len() as f64).ceil() as usize;
        let place = place.clamp(1, lengths.len()) - 1;
        *lengths.select_nth_unstable(place).1
    }

    /// The trace that is nearest to a length.
    fn nearest(&self, length: Nanos) -> Option<&Kept> {
        let kept = self.slowest.iter().chain(&self.slow.kept).chain(&self.sample.kept);
        kept.min_by_key(|kept| (kept.0 - length).0.abs())
    }

    fn examples(&self, target: impl Fn(u32) -> Option<u32> + Copy) -> Vec<RequestExample> {
        let slowest = self.slowest.as_ref().map_or(Nanos(0), |kept| kept.0);
        let about = [
            (ExampleOf::P50, self.percentile(0.5)),
            (ExampleOf::P99, self.percentile(0.99)),
            (ExampleOf::Max, slowest),
        ];
        let example = |(of, about): (ExampleOf, Nanos)| {
            let (_, trace) = &**self.nearest(about)?;
            Some(RequestExample {
                of,
                about_ns: u64::try_from(about.0).unwrap_or(0),
                spans: trace.spans(target),
                merged: trace.merged,
                left_out: trace.left_out,
            })
        };
        about.into_iter().filter_map(example).collect()
    }
}

/// The requests of a recording that may become examples, by the stacks of their outermost spans.
#[derive(Debug, Default)]
pub(super) struct Examples {
    kinds: HashMap<u32, Kind>,
    untraced: u64,
}

impl Examples {
    /// A request of this stack is over.
    pub(super) fn offer(&mut self, stack: u32, trace: Trace) {
        let is_known = self.kinds.contains_key(&stack);
        match trace.length() {
            Some(length) if is_known || self.kinds.len() < MAX_KINDS => {
                self.kinds.entry(stack).or_insert_with(Kind::new).offer(length, trace);
            }
            _ => self.untraced += 1,
        }
    }

    /// The examples, whose targets are found by their stacks.
    pub(super) fn record(&self, target: impl Fn(u32) -> Option<u32> + Copy) -> ExamplesRecord {
        let mut untraced = self.untraced;
        let mut requests = Vec::new();
        for (&stack, kind) in &self.kinds {
            match target(stack) {
                Some(id) => requests.push(RequestExamples {
                    target: id,
                    count: kind.count,
                    examples: kind.examples(target),
                }),
                // Requests beyond the stacks that are told apart are of many kinds.
                None => untraced += kind.count,
            }
        }
        requests.sort_by_key(|kind| (Reverse(kind.count), kind.target));
        ExamplesRecord { requests, untraced }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Real;

    fn trace(length: i64) -> Trace {
        let mut trace = Trace::new(Real(0));
        let span = trace.opened(5, None, Real(0)).unwrap();
        trace.closed(span, Real(length));
        trace
    }

    #[test]
    fn examples_are_near_the_percentiles_of_many_requests_and_the_slowest_is_always_one() {
        let mut examples = Examples::default();
        // Lengths from 1 to 50,000 in an order that is none, and one that takes very long.
        for number in 0..50_000 {
            examples.offer(5, trace(1 + number * 7919 % 50_000));
            if number == 20_000 {
                examples.offer(5, trace(1_000_000));
            }
        }
        let record = examples.record(|_| Some(9));
        let [kind] = &record.requests[..] else { panic!("{record:?}") };
        assert_eq!((kind.target, kind.count, record.untraced), (9, 50_001, 0));
        let [p50, p99, max] = &kind.examples[..] else { panic!("{kind:?}") };
        let is_near = |of: &RequestExample, ns: f64, off: f64| {
            let is = |found: u64| (found as f64 / ns - 1.0).abs() < off;
            is(of.about_ns) && is(of.length_ns())
        };
        assert!(is_near(p50, 25_000.0, 0.06), "{p50:?}");
        assert!(is_near(p99, 49_500.0, 0.01), "{p99:?}");
        assert_eq!((max.of, max.about_ns, max.length_ns()), (ExampleOf::Max, 1_000_000, 1_000_000));
    }

    #[test]
    fn one_request_is_every_example_and_one_that_is_open_is_none() {
        let mut examples = Examples::default();
        examples.offer(5, trace(10));
        let mut open = Trace::new(Real(0));
        open.opened(5, None, Real(0));
        examples.offer(5, open);
        for stack in 0..MAX_KINDS as u32 {
            examples.offer(100 + stack, trace(20));
        }
        let record = examples.record(|stack| (stack != 100).then_some(stack));
        assert_eq!((record.requests.len(), record.untraced), (MAX_KINDS - 1, 3));
        let of_five = record.requests.iter().find(|kind| kind.target == 5).unwrap();
        let lengths: Vec<_> = of_five.examples.iter().map(RequestExample::length_ns).collect();
        assert_eq!((of_five.count, &lengths[..]), (1, &[10, 10, 10][..]));
    }
}
