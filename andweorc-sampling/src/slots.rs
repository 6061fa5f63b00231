//! The threads that can be sampled: all that have an account in the ledger. They come and go by
//! themselves, and are sampled while somebody [asks for samples](on).

mod live;
#[cfg(test)]
mod tests;

use crate::clock;
use crate::counter_cells::Cells;
use crate::perf::{self, PerfError};
use crate::queue::{DEPTH, LONG, Overflow, Queue, Sample, Taken};
use crate::signal::{self, Work};
use crate::source::{Kind, Source};
use crate::stack_copy::StackCopy;
use crate::thread_name::ThreadName;
use crate::walk::{self, Registers};
use crate::{addresses, late};
use andweorc_profile::settings::Event;
use andweorc_profile::time::Nanos;
use live::{Begun, Live};
use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread's place. Lives for ever: it is handed on to the next thread.
#[derive(Debug)]
struct Slot {
    /// Which of all slots it is, from 0.
    number: usize,
    queue: Queue,
    /// The thread's stack: first address, and the one after the last.
    stack: [AtomicUsize; 2],
    /// The thread's [name](ThreadName).
    name: [AtomicU64; 2],
    /// CPU time that a sample stands for, ns; 0 for the time since the one before.
    stands_for: AtomicI64,
    /// CPU time at the last sample, ns, where that is asked for.
    cpu: AtomicI64,
    /// Samples that the handler took, all told.
    handled: AtomicU64,
    /// Of these, those for which the queue had no room.
    dropped: AtomicU64,
    /// The thread's counters of events.
    counters: Cells,
}

/// A function that credits a sample of the calling thread, which `ran` for so long since the one
/// before. `inside` says whether the thread was inside of the target, where that is known. Returns
/// the thread's context, if it has one. Async-signal-safe.
pub type Sampled = fn(ran: Nanos, inside: &dyn Fn() -> Option<bool>) -> Option<u32>;

crate::plain_thread_local! {
    // A signal handler may read them.
    static SLOT: Cell<Option<(&'static Slot, Sampled)>> = Cell::new(None);
    static SKIPS: Cell<bool> = Cell::new(false);
    static TASK: Cell<u32> = Cell::new(0);
}

/// Whether samples keep [`LONG`] chains.
static LONG_CHAINS: AtomicBool = AtomicBool::new(false);

/// Whether samples have a copy of the thread's stack.
static COPIES_STACKS: AtomicBool = AtomicBool::new(false);

/// Has samples keep up to [`LONG`] frames of call chains from now on, or [`DEPTH`] as usual.
pub fn keep_long_chains(long: bool) {
    // Relaxed: the handler looks at it alone.
    LONG_CHAINS.store(long, Ordering::Relaxed);
}

/// Has each sample come with a copy of its thread's stack from now on, or none.
pub fn copy_stacks(copies: bool) {
    // Relaxed: the handler looks at it alone.
    COPIES_STACKS.store(copies, Ordering::Relaxed);
}

/// The calling thread polls a task of the kind with this id from now on; 0 for none.
pub fn set_task(task: u32) {
    TASK.set(task);
}

impl Slot {
    fn new(number: usize) -> Slot {
        Slot {
            number,
            queue: Queue::new(),
            stack: [const { AtomicUsize::new(0) }; 2],
            name: [const { AtomicU64::new(0) }; 2],
            stands_for: AtomicI64::new(0),
            cpu: AtomicI64::new(0),
            handled: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            counters: Cells::new(),
        }
    }

    /// Takes a sample: credits the thread, and hands the chain on.
    ///
    /// # Safety
    ///
    /// `interrupted` is the third argument of a handler that was installed with SA_SIGINFO.
    unsafe fn sample(&self, interrupted: *const c_void, sampled: Sampled) {
        // Relaxed, all of these: only this thread uses them while it is sampled, or they are
        // counts.
        self.handled.fetch_add(1, Ordering::Relaxed);
        let ran = self.ran();
        if SKIPS.take() {
            return;
        }
        let stack = self.stack();
        // SAFETY: as the caller says.
        let at = unsafe { Registers::of(interrupted) };
        let mut chain = [0; LONG];
        // Relaxed: a sample more or less of the other length makes no difference.
        let most = if LONG_CHAINS.load(Ordering::Relaxed) { LONG } else { DEPTH };
        // SAFETY: the stack is the calling thread's, which took it down itself.
        let length = unsafe { walk::chain(at, &stack, &mut chain[..most]) };
        let chain = &chain[..length];
        let judged = &chain[..length.min(DEPTH)];
        let Some(context) = sampled(ran, &|| addresses::known()?.judge(judged)) else { return };
        // Relaxed: as above.
        let copies = COPIES_STACKS.load(Ordering::Relaxed);
        // SAFETY: as the caller says, and the stack is the calling thread's.
        let stack = copies.then(|| unsafe { StackCopy::take(interrupted, &stack) }).flatten();
        let task = TASK.get();
        let (overflow, is_full) = (None, length == most);
        let taken = Taken { context, task, ran, overflow, stack, chain, is_full };
        if !self.queue.push(taken) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the sample of an overflow of the counter of this number, without a copy of the stack.
    ///
    /// # Safety
    ///
    /// `interrupted` is the third argument of a handler that was installed with SA_SIGINFO and runs
    /// on the thread of this slot.
    unsafe fn overflow(&self, counter: usize, interrupted: *const c_void, sampled: Sampled) {
        let cell = self.counters.number(counter);
        let events = cell.period();
        if SKIPS.take() || events == 0 {
            return;
        }
        let mut chain = [0; DEPTH];
        // SAFETY: as the caller says, and the stack is the calling thread's.
        let length = unsafe {
            let at = Registers::of(interrupted);
            walk::chain(at, &self.stack(), &mut chain)
        };
        let (task, ran, stack) = (TASK.get(), Nanos::ZERO, None);
        let Some(context) = sampled(ran, &|| None) else { return };
        let overflow = Some(Overflow { counter, events });
        let (chain, is_full) = (&chain[..length], length == DEPTH);
        if self.queue.push(Taken { context, task, ran, overflow, stack, chain, is_full }) {
            cell.saw();
        }
    }

    /// The thread's stack, for that thread.
    fn stack(&self) -> Range<usize> {
        // Relaxed, as above.
        let [start, end] = &self.stack;
        start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)
    }

    /// The CPU time that a sample of this moment stands for.
    fn ran(&self) -> Nanos {
        // Relaxed, as above.
        match self.stands_for.load(Ordering::Relaxed) {
            0 => {
                let now = clock::thread_cpu().0;
                Nanos(now - self.cpu.swap(now, Ordering::Relaxed))
            }
            period => Nanos(period),
        }
    }
}

/// The next sample of the calling thread is not of what it does. Async-signal-safe.
pub fn skip_next() {
    SKIPS.set(true);
}

/// The work of the signal's handler. A sample that was to tell how late the handler comes is none.
pub static SAMPLES: Work = Work { is_wanted: || !late::noted(), run: on_signal, own_stack };

/// Takes a sample of the calling thread, which the signal interrupted at `context`.
///
/// Async-signal-safe: reads that thread's registers, stack, cells and CPU clock, and reads and
/// writes atomics.
extern "C" fn on_signal(context: *mut c_void) {
    if let Some((slot, sampled)) = SLOT.get() {
        // SAFETY: the handler alone calls these, with its own third argument, and was installed
        // with SA_SIGINFO.
        unsafe {
            match slot.counters.find(signal::file()) {
                Some(counter) => slot.overflow(counter, context, sampled),
                None => slot.sample(context, sampled),
            }
        }
    }
}

/// The stack of the calling thread; empty if it has no slot. Async-signal-safe.
pub fn own_stack() -> Range<usize> {
    SLOT.get().map_or(0..0, |(slot, _)| slot.stack())
}

/// Sampling that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    event: Event,
    kind: Kind,
    period: Nanos,
}

/// Samples lost and held back so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Samples that the kernel took and no handler saw, and those for which there was no room.
    pub lost: u64,
    /// How often the kernel held samples back.
    pub throttled: u64,
}

/// How many threads were not sampled as asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// By a timer, for want of a file descriptor.
    pub by_timer: u64,
    /// Not at all, since they block the signal.
    pub deaf: u64,
}

/// How many threads change from one to the other at a time, so that others are not kept waiting.
const CHANGES: usize = 8;

struct Registry {
    live: Vec<Live>,
    all: Vec<&'static Slot>,
    free: Vec<&'static Slot>,
    /// Threads so far.
    opened: u32,
    asked: Option<Asked>,
    /// The first refusal.
    refused: Option<PerfError>,
    shortfall: Shortfall,
    tally: Tally,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes up the calling thread, of this kernel id, which has got an account. If it is deaf it
/// blocks the signal. `sampled` is told of each of its samples. Before the first one `hands_on` is
/// called with the number of the thread's slot, and how many threads were taken up so far: what was
/// kept of the thread that had the slot before is this thread's from then on.
pub fn open(tid: i32, is_deaf: bool, sampled: Sampled, hands_on: impl FnOnce(usize, u32)) {
    let stack = walk::own_stack();
    let (slot, opened, asked) = registry().slot(hands_on);
    // Relaxed: read by this thread alone.
    slot.stack[0].store(stack.start, Ordering::Relaxed);
    slot.stack[1].store(stack.end, Ordering::Relaxed);
    // Relaxed: a name that is read as this is written is of both threads, and nothing but a name.
    let name = ThreadName::own().words();
    slot.name.iter().zip(name).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    SLOT.set(Some((slot, sampled)));
    let mut live = Live::new(tid, slot, opened, is_deaf);
    // Without the lock. Of threads that begin together one would wait for the other, and be woken
    // on its processor: of two that work for 2 ms, spawned over and over, the second ran after the
    // first, and not beside it.
    let begun = asked.map_or(Ok(Begun::NotAsked), |asked| live.begin(asked));
    registry().add(live, asked, begun);
}

/// The calling thread gives its account back. In a child of fork there are no events, and the lock
/// may be held for ever: it is not for that.
pub fn close() {
    let Some((slot, _)) = SLOT.take() else { return };
    let Some(mut live) = registry().remove(slot) else { return };
    // As above.
    let mut tally = Tally::default();
    live.end(&mut tally);
    let mut registry = registry();
    registry.tally.add(tally);
    registry.free.push(slot);
}

/// Samples all threads from now on, the later ones too, at every `period` of their CPU time.
///
/// # Errors
///
/// When the event is not to be had.
pub fn on(event: Event, period: Nanos) -> Result<Kind, PerfError> {
    let kind = match perf::open(0, event, period) {
        Ok(_) => Kind::Perf(event),
        Err(error) if error.is_refusal() && event == Event::TaskClock => Kind::Timer,
        // Timers stand in for as long as that is so.
        Err(error) if error.lacks_files() => Kind::Perf(event),
        Err(error) => return Err(error),
    };
    let mut registry = registry();
    registry.asked = Some(Asked { event, kind, period });
    let mut live = std::mem::take(&mut registry.live);
    live.iter_mut().for_each(|live| registry.begin(live));
    registry.live = live;
    Ok(kind)
}

/// Has timers take the samples from now on, in the place of perf events.
pub fn use_timers() {
    registry().use_timers();
    late::forget();
}

/// Ends that.
pub fn off() {
    keep_long_chains(false);
    copy_stacks(false);
    let mut registry = registry();
    registry.asked = None;
    let mut live = std::mem::take(&mut registry.live);
    // First of all no more signals are sent.
    live.iter().filter_map(|live| live.source.as_ref()).for_each(Source::stop);
    live.iter_mut().for_each(|live| live.end(&mut registry.tally));
    registry.live = live;
}

/// Sends nobody a signal any more once the program has taken it over.
pub fn see_who_has_the_signal() {
    let is_sampling = registry().asked.is_some();
    if is_sampling && !signal::may_send() {
        off();
    }
}

/// Takes the perf events of threads that are idle, and gives one to each that is at work again, as
/// far as there are descriptors.
pub fn free_idle() {
    let now = clock::now();
    let mut registry = registry();
    let Some(asked @ Asked { kind: Kind::Perf(_), .. }) = registry.asked else { return };
    let mut live = std::mem::take(&mut registry.live);
    let changes = live.iter_mut().filter_map(|live| live.fit(asked, now, &mut registry.tally));
    changes.take(CHANGES).for_each(drop);
    registry.live = live;
}

/// Sets the period anew.
pub fn set_period(period: Nanos) {
    let mut registry = registry();
    if let Some(asked) = &mut registry.asked {
        asked.period = period;
        for Live { slot, source, .. } in &registry.live {
            if let Some(source) = source
                && source.set_period(period).is_ok()
            {
                slot.stands_for(source, period);
            }
        }
    }
}

/// Calls `each` with the numbers of the slots of all threads that live.
pub fn each_live(each: impl FnMut(usize)) {
    registry().live.iter().map(|live| live.slot.number).for_each(each);
}

/// A thread that lives, for who counts its events.
pub(crate) struct LivingThread {
    pub(crate) tid: i32,
    /// Its number among all threads that were taken up.
    pub(crate) opened: u32,
    pub(crate) is_deaf: bool,
    pub(crate) counters: &'static Cells,
}

/// The threads that live, and how many were taken up so far.
pub(crate) fn living() -> (Vec<LivingThread>, u32) {
    let registry = registry();
    let thread = |&Live { tid, opened, is_deaf, slot, .. }: &Live| {
        let counters = &slot.counters;
        LivingThread { tid, opened, is_deaf, counters }
    };
    (registry.live.iter().map(thread).collect(), registry.opened)
}

/// Returns what became of the samples so far.
pub fn tally() -> Tally {
    let mut registry = registry();
    let Registry { live, tally, .. } = &mut *registry;
    live.iter_mut().for_each(|live| live.count(tally));
    *tally
}

/// The refusal that kept a thread from being sampled, if one did.
pub fn refused() -> Option<PerfError> {
    registry().refused.take()
}

/// How many threads were not sampled as asked for, since the last call.
pub fn shortfall() -> Shortfall {
    std::mem::take(&mut registry().shortfall)
}

/// Whether the calling thread is sampled, or will be.
///
/// # Errors
///
/// When it could not be.
pub fn check() -> Result<(), PerfError> {
    let event = registry().asked.map_or(Event::default(), |asked| asked.event);
    match perf::open(0, event, Nanos::from_millis(1)) {
        Err(error) if !error.is_refusal() && !error.lacks_files() => Err(error),
        _ => Ok(()),
    }
}

/// Takes the oldest sample of any thread, with the thread's name. For one reader. A sample that was
/// on its way as its thread ended may have the name of the thread that came into its place.
pub fn drain(mut each: impl FnMut(&Sample, ThreadName)) {
    let all = registry().all.clone();
    for slot in all {
        // Relaxed: see `open`.
        let name = slot.name.each_ref().map(|word| word.load(Ordering::Relaxed));
        let name = ThreadName::of_words(name);
        while let Some(sample) = slot.queue.pop() {
            each(&sample, name);
        }
    }
}

impl Registry {
    const fn new() -> Registry {
        Registry {
            live: Vec::new(),
            all: Vec::new(),
            free: Vec::new(),
            opened: 0,
            asked: None,
            refused: None,
            shortfall: Shortfall { by_timer: 0, deaf: 0 },
            tally: Tally { lost: 0, throttled: 0 },
        }
    }

    /// A place for one more thread, its number among all that were taken up, and what is asked for.
    fn slot(&mut self, hands_on: impl FnOnce(usize, u32)) -> (&'static Slot, u32, Option<Asked>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot: &'static Slot = Box::leak(Box::new(Slot::new(self.all.len())));
            self.all.push(slot);
            slot
        });
        self.opened = self.opened.wrapping_add(1);
        hands_on(slot.number, self.opened);
        (slot, self.opened, self.asked)
    }

    /// A thread lives that has `begun` with what was `asked` for: if something else is by now, it
    /// begins anew.
    fn add(&mut self, mut live: Live, asked: Option<Asked>, begun: Result<Begun, PerfError>) {
        if self.asked == asked {
            self.notes(begun);
        } else {
            live.end(&mut self.tally);
            self.begin(&mut live);
        }
        self.live.push(live);
    }

    /// A thread lives no more.
    fn remove(&mut self, slot: &'static Slot) -> Option<Live> {
        let at = self.live.iter().position(|live| std::ptr::eq(live.slot, slot))?;
        Some(self.live.swap_remove(at))
    }

    fn use_timers(&mut self) {
        let Some(asked) = &mut self.asked else { return };
        asked.kind = Kind::Timer;
        let mut live = std::mem::take(&mut self.live);
        for live in &mut live {
            live.end(&mut self.tally);
            self.begin(live);
        }
        self.live = live;
    }

    fn begin(&mut self, live: &mut Live) {
        if let Some(asked) = self.asked {
            self.notes(live.begin(asked));
        }
    }

    fn notes(&mut self, begun: Result<Begun, PerfError>) {
        match begun {
            Ok(Begun::NotAsked | Begun::AsAsked) => {}
            Ok(Begun::ByTimer) => self.shortfall.by_timer += 1,
            Ok(Begun::Deaf) => self.shortfall.deaf += 1,
            Err(error) => {
                self.refused.get_or_insert(error);
            }
        }
    }
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.lost += other.lost;
        self.throttled += other.throttled;
    }
}

impl Slot {
    fn stands_for(&self, source: &Source, period: Nanos) {
        let period = if source.is_exact() { period.0 } else { 0 };
        // Relaxed: what comes at this moment counts for the one or the other.
        self.stands_for.store(period, Ordering::Relaxed);
    }
}
