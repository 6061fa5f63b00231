//! The polls and spans that the calling thread is in, while wall time is recorded.

use super::request::PollWait;
use super::stacks::{WallState, ns};
use super::timeline::Event;
use super::{OpenSpan, RECORDING, is_recording, lock};
use crate::allocations::left_out;
use crate::target::Target;
use crate::thread;
use crate::time::Real;
use crate::wait::{Cause, Ended};
use andweorc_profile::plain;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Polls inside of each other that are told apart; those beyond are as if nobody had seen them.
const MAX_POLLS: usize = 64;

/// Spans of one thread that are entered on top of each other and told apart.
const MAX_ENTRIES: usize = 4096;

/// So many threads are told apart in the timeline; those that come later are told as the last.
const MAX_THREADS: usize = 4096;

/// Places for who has woken a task, by the task: where two tasks meet in one, the first is
/// forgotten.
const WAKERS: usize = 4096;

/// In each place the task, and the id of the target that woke it.
static WOKEN_BY: [AtomicU64; WAKERS] = [const { AtomicU64::new(0) }; WAKERS];

/// A poll that the calling thread is in.
#[derive(Debug)]
struct InPoll {
    task: &'static Target,
    begun: Real,
    /// The wait that ended with it, and when it began.
    wait: Option<(PollWait, Real)>,
    /// A span that was entered has had that wait.
    is_a_spans: bool,
}

/// A span that the calling thread has entered and not left.
#[derive(Debug)]
struct Entry {
    span: OpenSpan,
    /// The span of the same request that it was entered on top of.
    over: Option<u32>,
    entered: Real,
}

#[derive(Debug)]
struct Here {
    polls: RefCell<Vec<InPoll>>,
    entries: RefCell<Vec<Entry>>,
    /// The recording that these are of.
    number: Cell<u32>,
    /// Number of the thread in the timeline, and 1; 0 before it has one.
    thread: Cell<u32>,
    /// The thread is in here: what allocating does meanwhile is not recorded.
    is_busy: Cell<bool>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            polls: RefCell::new(Vec::new()),
            entries: RefCell::new(Vec::new()),
            number: Cell::new(0),
            thread: Cell::new(0),
            is_busy: Cell::new(false),
        }
    };
}

/// The thread is busy until this is dropped.
struct Busy<'a>(&'a Cell<bool>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Runs `f` unless the calling thread is in here already, or ends.
pub(super) fn alone<R>(f: impl FnOnce() -> R) -> Option<R> {
    with(|_| f())
}

fn with<R>(f: impl FnOnce(&Here) -> R) -> Option<R> {
    let here = |here: &Here| {
        if here.is_busy.replace(true) {
            return None;
        }
        let _busy = Busy(&here.is_busy);
        // Relaxed: what is out of date a little longer is ended anyway.
        let number = RECORDING.number.load(Ordering::Relaxed);
        if here.number.replace(number) != number {
            here.polls.borrow_mut().clear();
            here.entries.borrow_mut().clear();
        }
        Some(left_out(|| f(here)))
    };
    HERE.try_with(here).ok().flatten()
}

impl Here {
    /// Adds a poll or a span to the timeline.
    fn tell(&self, target: u32, from: Real, until: Real) {
        if self.thread.get() == 0 {
            let thread = std::thread::current();
            let name = plain::cut_name(thread.name().unwrap_or_default()).into_owned();
            let mut threads = lock(&RECORDING.threads);
            if threads.len() < MAX_THREADS {
                threads.push(name);
            }
            self.thread.set(threads.len() as u32);
        }
        let thread = self.thread.get() - 1;
        let ring = &RECORDING.timeline[thread as usize % RECORDING.timeline.len()];
        lock(ring).push(Event { thread, target, from, until });
    }
}

/// A task is woken, known by this number, by what the calling thread is in. The first wake counts,
/// since it ends the wait.
#[cold]
#[inline(never)]
pub fn woken(task: usize) {
    let place = &WOKEN_BY[place_of(task)];
    let by = thread::innermost_target();
    // Relaxed: a number that stands for itself. Another thread may write meanwhile, which is a
    // wake at the same moment.
    if place.load(Ordering::Relaxed) >> 32 != tag_of(task) {
        place.store(tag_of(task) << 32 | u64::from(by), Ordering::Relaxed);
    }
}

/// The id of the target that has woken a task since this was last asked; 0 where that is not known.
fn take_waker(task: usize) -> u32 {
    let place = &WOKEN_BY[place_of(task)];
    // Relaxed: see `woken`.
    let found = place.load(Ordering::Relaxed);
    if found >> 32 != tag_of(task) {
        return 0;
    }
    place.store(0, Ordering::Relaxed);
    found as u32
}

fn hash(task: usize) -> u64 {
    // 2^64 over the golden ratio, as in Fibonacci hashing.
    (task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn place_of(task: usize) -> usize {
    (hash(task) >> 52) as usize % WAKERS
}

/// Half of a task's hash that is never 0.
fn tag_of(task: usize) -> u64 {
    (hash(task) >> 16 & 0xffff_ffff) | 1
}

/// The calling thread begins, at `now`, to poll a task that is known by this number to
/// [`woken`], whose wait ended like this if that is known. Returns how to call the poll's
/// [end](poll_ends); 0 where it is not recorded.
#[cold]
#[inline(never)]
pub fn poll_begins(task: &'static Target, number: usize, ended: Option<Ended>, now: Real) -> u32 {
    let by = take_waker(number);
    let begun = with(|here| {
        let mut polls = here.polls.borrow_mut();
        if polls.len() >= MAX_POLLS {
            return 0;
        }
        let wait = ended.map(|ended| (PollWait { ended, by }, now));
        polls.push(InPoll { task, begun: now, wait, is_a_spans: false });
        polls.len() as u32
    });
    begun.unwrap_or(0)
}

/// The calling thread ends, at `now`, a poll that [began](poll_begins) as `poll`. The wait before
/// it is the task's own if no span had it.
#[cold]
#[inline(never)]
pub fn poll_ends(poll: u32, now: Real) {
    with(|here| {
        let mut polls = here.polls.borrow_mut();
        let ended = {
            let first = (poll as usize - 1).min(polls.len());
            polls.drain(first..).next()
        };
        if let Some(InPoll { task, begun, .. }) = ended
            && is_recording()
        {
            here.tell(task.id(), begun, now);
        }
        if let Some(InPoll { task, wait: Some((wait, polled)), is_a_spans: false, .. }) = ended
            && is_recording()
        {
            let since = lock(&RECORDING.stretch).since;
            let (parked, woken) = (wait.ended.parked().max(since), wait.ended.woken().max(since));
            let state = match wait.ended.by() {
                Cause::Task => WallState::Waiting(Cause::Task, wait.by),
                by => WallState::Waiting(by, 0),
            };
            let stack = RECORDING.stack(None, task);
            let mut sums = RECORDING.sums();
            sums.count(stack);
            sums.add(stack, state, ns(woken - parked));
            sums.add(stack, WallState::Queue, ns(polled.max(since) - woken));
        }
    });
}

/// The calling thread enters a span at `now`.
pub fn enter(span: &OpenSpan, now: Real) {
    with(|here| {
        let mut entries = here.entries.borrow_mut();
        if !span.is_of(here.number.get()) || entries.len() >= MAX_ENTRIES {
            return;
        }
        let same = |entry: &&Entry| Arc::ptr_eq(&entry.span.request, &span.request);
        let over = entries.iter().rfind(same).map(|entry| entry.span.span);
        let mut polls = here.polls.borrow_mut();
        let poll = polls.last_mut();
        let wait = poll.as_ref().and_then(|poll| poll.wait).map(|(wait, _)| wait);
        let had = lock(&span.request).entered(span.span, over, wait, now);
        if let Some(poll) = poll {
            poll.is_a_spans |= had;
        }
        entries.push(Entry { span: span.clone(), over, entered: now });
    });
}

/// The calling thread leaves a span at `now`.
pub fn exit(span: &OpenSpan, now: Real) {
    with(|here| {
        let mut entries = here.entries.borrow_mut();
        let same = |entry: &Entry| {
            entry.span.span == span.span && Arc::ptr_eq(&entry.span.request, &span.request)
        };
        if let Some(at) = entries.iter().rposition(same) {
            let Entry { over, entered, .. } = entries.remove(at);
            here.tell(span.target, entered, now);
            lock(&span.request).left(span.span, over, now);
        }
    });
}
