//! The registry of targets: everything that can be virtually sped up, with the time spent in it.

mod registry;

pub(crate) use registry::is_main;
pub use registry::{target, targets};

use crate::budget::Asks;
use crate::counter::Counters;
use crate::late_events::WaitHistory;
use crate::sync::Mutex;
use crate::time::{Nanos, Real};
use crate::wait::{Ended, Waits};
use crate::yields::Yields;
use andweorc_profile::plain;
use andweorc_profile::{TargetKind, TargetRecord};
use std::collections::HashMap;
use std::mem;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A target. Lives as long as the process: the number of call sites, task names and lines is
/// bounded by the program's text.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Target {
    // What each visit reads, on one cache line.
    id: u32,
    kind: TargetKind,
    times: TimeCounters,
    // What reports read.
    name: Box<str>,
    file: Option<Box<str>>,
    line: Option<u32>,
}

const _: () = assert!(mem::offset_of!(Target, name) <= 64, "a visit reads one cache line");

/// The time spent in a target.
#[derive(Debug)]
enum TimeCounters {
    /// Busy ns, own ns, visits.
    Visits(Counters<3>),
    /// Of a wait, which has more counters than fit beside the rest.
    Waits(Box<Waits>),
}

impl Target {
    /// Id, unique in the process and never 0.
    #[inline]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its kind.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its source file, where known.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Its line in that file, where known.
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// Counts one visit of `busy` ns, of which `own` were not spent in other targets inside it.
    #[inline]
    pub fn record(&self, busy: Nanos, own: Nanos) {
        let ns = |time: Nanos| u64::try_from(time.0).unwrap_or(0);
        match &self.times {
            TimeCounters::Visits(visits) => visits.add([ns(busy), ns(own), 1]),
            TimeCounters::Waits(waits) => waits.add(Real(0), None, Real(0) + busy),
        }
    }

    /// Counts one wait from `since` to `until`, for targets of kind wait. `ended` says how the
    /// task's wait ended, where that is known: when the task had parked before `since`, it ran from
    /// then on, and there was no wait.
    #[inline]
    pub fn record_wait(&self, since: Real, ended: Option<Ended>, until: Real) {
        if ended.is_some_and(|ended| ended.parked() < since) {
            return;
        }
        if let TimeCounters::Waits(waits) = &self.times {
            waits.add(since, ended, until);
        }
    }

    /// Of [`busy_ns`](Target::busy_ns) of a wait, the time spent waiting for the world outside, for
    /// another task, and ready but not yet polled, as far as it is known. `None` for other targets.
    pub fn waited_ns(&self) -> Option<[u64; 3]> {
        match &self.times {
            TimeCounters::Visits(_) => None,
            TimeCounters::Waits(waits) => Some(waits.by_cause()),
        }
    }

    /// Of the time of a wait for the world outside, ns, that for timers, as far as they can be told
    /// from it. 0 for other targets.
    pub fn waited_for_timers_ns(&self) -> u64 {
        match &self.times {
            TimeCounters::Visits(_) => 0,
            TimeCounters::Waits(waits) => waits.for_timers(),
        }
    }

    /// Counts a wait for the world outside, of so many ns, that a span inside of this one had: it
    /// is not this one's own. For targets of kind wait.
    pub fn record_wait_inside(&self, outside_ns: u64) {
        if let TimeCounters::Waits(waits) = &self.times {
            waits.add_inside(outside_ns);
        }
    }

    /// Of the time of a wait for the world outside, ns, what no span inside of it waited. 0 for
    /// other targets.
    pub fn own_outside_ns(&self) -> u64 {
        match &self.times {
            TimeCounters::Visits(_) => 0,
            TimeCounters::Waits(waits) => waits.own_outside(),
        }
    }

    /// Time spent in it so far, ns, summed over threads.
    pub fn busy_ns(&self) -> u64 {
        match &self.times {
            TimeCounters::Visits(visits) => visits.get()[0],
            TimeCounters::Waits(waits) => waits.total().0,
        }
    }

    /// Of [`busy_ns`](Target::busy_ns), the time not spent in other targets inside it.
    pub fn own_ns(&self) -> u64 {
        match &self.times {
            TimeCounters::Visits(visits) => visits.get()[1],
            TimeCounters::Waits(_) => 0,
        }
    }

    /// Visits so far.
    pub fn count(&self) -> u64 {
        match &self.times {
            TimeCounters::Visits(visits) => visits.get()[2],
            TimeCounters::Waits(waits) => waits.total().1,
        }
    }

    /// Record of the target as the profile names it.
    pub fn to_record(&self) -> TargetRecord {
        let mut record = TargetRecord::new(self.id, self.kind, self.name());
        record.file = self.file().map(str::to_owned);
        record.line = self.line;
        record
    }
}

/// Targets in which a kind of task can be sped up.
#[derive(Debug)]
pub struct TaskTargets {
    /// Its polls.
    pub task: &'static Target,
    /// The time between them.
    pub wait: &'static Target,
    /// How long it waits for the world outside.
    pub wait_history: WaitHistory,
    /// Whether it yields.
    pub yields: Yields,
    /// Whether what it waits for asks for budget, where nobody wrapped its tasks: the first wait
    /// of each task, and all later ones.
    pub asks: [Asks; 2],
}

impl TaskTargets {
    /// Targets of a kind of task of which nothing else is known yet.
    pub fn new(task: &'static Target, wait: &'static Target) -> TaskTargets {
        TaskTargets {
            task,
            wait,
            wait_history: WaitHistory::default(),
            yields: Yields::default(),
            asks: Default::default(),
        }
    }
}

type Key<'a> = (TargetKind, &'a str, Option<&'a str>, Option<u32>);

/// The targets of a process.
pub(crate) struct Targets {
    known: LazyLock<Mutex<HashMap<Key<'static>, &'static Target>>>,
    next_id: AtomicU32,
    /// The id of the task of the main function; 0 while it is not known.
    main: AtomicU32,
}

impl Targets {
    /// None yet.
    pub(crate) const fn new() -> Targets {
        Targets {
            known: LazyLock::new(Mutex::default),
            next_id: AtomicU32::new(1),
            main: AtomicU32::new(0),
        }
    }

    /// Whether this is the id of the task of the main function.
    #[inline]
    fn is_main(&self, id: u32) -> bool {
        // Relaxed: the number stands for itself, and who runs main has stored it before.
        id == self.main.load(Ordering::Relaxed)
    }

    fn get(
        &self,
        kind: TargetKind,
        name: &str,
        file: Option<&str>,
        line: Option<u32>,
    ) -> &'static Target {
        let (name, file) = (&*plain::cut_name(name), file.map(plain::cut_name));
        let file = file.as_deref();
        let mut targets = self.known.lock();
        if let Some(target) = known(&targets, &(kind, name, file, line)) {
            return target;
        }
        let target: &'static Target = Box::leak(Box::new(Target {
            // Relaxed: only uniqueness matters.
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            kind,
            name: name.into(),
            file: file.map(Into::into),
            line,
            times: match kind {
                TargetKind::Wait => TimeCounters::Waits(Box::default()),
                _ => TimeCounters::Visits(Counters::default()),
            },
        }));
        targets.insert((kind, target.name(), target.file(), line), target);
        if (kind, name, file) == (TargetKind::Task, "main", None) {
            // Relaxed: see `is_main`.
            self.main.store(target.id, Ordering::Relaxed);
        }
        target
    }

    fn all(&self) -> Vec<&'static Target> {
        let mut all: Vec<_> = self.known.lock().values().copied().collect();
        all.sort_by_key(|target| target.id);
        all
    }
}

/// A function, in which the keys need live no longer than what is looked for.
fn known<'a>(
    targets: &HashMap<Key<'a>, &'static Target>,
    key: &Key<'a>,
) -> Option<&'static Target> {
    targets.get(key).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Cause;

    #[test]
    fn a_long_name_is_cut_and_still_one_target() {
        let name = |end: char| format!("target: {}{end}", "a".repeat(1_000_000));
        let of = |name: &str| target(TargetKind::Span, name, Some("a.rs"), Some(1));
        let first = of(&name('x'));
        assert!(std::ptr::eq(first, of(&name('x'))) && !std::ptr::eq(first, of(&name('y'))));
        assert_ne!(first.name(), of(&name('y')).name());
        assert!(first.to_record().name.len() < 1_000, "{}", first.name().len());
        assert!(std::ptr::eq(first, of(first.name())), "a report's name means the same");
    }

    #[test]
    fn only_a_task_that_parked_has_waited() {
        let wait = target(TargetKind::Wait, "target: wait", None, None);
        let ended = Some(Ended::new(Real(10), Real(40), Cause::Outside));
        wait.record_wait(Real(20), ended, Real(50));
        assert_eq!((wait.busy_ns(), wait.count(), wait.waited_ns()), (0, 0, Some([0, 0, 0])));
        wait.record_wait(Real(5), ended, Real(50));
        assert_eq!((wait.busy_ns(), wait.count(), wait.waited_ns()), (45, 1, Some([35, 0, 10])));
        wait.record_wait(Real(5), None, Real(6));
        assert_eq!((wait.busy_ns(), wait.count(), wait.waited_ns()), (46, 2, Some([35, 0, 10])));
    }
}
