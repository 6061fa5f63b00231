//! The polls and spans that the calling thread is in, while wall time is recorded.

use super::by_task::ByTask;
use super::request::PollWait;
use super::stacks::{WallState, ns};
use super::timeline::Event;
use super::wait_sites::{Begun, Pace};
use super::{OpenSpan, RECORDING, is_recording, lock};
use crate::allocations::left_out;
use crate::target::Target;
use crate::thread;
use crate::time::{Nanos, Real};
use crate::wait::{Cause, Ended};
use andweorc_profile::plain;
use andweorc_sampling::slots;
use andweorc_sampling::thread_name::ThreadName;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Polls inside of each other that are told apart; those beyond are as if nobody had seen them.
const MAX_POLLS: usize = 64;

/// Spans of one thread that are entered on top of each other and told apart.
const MAX_ENTRIES: usize = 4096;

/// So many threads are told apart in the timeline; those that come later are told as the last.
const MAX_THREADS: usize = 4096;

/// The id of the target that has woken each task, since it was last polled.
static WOKEN_BY: ByTask = ByTask::new();

/// A poll that the calling thread is in.
#[derive(Debug)]
struct InPoll {
    task: &'static Target,
    /// The task's number.
    number: usize,
    began: Real,
    /// For how long the task had been ready, where that is known.
    delay: Option<Nanos>,
    /// The wait that ended with it, and when it began.
    wait: Option<(PollWait, Real)>,
    /// A span that was entered has had that wait.
    is_a_spans: bool,
    /// The thread had entered so many spans before.
    entered_before: u64,
    /// The wait that begins with its end.
    begun: Begun,
}

/// A span that the calling thread has entered and not left.
#[derive(Debug)]
struct Entry {
    span: OpenSpan,
    /// The span of the same request that it was entered on top of.
    over: Option<u32>,
    entered: Real,
    /// How many spans the thread had entered with it; 0 once it is counted as held over a poll.
    number: u64,
}

#[derive(Debug)]
struct Here {
    polls: RefCell<Vec<InPoll>>,
    entries: RefCell<Vec<Entry>>,
    /// Waits that are sampled.
    pace: RefCell<Pace>,
    /// How many spans the thread has entered.
    entered: Cell<u64>,
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
            pace: RefCell::new(Pace::new()),
            entered: Cell::new(0),
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
            slots::set_task(0);
        }
        Some(left_out(|| f(here)))
    };
    HERE.try_with(here).ok().flatten()
}

impl Here {
    /// Adds a poll or a span to the timeline.
    fn tell(&self, target: u32, from: Real, until: Real) {
        if self.thread.get() == 0 {
            let name = plain::cut_name(&ThreadName::own().to_string()).into_owned();
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
    WOKEN_BY.put_first(task, thread::innermost_target());
}

/// The calling thread has cloned the waker of a task, known by this number to [`woken`]. If it is
/// polling that task, the task is going to wait for whoever has the clone.
#[cold]
#[inline(never)]
pub fn waker_cloned(task: usize) {
    let waiter = thread::innermost_target();
    with(|here| {
        let mut polls = here.polls.borrow_mut();
        if let Some(poll) = polls.iter_mut().rfind(|poll| poll.number == task) {
            poll.begun.cloned(&mut here.pace.borrow_mut(), poll.began, waiter);
        }
    });
}

/// The calling thread begins, at `now`, to poll a task that is known by this number to
/// [`woken`], whose wait ended like this if that is known.
pub(crate) fn poll_begins(task: &'static Target, number: usize, ended: Option<Ended>, now: Real) {
    let by = WOKEN_BY.take(number);
    let begun = Begun::take(number);
    with(|here| {
        count_site(begun.before(), by, ended);
        let mut polls = here.polls.borrow_mut();
        if polls.len() < MAX_POLLS {
            let wait = ended.map(|ended| (PollWait { ended, by }, now));
            let delay = ended.map(|ended| now - ended.woken());
            let entered_before = here.entered.get();
            polls.push(InPoll {
                task,
                number,
                began: now,
                delay,
                wait,
                is_a_spans: false,
                entered_before,
                begun,
            });
            slots::set_task(task.id());
        }
    });
}

/// The calling thread ends at `now` its innermost poll of the task of this number, and with it
/// those inside, if it has [begun](poll_begins). The wait before it is the task's own if no span
/// had it. A span that was entered in the poll and not left is held over it: of a guard that lives
/// on in the task, the drop is in a later poll.
pub(crate) fn poll_ends(number: usize, now: Real) {
    with(|here| {
        let mut polls = here.polls.borrow_mut();
        let place = polls.iter().rposition(|poll| poll.number == number);
        let ended = place.and_then(|place| polls.drain(place..).next());
        slots::set_task(polls.last().map_or(0, |poll| poll.task.id()));
        let Some(ended) = ended.filter(|_| is_recording()) else { return };
        if matches!(ended.begun, Begun::Unsampled) {
            // Relaxed: a count.
            RECORDING.unsampled_waits.fetch_add(1, Ordering::Relaxed);
        }
        ended.begun.keep(number, |site| lock(&RECORDING.wait_sites).number(site));
        RECORDING.polls().add(ended.task, now - ended.began, ended.delay);
        here.tell(ended.task.id(), ended.began, now);
        if let (false, Some((wait, polled))) = (ended.is_a_spans, ended.wait) {
            count_wait(ended.task, wait, polled);
        }
        let mut entries = here.entries.borrow_mut();
        for Entry { span, number, .. } in &mut *entries {
            if *number > ended.entered_before {
                *number = 0;
                count_held(span);
            }
        }
    });
}

/// Credits a wait that ended like this to its site, of which this is the word, if somebody has
/// ended it who was in the target `by`. A wake in nobody's name may be one of the scheduler.
fn count_site(word: u32, by: u32, ended: Option<Ended>) {
    let is_named = |ended: &Ended| word != 0 && by != 0 && ended.by() == Cause::Task;
    let Some(ended) = ended.filter(is_named) else { return };
    let since = lock(&RECORDING.stretch).since;
    let length = ended.woken().max(since) - ended.parked().max(since);
    lock(&RECORDING.wait_sites).add(word, by, length);
}

/// Counts that a span is held over an await.
fn count_held(span: &OpenSpan) {
    let stack = lock(&span.request).stack(span.span);
    if let Some(stack) = stack {
        RECORDING.sums().hold(stack);
    }
}

/// Counts a wait of a task outside of all spans, which was `polled` after it.
fn count_wait(task: &Target, wait: PollWait, polled: Real) {
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
        let number = here.entered.get() + 1;
        here.entered.set(number);
        entries.push(Entry { span: span.clone(), over, entered: now, number });
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
