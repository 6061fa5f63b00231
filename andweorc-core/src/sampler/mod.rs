//! Sampling where threads spend their CPU time, for line and function targets.
//!
//! Every thread that has an account in the ledger has an event of its own that sends it a signal at
//! each period of its CPU time. The handler, on the thread, walks the frame pointers, looks up
//! whether that is inside the target of the running experiment, and credits the thread in the
//! ledger at once: before the poll that it is in can end. Chains it cannot judge, and all others,
//! go through a queue to one thread that resolves them, counts what is found, and so teaches the
//! handler.
//!
//! The event, the signal, the threads that are sampled and their queues are those of
//! [`andweorc_sampling`]. Here is what needs the virtual clock and the targets:
//!
//! | module | what |
//! |---|---|
//! | `threads` | threads with an account come and go, each with its timelines |
//! | `target_fraction` | by samples, or by an expected share |
//! | `contexts` | the tables of these shares |
//! | `site_timeline` | the contexts of a plain thread outside of spans |
//! | `found` | what the samples tell |
//! | `events` | events of the processor, while they are counted |
//! | `stacks` | whole call chains, while a run observes |
//!
//! Threads of andweorc have no account, so they are never sampled.

pub(crate) mod contexts;
mod events;
mod found;
pub(crate) mod site_timeline;
pub(crate) mod stacks;
pub(crate) mod target_fraction;
pub(crate) mod threads;

pub use andweorc_profile::settings::{CountedEvent, Event};
pub use andweorc_sampling::perf::{PerfError, probe};
pub use andweorc_sampling::period::{COARSE, FINE};
pub use andweorc_sampling::slots::check;
pub use andweorc_sampling::source::Kind;
pub use found::Found;
pub(crate) use found::line_target;

use crate::asked;
use crate::fork::forked;
use crate::own_thread;
use crate::target::Target;
use crate::time::Nanos;
use andweorc_profile::{EventsRecord, StacksRecord, TargetKind};
use andweorc_sampling::counters::Counters;
use andweorc_sampling::perf::NotCounted;
use andweorc_sampling::signal::{self, Handler, Sender};
use andweorc_sampling::slots::{self, SAMPLES, Shortfall};
use andweorc_sampling::symbols::{SymbolError, Symbols};
use andweorc_sampling::{addresses, late};
use events::EventCounts;
use found::Finder;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the queues are drained.
pub(crate) const DRAIN: Duration = Duration::from_millis(10);

/// Samples all threads, until dropped. There is one at a time that knows of targets: the last one.
#[derive(Debug)]
pub struct Sampling {
    finder: Arc<Mutex<Finder>>,
    kind: Kind,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Given back last, when nobody sends the signal any more.
    _handler: Handler,
}

/// Finder that resolves samples at the moment.
static FINDER: Mutex<Option<Arc<Mutex<Finder>>>> = Mutex::new(None);

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampling {
    /// Begins to sample by `event`, at [`COARSE`].
    ///
    /// # Errors
    ///
    /// When the event is not to be had, or the program handles SIGURG itself. Where perf events are
    /// refused altogether, timers stand in for
    /// the default event.
    pub fn start(symbols: Symbols, event: Event) -> Result<Sampling, PerfError> {
        let handler =
            Handler::install(Sender::Source, &SAMPLES).ok_or_else(PerfError::signal_is_taken)?;
        let kind = slots::on(event, COARSE)?;
        threads::forget_timelines();
        target_fraction::set_learns(true);
        asked::look_often();
        let finder = Arc::new(Mutex::new(Finder::new(symbols, addresses::table())));
        *lock(&FINDER) = Some(Arc::clone(&finder));
        let stop = Arc::new(AtomicBool::new(false));
        let (finds, stopped) = (Arc::clone(&finder), Arc::clone(&stop));
        let thread = own_thread::spawn("andweorc-sample", move || {
            late::measure(kind);
            while !stopped.load(Ordering::SeqCst) {
                std::thread::sleep(DRAIN);
                slots::see_who_has_the_signal();
                // Before the rings are full, of which nobody would know what found no room in the
                // end.
                slots::tally();
                slots::free_idle();
                lock(&finds).drain();
            }
        });
        Ok(Sampling { finder, kind, stop, thread: thread.ok(), _handler: handler })
    }

    /// Returns what takes the samples.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Has CPU timers take the samples from now on, where perf events by the clock do. Returns
    /// whether they did.
    pub(crate) fn use_timers(&mut self) -> bool {
        let is_event = self.kind == Kind::Perf(Event::TaskClock);
        if is_event {
            slots::use_timers();
            self.kind = Kind::Timer;
        }
        is_event
    }

    /// Sets the CPU time between two samples of a thread.
    pub fn set_period(&self, period: Nanos) {
        slots::set_period(period);
    }

    /// Samples as finely as experiments on `targets` ask for: at [`FINE`] if a good part of the
    /// time in one of them is credited by nothing but samples, as are plain threads outside of
    /// spans and long polls. Elsewhere samples only tell shares, and finer ones would cost the
    /// program more than they tell: four programs did 4 to 13 % less at 250 us, on the virtual
    /// machine of this project. Baselines and experiments are sampled alike.
    pub fn refine(&self, targets: &[&Target]) {
        const GOOD_PART: f64 = 0.1;
        let mut finder = lock(&self.finder);
        let is_fine = targets.iter().any(|target| finder.by_samples(target) > GOOD_PART);
        drop(finder);
        self.set_period(if is_fine { FINE } else { COARSE });
    }

    /// Counts functions exclusively too from now on, as targets of their own: each without what it
    /// calls.
    pub fn count_functions_alone(&self) {
        lock(&self.finder).count_functions_alone();
    }

    /// Says whether shares are learned from what is sampled from now on, as they are at first. They
    /// are not to be while the code under test is changed.
    pub fn set_learns(&self, learns: bool) {
        lock(&self.finder).set_learns(learns);
    }

    /// Takes what was found since the last call. What is learned of shares is kept.
    pub fn take(&self) -> Found {
        lock(&self.finder).take()
    }

    /// Records whole call chains from now on.
    pub fn begin_stacks(&self) {
        lock(&self.finder).begin_stacks();
    }

    /// Ends that. Returns the call chains since it began; `None` where it did not.
    pub fn end_stacks(&self) -> Option<StacksRecord> {
        lock(&self.finder).end_stacks()
    }

    /// Has overflows of counters counted by target from now on.
    fn begin_events(&self) {
        lock(&self.finder).begin_events();
    }

    /// Ends that. Returns those since it began.
    fn end_events(&self) -> EventCounts {
        lock(&self.finder).end_events()
    }

    /// Whether samples can be charged to lines.
    pub(crate) fn lines(&self) -> Result<(), SymbolError> {
        lock(&self.finder).lines()
    }

    /// The sampled shared objects that have no lines or can't be read, those of the system left
    /// out.
    pub(crate) fn objects_without_lines(&self) -> Vec<PathBuf> {
        lock(&self.finder).objects_without_lines()
    }

    /// The refusal that kept a thread from being sampled, if one did. Told once.
    pub fn refused(&self) -> Option<PerfError> {
        slots::refused()
    }

    /// How many threads were not sampled as asked for, since the last call.
    pub(crate) fn shortfall(&self) -> Shortfall {
        slots::shortfall()
    }

    /// Whether nobody is sampled any more, since the program has taken the signal over.
    pub fn is_over(&self) -> bool {
        signal::was_taken_over()
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        if forked() {
            return;
        }
        target_fraction::set_learns(false);
        slots::off();
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed; there is nothing else to do for it.
            drop(thread.join());
        }
        let mut current = lock(&FINDER);
        if current.as_ref().is_some_and(|it| Arc::ptr_eq(it, &self.finder)) {
            *current = None;
        }
    }
}

/// Counts events of all threads by target, until it is closed or dropped.
#[derive(Debug)]
pub struct Counting {
    counters: Counters,
    /// Overflows where nobody else takes the samples.
    counts: EventCounts,
    /// Given back last, when nobody sends the signal any more.
    _handler: Handler,
}

impl Counting {
    /// Begins to count these events, as far as the kernel does. Returns the others too. Functions
    /// are known where `sampling` goes on meanwhile.
    ///
    /// # Errors
    ///
    /// When the program handles SIGURG itself.
    pub fn start(
        wanted: &[CountedEvent],
        sampling: Option<&Sampling>,
    ) -> Result<(Counting, Vec<NotCounted>), PerfError> {
        let handler =
            Handler::install(Sender::Source, &SAMPLES).ok_or_else(PerfError::signal_is_taken)?;
        let (counters, refused) = Counters::open(wanted);
        if !counters.is_empty() {
            sampling.into_iter().for_each(Sampling::begin_events);
        }
        Ok((Counting { counters, counts: EventCounts::default(), _handler: handler }, refused))
    }

    /// Whether the kernel counts none of them.
    pub(crate) fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// Whether it is known how often events happen, so that they are counted by target.
    pub fn is_rated(&self) -> bool {
        self.counters.is_rated()
    }

    /// Looks at threads and rates, and takes what was counted. To be called every [`DRAIN`] or so.
    pub fn look(&mut self, sampling: Option<&Sampling>) {
        self.counters.look();
        self.drain(sampling);
    }

    /// Counts no more, and returns what was counted.
    pub fn close(mut self, sampling: Option<&Sampling>) -> EventsRecord {
        let totals = std::mem::take(&mut self.counters).close();
        self.drain(sampling);
        let counts = sampling.map_or(std::mem::take(&mut self.counts), Sampling::end_events);
        counts.into_record(totals)
    }

    /// Takes the samples, of which there is one reader.
    fn drain(&mut self, sampling: Option<&Sampling>) {
        if sampling.is_none() {
            slots::drain(|sample, _| self.counts.count(sample, None));
        }
    }
}

/// Whether a target is credited by samples.
pub(crate) fn is_sampled(target: &Target) -> bool {
    matches!(target.kind(), TargetKind::Line | TargetKind::Function | TargetKind::FunctionSelf)
}

/// The target of the experiment that begins; none when it ends.
pub(crate) fn aim(target: Option<&Target>) {
    target_fraction::end();
    let sampled = target.filter(|target| is_sampled(target));
    if let (Some(target), Some(finder)) = (sampled, lock(&FINDER).clone()) {
        lock(&finder).aim(target);
    }
}

#[cfg(test)]
mod tests;
