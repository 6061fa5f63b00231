//! Holding one experiment: a (target, speedup) for a stretch of time, with what every point did meanwhile.

use crate::clock;
use crate::experiment::noise::{Noise, Watch};
use crate::fork;
use crate::nudge::Nudger;
use crate::point::{Point, points};
use crate::profile::{ExperimentRecord, PointCount, PointKind};
use crate::target::Target;
use crate::thread::{self, LEDGER};
use crate::time::{Nanos, Real, Speedup};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long each part of an experiment lasts.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// From its begin until it is measured: queues settle to the changed speeds.
    pub settle: Duration,
    /// The measured stretch.
    pub measure: Duration,
    /// After its end: debts are paid, queues settle back.
    pub recover: Duration,
}

/// Tells a sleeping [`Experimenter`] to stop.
#[derive(Debug, Default)]
pub struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Stops whoever sleeps, now and from now on.
    pub fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Sleeps for `length`, or until stopped. Says whether it was stopped.
    pub(crate) fn sleep(&self, length: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let (stopped, _) = self
            .changed
            .wait_timeout_while(stopped, length, |stopped| !*stopped)
            .unwrap_or_else(PoisonError::into_inner);
        *stopped
    }
}

/// Ends the experiment also when the runner panics: a program must never be left with a target that delays it.
struct Running;

impl Running {
    fn begin(target: Option<&Target>, speedup: Speedup) -> Running {
        thread::set_target(target);
        LEDGER.begin(speedup, clock::now());
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        LEDGER.end(clock::now());
        thread::set_target(None);
    }
}

/// The state of all points at one instant.
struct Snapshot {
    at: Real,
    owed: Nanos,
    counts: HashMap<u32, u64>,
    noise: Noise,
}

impl Snapshot {
    fn take(points: &[&'static Point]) -> Snapshot {
        let at = clock::now();
        Snapshot {
            at,
            owed: LEDGER.owed(at),
            counts: points.iter().map(|point| (point.id(), point.count())).collect(),
            noise: Noise::read(),
        }
    }
}

/// Holds experiments, one after the other. There is one in a process at a time.
#[derive(Debug)]
pub struct Experimenter {
    start: Real,
    next: u32,
    stop: Arc<Stop>,
    watch: Watch,
    /// Looks for threads that lag as long as this lives.
    _nudger: Nudger,
}

static EXPERIMENTING: AtomicBool = AtomicBool::new(false);

impl Experimenter {
    /// Switches andweorc on. `None` while another one lives: two at once would delay for each other. `None` in a child of
    /// [fork](mod@crate::fork) too.
    pub fn new() -> Option<Experimenter> {
        if fork::forked() || EXPERIMENTING.swap(true, Ordering::SeqCst) {
            return None;
        }
        thread::enable();
        Some(Experimenter {
            start: clock::now(),
            next: 0,
            stop: Arc::default(),
            watch: Watch::default(),
            _nudger: Nudger::start(),
        })
    }

    /// When it was made: the zero of the profile's times.
    pub fn start(&self) -> Real {
        self.start
    }

    /// How many experiments were begun.
    pub fn held(&self) -> u32 {
        self.next
    }

    /// What stops it, from another thread.
    pub fn stopper(&self) -> Arc<Stop> {
        Arc::clone(&self.stop)
    }

    /// Holds one experiment, a baseline when there is no target, and says what every point did. Blocks meanwhile. `None` when it was
    /// stopped before the experiment was measured to its end.
    pub fn hold(
        &mut self,
        target: Option<&Target>,
        speedup: Speedup,
        lengths: Lengths,
    ) -> Option<ExperimentRecord> {
        let seq = self.next;
        self.next += 1;
        let running = Running::begin(target, speedup);
        if self.stop.sleep(lengths.settle) {
            return None;
        }
        let points = points();
        for point in &points {
            // What came before the measured stretch belongs to no experiment.
            point.discard_latencies();
        }
        let before = Snapshot::take(&points);
        if self.stop.sleep(lengths.measure) {
            return None;
        }
        let after = Snapshot::take(&points);
        let counts = points.iter().filter_map(|point| count(point, &before, &after)).collect();
        drop(running);
        self.stop.sleep(lengths.recover);
        Some(ExperimentRecord {
            seq,
            target: target.map(Target::id),
            speedup: speedup.fraction(),
            start_ns: to_ns(before.at - self.start),
            real_ns: to_ns(after.at - before.at),
            delay_ns: to_ns(after.owed - before.owed),
            points: counts,
            spoiled: self.watch.spoiled(&before.noise, &after.noise),
        })
    }
}

impl Drop for Experimenter {
    fn drop(&mut self) {
        EXPERIMENTING.store(false, Ordering::SeqCst);
    }
}

fn count(point: &Point, before: &Snapshot, after: &Snapshot) -> Option<PointCount> {
    let hits = |snapshot: &Snapshot| snapshot.counts.get(&point.id()).copied().unwrap_or(0);
    let count = hits(after) - hits(before);
    let latency = match point.kind() {
        PointKind::Latency => point.take_latencies(),
        PointKind::Progress => Vec::new(),
    };
    (count > 0).then_some(PointCount { point: point.id(), count, latency })
}

/// Whole nanoseconds for the profile, where a stretch is never negative.
pub(crate) fn to_ns(stretch: Nanos) -> u64 {
    u64::try_from(stretch.0).unwrap_or(0)
}
