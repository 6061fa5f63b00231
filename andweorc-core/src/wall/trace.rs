//! Trace of one request: its spans, and what each of them did at which time.

use super::stacks::WallState;
use crate::time::{Nanos, Real};
use crate::wait::Cause;
use andweorc_profile::{ExampleInterval, ExampleSpan, ExampleState};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many spans of a request are told apart. What those beyond do is told of the span around them.
const MAX_SPANS: usize = 128;

/// So many intervals of a request are told apart. Where there are more, short ones are joined with
/// those beside them.
const MAX_INTERVALS: usize = 256;

/// Intervals that are left once short ones are joined.
const INTERVALS_LEFT: usize = MAX_INTERVALS * 3 / 4;

/// Intervals are first joined over this, ns, and then over twice as much each time.
const FIRST_GRAIN: i64 = 1_000;

/// Memory of all traces, in bytes.
#[derive(Debug)]
pub(super) struct TraceMemory {
    held: AtomicUsize,
    most: usize,
}

impl TraceMemory {
    const fn new(most: usize) -> TraceMemory {
        TraceMemory { held: AtomicUsize::new(0), most }
    }
}

/// Of this process. Apart from what is recorded, since a trace gives back its part where it is
/// dropped, whoever has it then.
static MEMORY: TraceMemory = TraceMemory::new(16 << 20);

/// A span of the request.
#[derive(Clone, Copy, Debug)]
struct TracedSpan {
    stack: u32,
    parent: Option<u32>,
    begun: Real,
    ended: Real,
}

/// Place of an open span in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    span: u32,
    /// The span there is this one, and not one around it.
    is_own: bool,
}

/// A stretch of a span in one state.
#[derive(Clone, Copy, Debug)]
struct Interval {
    span: u32,
    state: WallState,
    from: Real,
    until: Real,
}

impl Interval {
    fn length(&self) -> Nanos {
        self.until - self.from
    }
}

/// The spans of one request, and their intervals. Nothing is in it where there was no memory for
/// it.
#[derive(Debug)]
pub(super) struct Trace {
    memory: &'static TraceMemory,
    /// Memory that it holds, bytes.
    held: usize,
    begun: Real,
    spans: Vec<TracedSpan>,
    intervals: Vec<Interval>,
    /// Intervals are joined over so many ns.
    grain: Nanos,
    is_lost: bool,
    /// Intervals that were joined with others.
    pub(super) merged: u64,
    /// Spans that are told as the one around them.
    pub(super) left_out: u64,
}

impl Trace {
    /// Of a request that begins now.
    pub(super) fn new(now: Real) -> Trace {
        Trace::within(&MEMORY, now)
    }

    fn within(memory: &'static TraceMemory, now: Real) -> Trace {
        Trace {
            memory,
            held: 0,
            begun: now,
            spans: Vec::new(),
            intervals: Vec::new(),
            grain: Nanos(0),
            is_lost: false,
            merged: 0,
            left_out: 0,
        }
    }

    /// How long its first span was open, if that is over and nothing of it is lost.
    pub(super) fn length(&self) -> Option<Nanos> {
        let first = self.spans.first()?;
        (first.ended != Real::NEVER).then(|| first.ended - first.begun)
    }

    /// A span of this stack is opened inside of `parent`. `None` where nothing is told of it.
    pub(super) fn opened(&mut self, stack: u32, parent: Option<Place>, now: Real) -> Option<Place> {
        let parent = parent.map(|parent| parent.span);
        if self.spans.len() >= MAX_SPANS {
            self.left_out += 1;
            return parent.map(|span| Place { span, is_own: false });
        }
        if self.is_lost || !self.reserve() {
            return None;
        }
        self.spans.push(TracedSpan { stack, parent, begun: now, ended: Real::NEVER });
        Some(Place { span: self.spans.len() as u32 - 1, is_own: true })
    }

    /// A span is closed.
    pub(super) fn closed(&mut self, place: Place, now: Real) {
        if let Some(span) = self.spans.get_mut(place.span as usize)
            && place.is_own
        {
            span.ended = now;
        }
    }

    /// A span was in this state from one moment to another.
    pub(super) fn add(&mut self, place: Place, state: WallState, from: Real, until: Real) {
        let span = place.span;
        if until <= from || self.is_lost {
            return;
        }
        if let Some(last) = self.intervals.iter_mut().rfind(|one| one.span == span)
            && (last.state, last.until) == (state, from)
        {
            last.until = until;
            return;
        }
        if self.intervals.len() >= MAX_INTERVALS {
            self.coarsen();
        }
        if self.reserve() {
            self.intervals.push(Interval { span, state, from, until });
        }
    }

    /// Joins intervals over longer and longer times until enough are gone. Ends, since there are
    /// fewer spans than intervals may be left.
    fn coarsen(&mut self) {
        const { assert!(MAX_SPANS < INTERVALS_LEFT) };
        self.intervals.sort_by_key(|one| (one.span, one.from));
        let before = self.intervals.len();
        while self.intervals.len() > INTERVALS_LEFT {
            let grain = Nanos((2 * self.grain.0).max(FIRST_GRAIN));
            self.grain = grain;
            self.intervals.dedup_by(|one, last| {
                let is_near = one.span == last.span && one.from - last.until <= grain;
                let is_short = one.length() <= grain || last.length() <= grain;
                if !is_near || !(is_short || one.state == last.state) {
                    return false;
                }
                if one.length() > last.length() {
                    last.state = one.state;
                }
                last.until = last.until.max(one.until);
                true
            });
        }
        self.merged += (before - self.intervals.len()) as u64;
    }

    /// Makes room for one more span and one more interval. Loses all where there is no memory for
    /// that.
    fn reserve(&mut self) -> bool {
        let more = if self.spans.len() == self.spans.capacity() {
            self.spans.len().max(4) * size_of::<TracedSpan>()
        } else if self.intervals.len() == self.intervals.capacity() {
            self.intervals.len().max(8) * size_of::<Interval>()
        } else {
            return true;
        };
        // Relaxed: a sum, by which nothing else is told.
        let held = self.memory.held.fetch_add(more, Ordering::Relaxed) + more;
        self.held += more;
        if held > self.memory.most {
            self.lose();
            return false;
        }
        if self.spans.len() == self.spans.capacity() {
            self.spans.reserve_exact(self.spans.len().max(4));
        } else {
            self.intervals.reserve_exact(self.intervals.len().max(8));
        }
        self.reserve()
    }

    /// Forgets all that is in it.
    fn lose(&mut self) {
        (self.spans, self.intervals) = (Vec::new(), Vec::new());
        self.is_lost = true;
        self.release();
    }

    fn release(&mut self) {
        // Relaxed: as above.
        self.memory.held.fetch_sub(mem::take(&mut self.held), Ordering::Relaxed);
    }

    /// The spans as the profile has them, whose targets are found by their stacks.
    pub(super) fn spans(&self, target: impl Fn(u32) -> Option<u32>) -> Vec<ExampleSpan> {
        let ns = |at: Real| u64::try_from((at - self.begun).0).unwrap_or(0);
        let span = |span: &TracedSpan| ExampleSpan {
            parent: span.parent,
            target: target(span.stack),
            begin_ns: ns(span.begun),
            end_ns: ns(span.ended.max(span.begun)),
            intervals: Vec::new(),
        };
        let mut spans: Vec<_> = self.spans.iter().map(span).collect();
        let mut intervals = self.intervals.clone();
        intervals.sort_by_key(|one| (one.span, one.from));
        for Interval { span, state, from, until } in intervals {
            let (state, by) = match state {
                WallState::Running => (ExampleState::Running, 0),
                WallState::Queue => (ExampleState::Queue, 0),
                WallState::Unknown => (ExampleState::Unknown, 0),
                WallState::Waiting(Cause::Outside, _) => (ExampleState::Outside, 0),
                WallState::Waiting(Cause::Timer, _) => (ExampleState::Timer, 0),
                WallState::Waiting(Cause::Task, by) => (ExampleState::Task, by),
            };
            let by = (by != 0).then_some(by);
            let (begin_ns, end_ns) = (ns(from), ns(until));
            spans[span as usize].intervals.push(ExampleInterval { state, by, begin_ns, end_ns });
        }
        spans
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_intervals_are_joined_where_there_are_too_many_and_counted() {
        let mut trace = Trace::new(Real(0));
        let span = trace.opened(1, None, Real(0)).unwrap();
        let (mut at, mut added) = (0, 0);
        // A long wait after each ten short ones.
        while added < 20 * MAX_INTERVALS as i64 {
            let long = added % 10 == 9;
            let state = match added % 2 {
                0 => WallState::Running,
                _ => WallState::Waiting(Cause::Outside, 0),
            };
            let length = if long { 1_000_000 } else { 500 };
            trace.add(span, state, Real(at), Real(at + length));
            at += length;
            added += 1;
        }
        trace.closed(span, Real(at));
        let spans = trace.spans(|_| Some(7));
        let intervals = &spans[0].intervals;
        assert!(intervals.len() <= MAX_INTERVALS, "{}", intervals.len());
        assert_eq!(intervals.len() as u64 + trace.merged, added as u64);
        // The whole is still told, and the long state is still the one that it mostly was in.
        let length = |it: &ExampleInterval| it.end_ns - it.begin_ns;
        assert_eq!(intervals.iter().map(length).sum::<u64>(), at as u64);
        let waits = intervals.iter().filter(|it| it.state == ExampleState::Outside);
        assert!(waits.map(length).sum::<u64>() > at as u64 * 9 / 10);
    }

    #[test]
    fn spans_beyond_the_limit_are_told_as_the_one_around_them() {
        let mut trace = Trace::new(Real(0));
        let root = trace.opened(1, None, Real(0)).unwrap();
        for at in 1..MAX_SPANS as i64 {
            let span = trace.opened(2, Some(root), Real(at)).unwrap();
            trace.closed(span, Real(at + 1));
        }
        let beyond = trace.opened(2, Some(root), Real(500)).unwrap();
        trace.add(beyond, WallState::Running, Real(500), Real(600));
        trace.closed(beyond, Real(600));
        assert_eq!((beyond.span, trace.left_out, trace.length()), (root.span, 1, None));
        trace.closed(root, Real(700));
        assert_eq!(trace.length(), Some(Nanos(700)));
        let spans = trace.spans(Some);
        assert_eq!((spans.len(), spans[0].intervals.len()), (MAX_SPANS, 1));
        assert_eq!((spans[9].parent, spans[9].target, spans[9].begin_ns), (Some(0), Some(2), 9));
    }

    #[test]
    fn trace_without_memory_is_lost_and_gives_all_back() {
        static SMALL: TraceMemory = TraceMemory::new(4096);
        let mut kept = Trace::within(&SMALL, Real(0));
        let span = kept.opened(1, None, Real(0)).unwrap();
        kept.closed(span, Real(9));
        let mut lost = Trace::within(&SMALL, Real(0));
        let span = lost.opened(1, None, Real(0)).unwrap();
        for at in 0..MAX_INTERVALS as i64 {
            lost.add(span, WallState::Running, Real(3 * at), Real(3 * at + 1));
        }
        lost.closed(span, Real(900));
        assert_eq!((lost.length(), kept.length()), (None, Some(Nanos(9))));
        assert_eq!(SMALL.held.load(Ordering::Relaxed), kept.held);
        drop((kept, lost));
        assert_eq!(SMALL.held.load(Ordering::Relaxed), 0);
    }
}
