//! Where wall time goes while nothing is delayed, by stacks of spans: recorded while a run
//! [observes](crate::experiment) the program, and not in experiments or in their baselines, which
//! it would slow down.
//!
//! | module | job |
//! |---|---|
//! | `request` | one request: the tree of its open spans, and whose each moment is |
//! | `shares` | its clocks, which go slower the more spans share a moment |
//! | `stacks` | the stacks that are told apart, and their times |
//! | `poll_times` | how long polls are |
//! | `trace` | one request by itself: its spans, and what each did at which time |
//! | `examples` | which traces are kept, and which are told at last |
//! | `timeline` | the last polls and spans of each thread |
//! | `wait_sites` | the locks and channels at which tasks wait for each other |
//! | `by_task` | a word for each task, without a lock |
//! | `here` | the polls and spans that the calling thread is in |

mod by_task;
mod examples;
mod here;
mod poll_times;
mod request;
mod shares;
mod stacks;
mod timeline;
mod trace;
mod wait_sites;

pub use here::{enter, exit, waker_cloned, woken};
pub(crate) use here::{poll_begins, poll_ends};

use crate::clock;
use crate::process::asked::Switches;
use crate::process::process;
use crate::symbols::Symbols;
use crate::target::{Target, targets};
use crate::time::Real;
use andweorc_profile::{
    ExamplesRecord, PollsRecord, TargetKind, TimelineRecord, WaitSites, WallRecord,
};
use examples::Examples;
use poll_times::PollTimes;
use request::Request;
use stacks::{Stacks, Sums, WallState};
use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};
use timeline::Ring;
use wait_sites::Sites;

/// So many requests are recorded at a time.
const MAX_REQUESTS: usize = 16_384;

/// Sums of what has ended, by thread, so that threads seldom meet.
const SHARDS: usize = 16;

/// Whether wall time is recorded. All hooks ask this first.
#[inline]
pub fn is_recording() -> bool {
    process().asked.is_any_on(Switches::RECORDS_WALL)
}

/// The recording of this process. Stacks keep their numbers from one to the next.
#[derive(Debug)]
struct Recording {
    stacks: RwLock<Stacks>,
    ended: [Mutex<Sums>; SHARDS],
    polls: [Mutex<PollTimes>; SHARDS],
    requests: Mutex<Requests>,
    /// Of those that have ended.
    examples: Mutex<Examples>,
    /// Where tasks wait for each other.
    wait_sites: Mutex<Sites>,
    /// Waits that began and were not sampled.
    unsampled_waits: AtomicU64,
    /// The last polls and spans, by thread.
    timeline: [Mutex<Ring>; SHARDS],
    /// Names of threads, by the numbers that they have in the timeline.
    threads: Mutex<Vec<String>>,
    /// Spans that are counted as the stack around them.
    merged: AtomicU64,
    /// Number of the recording: what threads keep of an earlier one is out of date.
    number: AtomicU32,
    stretch: Mutex<Stretch>,
}

/// The requests that are open.
#[derive(Debug, Default)]
struct Requests {
    open: Vec<Option<Arc<Mutex<Request>>>>,
    free: Vec<usize>,
    unseen: u64,
}

/// The stretch of time that is counted.
#[derive(Debug)]
struct Stretch {
    since: Real,
    /// Time that each kind of task was polled outside of all spans by then, ns.
    own: HashMap<u32, u64>,
}

static RECORDING: LazyLock<Recording> = LazyLock::new(|| Recording {
    stacks: RwLock::new(Stacks::new()),
    ended: Default::default(),
    polls: Default::default(),
    requests: Mutex::default(),
    examples: Mutex::default(),
    wait_sites: Mutex::default(),
    unsampled_waits: AtomicU64::new(0),
    timeline: Default::default(),
    threads: Mutex::default(),
    merged: AtomicU64::new(0),
    number: AtomicU32::new(0),
    stretch: Mutex::new(Stretch { since: Real(0), own: HashMap::new() }),
});

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    /// The sums that the calling thread adds to.
    fn sums(&self) -> MutexGuard<'_, Sums> {
        lock(&self.ended[crate::counter::number() % SHARDS])
    }

    /// The polls that the calling thread adds to.
    fn polls(&self) -> MutexGuard<'_, PollTimes> {
        lock(&self.polls[crate::counter::number() % SHARDS])
    }

    /// The number of a stack.
    fn stack(&self, parent: Option<u32>, target: &Target) -> u32 {
        let known = self.stacks.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.known(parent, target.id()) {
            return number;
        }
        drop(known);
        let mut stacks = self.stacks.write().unwrap_or_else(PoisonError::into_inner);
        stacks.number(parent, target.id()).unwrap_or_else(|around| {
            self.merged.fetch_add(1, Ordering::Relaxed);
            around
        })
    }

    /// The requests that are open, without their lock, under which none can begin or end.
    fn open(&self) -> Vec<Arc<Mutex<Request>>> {
        lock(&self.requests).open.iter().flatten().cloned().collect()
    }

    /// Forgets what was counted, at `now`.
    fn clear(&self, now: Real) {
        for request in self.open() {
            let mut request = lock(&request);
            request.settle(now);
            request.sums.clear();
        }
        self.ended.iter().for_each(|sums| lock(sums).clear());
        self.polls.iter().for_each(|polls| lock(polls).clear());
        *lock(&self.examples) = Examples::default();
        lock(&self.wait_sites).clear();
        self.unsampled_waits.store(0, Ordering::Relaxed);
        self.merged.store(0, Ordering::Relaxed);
        lock(&self.requests).unseen = 0;
        *lock(&self.stretch) = Stretch { since: now, own: polled_outside_of_spans() };
    }
}

/// Time that each kind of task was polled outside of all spans so far, ns.
fn polled_outside_of_spans() -> HashMap<u32, u64> {
    let tasks = targets().into_iter().filter(|target| target.kind() == TargetKind::Task);
    tasks.map(|task| (task.id(), task.own_ns())).collect()
}

/// Begins to record, unless that is done already, and a new stretch in any case: times are counted
/// from now on, and spans that are open keep their places.
pub fn begin_stretch() {
    here::alone(|| RECORDING.clear(clock::now()));
    process().asked.switch_on(Switches::RECORDS_WALL);
}

/// Ends the recording. Returns what was counted since the last stretch began: wall time, and polls.
pub fn end() -> (WallRecord, PollsRecord) {
    process().asked.switch_off(Switches::RECORDS_WALL);
    here::alone(end_alone).unwrap_or_default()
}

fn end_alone() -> (WallRecord, PollsRecord) {
    let (recording, now) = (&*RECORDING, clock::now());
    let mut all = Sums::default();
    let Requests { open, unseen, .. } = {
        let mut requests = lock(&recording.requests);
        // Relaxed, under their lock: a request that begins later is of the next recording.
        recording.number.fetch_add(1, Ordering::Relaxed);
        mem::take(&mut *requests)
    };
    for request in open.iter().flatten() {
        let mut request = lock(request);
        request.end(now);
        all.take(&mut request.sums);
    }
    recording.ended.iter().for_each(|sums| all.take(&mut lock(sums)));
    let before =
        mem::replace(&mut *lock(&recording.stretch), Stretch { since: now, own: HashMap::new() });
    for task in targets().into_iter().filter(|target| target.kind() == TargetKind::Task) {
        let own = task.own_ns() - before.own.get(&task.id()).copied().unwrap_or(0);
        if own > 0 {
            all.add(recording.stack(None, task), WallState::Running, own as f64);
        }
    }
    let stacks = recording.stacks.read().unwrap_or_else(PoisonError::into_inner);
    let real_ns = stacks::ns(now - before.since) as u64;
    let mut kinds = Vec::new();
    let merged = recording.polls.iter().map(|polls| lock(polls).move_to(&mut kinds)).sum();
    kinds.sort_unstable_by_key(|kind| kind.target);
    let polls = PollsRecord { real_ns, kinds, merged };
    let wall = WallRecord {
        real_ns,
        stacks: stacks.rows(&all),
        merged: recording.merged.swap(0, Ordering::Relaxed),
        unseen,
        wait_sites: WaitSites::default(),
    };
    (wall, polls)
}

/// Takes the examples of what was recorded since the last stretch began.
pub fn take_examples() -> ExamplesRecord {
    let taken = here::alone(|| {
        let examples = mem::take(&mut *lock(&RECORDING.examples));
        let stacks = RECORDING.stacks.read().unwrap_or_else(PoisonError::into_inner);
        examples.record(|stack| stacks.target(stack))
    });
    taken.unwrap_or_default()
}

/// Takes where tasks waited for each other since the last stretch began. `open` opens the symbols
/// of the program, if there is something to name.
pub fn take_wait_sites(open: impl FnOnce() -> Option<Symbols>) -> WaitSites {
    let taken = here::alone(|| lock(&RECORDING.wait_sites).take());
    // Relaxed: a count.
    let unsampled = RECORDING.unsampled_waits.swap(0, Ordering::Relaxed);
    WaitSites { unsampled, ..taken.unwrap_or_default().record(open) }
}

/// Takes the last polls and spans of the recording that ended, for a run that started at `start`.
pub fn take_timeline(start: Real) -> TimelineRecord {
    let taken = here::alone(|| {
        let threads = lock(&RECORDING.threads).clone();
        timeline::take(RECORDING.timeline.iter().map(lock), &threads, start)
    });
    taken.unwrap_or_default()
}

/// Ends the recording, if that is not done already, and forgets what was not taken.
pub fn forget() {
    end();
    here::alone(|| {
        *lock(&RECORDING.examples) = Examples::default();
        lock(&RECORDING.wait_sites).clear();
        RECORDING.timeline.iter().for_each(|ring| *lock(ring) = Ring::default());
    });
}

/// Stops recording in a child of fork. Async-signal-safe.
pub(crate) fn reset_after_fork() {
    process().asked.switch_off(Switches::RECORDS_WALL);
}

/// A span that is open while wall time is recorded.
#[derive(Clone, Debug)]
pub struct OpenSpan {
    request: Arc<Mutex<Request>>,
    /// Where the request is among those that are open.
    place: usize,
    span: u32,
    /// Id of its target.
    target: u32,
    /// The recording that it is part of.
    number: u32,
}

impl OpenSpan {
    /// A span of `target` is opened inside of `parent`, or begins a request. `None` where too many
    /// are open, and where the calling thread is busy recording another one: an allocator may open
    /// spans. One that `is_part` of a span without a recording is no example of a request.
    pub fn open(target: &Target, parent: Option<&OpenSpan>, is_part: bool) -> Option<OpenSpan> {
        here::alone(|| match parent {
            Some(parent) => parent.open_inside(target),
            None => OpenSpan::begin_request(target, is_part),
        })?
    }

    fn begin_request(target: &Target, is_part: bool) -> Option<OpenSpan> {
        let (recording, now) = (&*RECORDING, clock::now());
        let stack = recording.stack(None, target);
        let mut request = Request::new(now, stack);
        request.is_part = is_part;
        let span = request.opened(stack, None, now)?;
        let request = Arc::new(Mutex::new(request));
        let mut requests = lock(&recording.requests);
        if requests.open.len() - requests.free.len() >= MAX_REQUESTS {
            requests.unseen += 1;
            return None;
        }
        // Relaxed: a recording ends under the lock of its requests.
        let number = recording.number.load(Ordering::Relaxed);
        let place = match requests.free.pop() {
            Some(place) => place,
            None => {
                requests.open.push(None);
                requests.open.len() - 1
            }
        };
        requests.open[place] = Some(Arc::clone(&request));
        Some(OpenSpan { request, place, span, target: target.id(), number })
    }

    fn open_inside(&self, target: &Target) -> Option<OpenSpan> {
        let around = lock(&self.request).stack(self.span)?;
        let stack = RECORDING.stack(Some(around), target);
        let mut request = lock(&self.request);
        // After the lock: so that fewer moments have passed already.
        let opened = request.opened(stack, Some(self.span), clock::now());
        if opened.is_none() && !request.is_over {
            RECORDING.merged.fetch_add(1, Ordering::Relaxed);
        }
        let (request, target) = (Arc::clone(&self.request), target.id());
        Some(OpenSpan { request, span: opened?, target, ..*self })
    }

    /// The span is closed. It is closed once.
    pub fn close(self) {
        here::alone(|| {
            let mut request = lock(&self.request);
            request.closed(self.span, clock::now());
            if !request.is_empty() {
                return;
            }
            let mut sums = mem::take(&mut request.sums);
            let whole = (!request.is_part).then(|| request.take_trace());
            drop(request);
            let mut requests = lock(&RECORDING.requests);
            let is_there = requests.open.get_mut(self.place).is_some_and(|open| {
                open.take_if(|open| Arc::ptr_eq(open, &self.request)).is_some()
            });
            if is_there {
                requests.free.push(self.place);
                RECORDING.sums().take(&mut sums);
                drop(requests);
                if let Some((stack, trace)) = whole {
                    lock(&RECORDING.examples).offer(stack, trace);
                }
            }
        });
    }

    fn is_of(&self, number: u32) -> bool {
        self.number == number
    }
}
