//! One request: the tree of its open spans, and whose each moment of it is.

#[cfg(test)]
mod tests;

use super::shares::{Mark, Shares};
use super::stacks::{Sums, WallState};
use super::trace::{Place, Trace};
use crate::time::Real;
use crate::wait::Ended;
use std::mem;

/// So many spans of one request are told apart at a time.
const MAX_OPEN: usize = 4096;

/// So many stretches of one wait are kept apart: a span waits in several where spans are opened
/// inside of it meanwhile. Of those before it is not told what they were.
const MAX_STRETCHES: usize = 8;

/// A stretch of a wait.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Mark,
    until: Mark,
    /// Its time is among the sums already, as that of a wait of which nobody knows for what.
    is_counted: bool,
}

/// A span that is open.
#[derive(Debug)]
struct Open {
    stack: u32,
    parent: Option<u32>,
    /// Spans inside of it that are open.
    inside: u32,
    /// Threads that have entered it and not left.
    entered: u32,
    /// Of these, those that have entered another span of the request since.
    covered: u32,
    /// The clock of what runs when this was last counted.
    ran: f64,
    /// Since when it waits, if it does.
    waits: Option<Mark>,
    /// Stretches of the wait that goes on, but for the last.
    waited: Vec<Stretch>,
    /// When it was last left, if it was ever entered.
    left: Option<Real>,
    /// Whether it was closed while some inside of it were open.
    is_closed: bool,
    /// Since when it runs, if it does.
    runs: Option<Real>,
    /// Place of it in the trace, if anything is told of it.
    place: Option<Place>,
}

impl Open {
    /// Threads that run it, and nothing inside of it.
    fn running(&self) -> u32 {
        self.entered.saturating_sub(self.covered)
    }
}

/// The wait of a task that ended with the poll in which a span is entered.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollWait {
    pub(super) ended: Ended,
    /// The id of the target that woke it, where a task did; 0 where that is not known.
    pub(super) by: u32,
}

/// The open spans of one request.
#[derive(Debug)]
pub(super) struct Request {
    spans: Vec<Option<Open>>,
    free: Vec<u32>,
    running: u32,
    waiting: u32,
    shares: Shares,
    /// Its outermost stack.
    stack: u32,
    pub(super) sums: Sums,
    /// The request by itself, until it is taken.
    trace: Trace,
    /// The span that it begins with is inside of one that was open before, and not recorded.
    pub(super) is_part: bool,
    /// Nothing of it is counted any more.
    pub(super) is_over: bool,
}

impl Request {
    /// A request of which no span is open yet.
    pub(super) fn new(now: Real, stack: u32) -> Request {
        Request {
            spans: Vec::new(),
            free: Vec::new(),
            running: 0,
            waiting: 0,
            shares: Shares::new(now),
            stack,
            sums: Sums::default(),
            trace: Trace::new(now),
            is_part: false,
            is_over: false,
        }
    }

    /// The stack of one of its open spans.
    pub(super) fn stack(&self, span: u32) -> Option<u32> {
        self.open(span).map(|open| open.stack)
    }

    /// Whether none of its spans is open.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.spans.len()
    }

    fn open(&self, span: u32) -> Option<&Open> {
        self.spans.get(span as usize)?.as_ref()
    }

    /// Lets time pass up to `now`.
    fn advance(&mut self, now: Real) {
        let nobodys = self.shares.advance(now, self.running, self.waiting);
        self.sums.add(self.stack, WallState::Unknown, nobodys);
    }

    /// Changes a span. What it ran so far is counted, and whether it goes on to run or to wait is
    /// looked at anew.
    fn change(&mut self, span: u32, change: impl FnOnce(&mut Open)) {
        let Some(open) = self.spans.get_mut(span as usize).and_then(Option::as_mut) else { return };
        let before = open.running();
        let ran = (self.shares.running() - open.ran) * f64::from(before);
        self.sums.add(open.stack, WallState::Running, ran);
        open.ran = self.shares.running();
        change(open);
        self.running = self.running - before + open.running();
        let now = self.shares.mark();
        if open.running() > 0 {
            open.runs.get_or_insert(now.at);
        } else if let Some(since) = open.runs.take()
            && let Some(place) = open.place
        {
            self.trace.add(place, WallState::Running, since, now.at);
        }
        let waits = open.entered == 0 && open.inside == 0 && !open.is_closed;
        match (open.waits, waits) {
            (None, true) => {
                open.waits = Some(now);
                self.waiting += 1;
            }
            (Some(since), false) => {
                open.waits = None;
                self.waiting -= 1;
                if open.waited.len() == MAX_STRETCHES {
                    let first = open.waited.remove(0);
                    give_up(&mut self.sums, &mut self.trace, open.stack, open.place, first);
                }
                open.waited.push(Stretch { from: since, until: now, is_counted: false });
            }
            _ => {}
        }
    }

    /// A span is opened inside of `parent`. `None` where too many are open.
    pub(super) fn opened(&mut self, stack: u32, parent: Option<u32>, now: Real) -> Option<u32> {
        if self.is_over || self.spans.len() - self.free.len() >= MAX_OPEN {
            return None;
        }
        self.advance(now);
        let around = parent.and_then(|parent| self.open(parent)).and_then(|open| open.place);
        let place = match (parent, around) {
            (Some(_), None) => None,
            _ => self.trace.opened(stack, around, self.shares.mark().at),
        };
        if let Some(parent) = parent {
            self.change(parent, |open| open.inside += 1);
        }
        let open = Open {
            stack,
            parent,
            inside: 0,
            entered: 0,
            covered: 0,
            ran: 0.0,
            waits: None,
            waited: Vec::new(),
            left: None,
            is_closed: false,
            runs: None,
            place,
        };
        let span = self.free.pop().unwrap_or(self.spans.len() as u32);
        match self.spans.get_mut(span as usize) {
            Some(place) => *place = Some(open),
            None => self.spans.push(Some(open)),
        }
        self.change(span, |_| {});
        Some(span)
    }

    /// A thread enters a span, on top of the span `over` of the same request if it is in one, in a
    /// poll that ended the wait `poll`, if that is known. Says whether that was a wait of the
    /// span's.
    pub(super) fn entered(
        &mut self,
        span: u32,
        over: Option<u32>,
        poll: Option<PollWait>,
        now: Real,
    ) -> bool {
        if self.is_over {
            return false;
        }
        self.advance(now);
        if let Some(over) = over {
            self.change(over, |open| open.covered += 1);
        }
        self.change(span, |open| open.entered += 1);
        let Some(open) = self.spans.get_mut(span as usize).and_then(Option::as_mut) else {
            return false;
        };
        let (stack, left, place) = (open.stack, open.left, open.place);
        for Stretch { from, until, is_counted } in mem::take(&mut open.waited) {
            let (state, woken) = split(from.at, until.at, poll, left);
            if !is_counted {
                let told = self.shares.told_at(woken, from, until);
                self.sums.add(stack, state, told - from.told);
                self.sums.add(stack, WallState::Queue, until.told - told);
            }
            if let Some(place) = place {
                self.trace.add(place, state, from.at, woken);
                self.trace.add(place, WallState::Queue, woken, until.at);
            }
        }
        matches!((left, poll), (Some(left), Some(poll)) if left <= poll.ended.parked())
    }

    /// A thread leaves a span that it entered on top of the span `over`.
    pub(super) fn left(&mut self, span: u32, over: Option<u32>, now: Real) {
        if self.is_over {
            return;
        }
        self.advance(now);
        self.change(span, |open| {
            open.entered = open.entered.saturating_sub(1);
            open.left = Some(now);
        });
        if let Some(over) = over {
            self.change(over, |open| open.covered = open.covered.saturating_sub(1));
        }
    }

    /// A span is closed.
    pub(super) fn closed(&mut self, span: u32, now: Real) {
        if self.is_over {
            return;
        }
        self.advance(now);
        self.change(span, |open| open.is_closed = true);
        if let Some(place) = self.open(span).and_then(|open| open.place) {
            self.trace.closed(place, self.shares.mark().at);
        }
        if let Some(stack) = self.stack(span) {
            self.sums.count(stack);
        }
        let mut closed = Some(span);
        // The spans around it too that were closed before: not by recursion, they may be many.
        while let Some(span) = closed
            && self.open(span).is_some_and(|open| open.is_closed && open.inside == 0)
        {
            self.change(span, |open| (open.entered, open.covered) = (0, 0));
            self.give_up_wait(span);
            closed = self.spans[span as usize].take().and_then(|open| open.parent);
            self.free.push(span);
            if let Some(parent) = closed {
                self.change(parent, |open| open.inside = open.inside.saturating_sub(1));
            }
        }
    }

    /// Counts a wait of which nobody will see the end.
    fn give_up_wait(&mut self, span: u32) {
        let Some(open) = self.spans.get_mut(span as usize).and_then(Option::as_mut) else { return };
        for stretch in open.waited.drain(..) {
            give_up(&mut self.sums, &mut self.trace, open.stack, open.place, stretch);
        }
    }

    /// Counts all up to `now`. An end of a wait that comes later is that of what is left of it, but
    /// for the trace, which tells the whole.
    pub(super) fn settle(&mut self, now: Real) {
        self.advance(now);
        for span in 0..self.spans.len() as u32 {
            self.change(span, |_| {});
            let mark = self.shares.mark();
            let Some(open) = self.spans[span as usize].as_mut() else { continue };
            if let Some(since) = open.waits.as_mut() {
                let from = mem::replace(since, mark);
                open.waited.push(Stretch { from, until: mark, is_counted: false });
            }
            for stretch in open.waited.iter_mut().filter(|stretch| !stretch.is_counted) {
                let told = stretch.until.told - stretch.from.told;
                self.sums.add(open.stack, WallState::Unknown, told);
                stretch.is_counted = true;
            }
            open.waited.dedup_by(|next, last| {
                let goes_on = next.is_counted && last.is_counted && next.from.at == last.until.at;
                if goes_on {
                    last.until = next.until;
                }
                goes_on
            });
        }
    }

    /// Counts all up to `now`, and nothing from now on.
    pub(super) fn end(&mut self, now: Real) {
        if !self.is_over {
            self.settle(now);
            self.is_over = true;
        }
    }

    /// The trace of a request that is over, with the stack of its outermost span.
    pub(super) fn take_trace(&mut self) -> (u32, Trace) {
        (self.stack, mem::replace(&mut self.trace, Trace::new(self.shares.mark().at)))
    }
}

/// Splits a wait of a span that was last `left` then, which a poll ended: the state up to a moment,
/// from which on it was in the queue. One that was never entered before was in the queue with its
/// task, unless the task is known to have waited since.
///
/// A task that is polled meanwhile for another part of it does not end the wait of this one.
fn split(from: Real, until: Real, poll: Option<PollWait>, left: Option<Real>) -> (WallState, Real) {
    let (state, ends) = match poll {
        Some(PollWait { ended, by }) if left.is_none_or(|left| ended.parked() >= left) => {
            (WallState::Waiting(ended.by(), by), ended.woken())
        }
        // The task went on all the time.
        Some(_) => (WallState::Running, until),
        None if left.is_none() => (WallState::Queue, from),
        None => (WallState::Unknown, until),
    };
    (state, ends.max(from).min(until))
}

/// Tells a stretch of a wait of which nobody knows for what.
fn give_up(
    sums: &mut Sums,
    trace: &mut Trace,
    stack: u32,
    place: Option<Place>,
    Stretch { from, until, is_counted }: Stretch,
) {
    if !is_counted {
        sums.add(stack, WallState::Unknown, until.told - from.told);
    }
    if let Some(place) = place {
        trace.add(place, WallState::Unknown, from.at, until.at);
    }
}
