//! Holding one experiment: a (target, speedup) for a stretch of time, with what every point did
//! meanwhile.

use crate::allocations;
use crate::background_thread::BackgroundThread;
use crate::catch_up_signal::nudger;
use crate::clock;
use crate::experiment::choose::TargetTimes;
use crate::experiment::disturbance::Disturbances;
use crate::experiment::guard::{Cut, Guard};
use crate::experiment::noise::Noise;
use crate::experiment::stop::Stop;
use crate::experiment::throttle::Throttled;
use crate::fork;
use crate::late_events::epoll_watcher;
use crate::ledger::TargetWait;
use crate::long_polls::LongPolls;
use crate::pause;
use crate::point::{Point, points};
use crate::process::process;
use crate::program_clock::{self, Frozen};
use crate::settings::MAX_SLOWDOWN;
use crate::target::Target;
use crate::thread::{self, ledger};
use crate::time::{Nanos, Real, Speedup};
use andweorc_profile::{
    AllocationsRecord, ExperimentRecord, LongPollsRecord, PointCount, PointKind, TargetKind,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long each part of an experiment lasts.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    /// From its begin until it is measured: queues settle to the changed speeds. Up to twice as
    /// long, at random: a program that goes through a cycle may begin it anew where an experiment
    /// does, and would be measured from the same place in it each time.
    pub warmup: Duration,
    /// The measured stretch.
    pub measure: Duration,
    /// After its end: debts are paid, queues settle back.
    pub cooldown: Duration,
}

impl Phases {
    /// Phases of so many milliseconds: warm-up, measured stretch, cool-down.
    pub const fn from_millis(warmup: u64, measure: u64, cooldown: u64) -> Phases {
        Phases {
            warmup: Duration::from_millis(warmup),
            measure: Duration::from_millis(measure),
            cooldown: Duration::from_millis(cooldown),
        }
    }

    /// How long an experiment takes in all, on average.
    pub(crate) fn mean(self) -> Duration {
        self.warmup * 3 / 2 + self.measure + self.cooldown
    }

    /// Length of the warm-up of one experiment, drawn anew each time.
    fn random_warmup(self) -> Duration {
        self.warmup.mul_f64(1.0 + fastrand::f64())
    }
}

/// Ends the experiment also when the runner panics: a program must never be left with a target that
/// delays it.
struct Running {
    guard: Arc<Guard>,
    /// Of a wait as the target: it may be for a timer.
    frozen: Option<Frozen>,
    /// Of a probe: a wait that nobody is in, so that D grows all the time.
    probe: Option<TargetWait>,
}

impl Running {
    fn begin(target: Option<&Target>, speedup: Speedup, guard: Arc<Guard>) -> Running {
        thread::set_target(target);
        let now = clock::now();
        guard.begin(speedup == Speedup::ZERO, now);
        let is_wait = target.is_some_and(|target| target.kind() == TargetKind::Wait);
        let frozen = is_wait.then(|| program_clock::freeze(now));
        let owed = ledger().begin(speedup, now);
        let is_probe = target.is_some_and(|target| target.kind() == TargetKind::Probe);
        let probe = is_probe.then(|| ledger().begin_wait(owed, now)).flatten();
        Running { guard, frozen, probe }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = clock::now();
        if let Some(probe) = self.probe.take() {
            ledger().end_wait(probe, now);
        }
        ledger().end(now);
        self.frozen.take();
        thread::set_target(None);
        self.guard.end(now);
    }
}

/// Outcome of a held experiment.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an experiment may have been stopped or cut short"]
pub enum Outcome {
    /// The experimenter was stopped before the experiment was measured to its end.
    Stopped,
    /// The experiment did not do the program good and was ended early. Its record is discarded.
    CutShort(ExperimentRecord, Cut),
    /// The experiment was measured to its end. Its record may be discarded: by the machine.
    Measured(ExperimentRecord),
}

impl Outcome {
    /// The record of the experiment, unless it was stopped.
    pub fn record(self) -> Option<ExperimentRecord> {
        match self {
            Outcome::Stopped => None,
            Outcome::CutShort(record, _) | Outcome::Measured(record) => Some(record),
        }
    }
}

/// The state of all points at one instant.
struct Snapshot {
    at: Real,
    owed: Nanos,
    /// CPU time of the program without that of pauses.
    cpu: Nanos,
    counts: HashMap<u32, u64>,
    sampled: TargetTimes,
    noise: Noise,
}

impl Snapshot {
    fn take(points: &[&'static Point], sampled: &[&'static Target]) -> Snapshot {
        let at = clock::now();
        Snapshot {
            at,
            owed: ledger().global_delay(at),
            cpu: clock::process_cpu() - pause::cpu(),
            counts: points.iter().map(|point| (point.id(), point.count())).collect(),
            sampled: TargetTimes::of(sampled),
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
    disturbances: Disturbances,
    guard: Arc<Guard>,
    /// Looks for threads that lag, and at the experiment, while one is held.
    nudger: BackgroundThread,
    /// Watches the sockets meanwhile.
    watcher: BackgroundThread,
    /// Polls that are long, in baselines and where the run asks for more.
    long_polls: Arc<LongPolls>,
    /// The targets whose samples are recorded.
    sampled: Vec<&'static Target>,
    /// Allocations in the last baseline.
    allocations: Option<AllocationsRecord>,
}

impl Experimenter {
    /// Switches andweorc on, until this is dropped. `None` while another one lives: two at once
    /// would delay for each other. `None` in a child of [fork](mod@crate::fork) too.
    pub fn new() -> Option<Experimenter> {
        if fork::forked() || process().sessions.experimenting.swap(true, Ordering::SeqCst) {
            return None;
        }
        thread::enable();
        pause::set_under_limit(Throttled::read().is_limited());
        let stop = Arc::<Stop>::default();
        let guard = Arc::new(Guard::new(Arc::clone(&stop), MAX_SLOWDOWN));
        let looks = Arc::clone(&guard);
        let long_polls = Arc::<LongPolls>::default();
        let watches = Arc::clone(&long_polls);
        Some(Experimenter {
            start: clock::now(),
            next: 0,
            stop,
            disturbances: Disturbances::default(),
            guard,
            nudger: nudger(move |now| {
                looks.look(now);
                watches.look(now);
            }),
            watcher: epoll_watcher(&process().readiness),
            long_polls,
            sampled: Vec::new(),
            allocations: None,
        })
    }

    /// From now on records have the CPU time of these targets, which are sampled.
    pub(crate) fn record_samples_of(&mut self, targets: Vec<&'static Target>) {
        self.sampled = targets;
    }

    /// Allocations in the baseline that was held last, unless they were taken before, or none were
    /// counted.
    pub(crate) fn take_allocations(&mut self) -> Option<AllocationsRecord> {
        self.allocations.take()
    }

    /// The long polls, of which none are looked for at first.
    pub(crate) fn long_polls(&self) -> &Arc<LongPolls> {
        &self.long_polls
    }

    /// Runs `f` between experiments, and looks meanwhile for polls that last for `threshold` or
    /// longer, as a run does while it observes the program. Returns the polls without their places.
    pub fn observe_polls(&self, threshold: Duration, f: impl FnOnce()) -> Option<LongPollsRecord> {
        self.long_polls.watch(threshold);
        self.long_polls.while_observing(f);
        self.long_polls.finish(|| None)
    }

    /// Ends experiments that slow the program by more than `factor`; by default [`MAX_SLOWDOWN`].
    pub fn with_max_slowdown(self, factor: f64) -> Experimenter {
        self.guard.set_max_slowdown(factor);
        self
    }

    /// When it was made: the zero of the profile's times.
    pub fn start(&self) -> Real {
        self.start
    }

    /// How many experiments were begun.
    pub fn held(&self) -> u32 {
        self.next
    }

    /// Returns the handle that stops the experimenter, from another thread.
    pub fn stopper(&self) -> Arc<Stop> {
        Arc::clone(&self.stop)
    }

    /// Holds one experiment, a baseline when there is no target, and says what every point did.
    /// Blocks meanwhile. An experiment that does not do the program good is cut short.
    pub fn run(&mut self, target: Option<&Target>, speedup: Speedup, phases: Phases) -> Outcome {
        self.run_while(target, speedup, phases, || true)
    }

    /// Holds one experiment as [`run`](Experimenter::run) does, and ends its measured stretch at
    /// once where `goes_on` says no. It is asked after the experiment has begun; from then on
    /// [`Stop::cut`] ends it.
    pub(crate) fn run_while(
        &mut self,
        target: Option<&Target>,
        speedup: Speedup,
        phases: Phases,
        goes_on: impl FnOnce() -> bool,
    ) -> Outcome {
        program_clock::start();
        let seq = self.next;
        self.next += 1;
        self.stop.forget_cut();
        let _helping = [&self.nudger, &self.watcher].map(BackgroundThread::work);
        let running = Running::begin(target, speedup, Arc::clone(&self.guard));
        if !goes_on() {
            self.stop.cut();
        }
        if self.stop.sleep_unless_cut(phases.random_warmup()) {
            return Outcome::Stopped;
        }
        let points = points();
        for point in &points {
            // What came before the measured stretch belongs to no experiment.
            point.discard_latencies();
        }
        // Not in experiments, in which polls have pauses in them.
        let _recording = target.is_none().then(|| self.long_polls.record());
        let allocated = target.is_none().then(allocations::Snapshot::read);
        let before = Snapshot::take(&points, &self.sampled);
        if self.stop.sleep_unless_cut(phases.measure) {
            return Outcome::Stopped;
        }
        let after = Snapshot::take(&points, &self.sampled);
        if target.is_none() {
            thread::set_idle(before.noise.idle(&after.noise, after.at - before.at));
        }
        self.allocations = allocated.and_then(|before_it| {
            let now = allocations::Snapshot::read();
            now.since(&before_it, Some(seq), to_ns(after.at - before.at))
        });
        let counts = points.iter().filter_map(|point| count(point, &before, &after)).collect();
        drop(running);
        let cut = self.guard.cut();
        self.stop.sleep(phases.cooldown);
        let (start, real) = (before.at - self.start, after.at - before.at);
        let mut record = ExperimentRecord::new(seq, to_ns(start), to_ns(real));
        record.target = target.map(Target::id);
        record.speedup = speedup.fraction();
        record.delay_ns = to_ns(after.owed - before.owed);
        record.cpu_ns = Some(to_ns(after.cpu - before.cpu));
        record.points = counts;
        record.sampled = after.sampled.records_since(&before.sampled);
        record.discarded = cut
            .map(|cut| cut.to_string())
            .or_else(|| self.disturbances.reason_to_discard(&before.noise, &after.noise));
        match cut {
            Some(cut) => Outcome::CutShort(record, cut),
            None => Outcome::Measured(record),
        }
    }
}

impl Drop for Experimenter {
    fn drop(&mut self) {
        thread::let_go();
        process().sessions.experimenting.store(false, Ordering::SeqCst);
    }
}

fn count(point: &Point, before: &Snapshot, after: &Snapshot) -> Option<PointCount> {
    let hits = |snapshot: &Snapshot| snapshot.counts.get(&point.id()).copied().unwrap_or(0);
    let count = hits(after) - hits(before);
    let mut counted = PointCount::new(point.id(), count);
    if point.kind() == PointKind::Latency {
        counted.latency = point.take_latencies();
    }
    (count > 0).then_some(counted)
}

/// Whole nanoseconds for the profile, where a stretch is never negative.
pub(crate) fn to_ns(stretch: Nanos) -> u64 {
    u64::try_from(stretch.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::Own;

    #[test]
    fn warmups_are_drawn_evenly_up_to_twice_their_length() {
        let phases = Phases::from_millis(20, 500, 30);
        let warmup = phases.warmup;
        let mut warmups: Vec<_> = (0..1000).map(|_| phases.random_warmup()).collect();
        warmups.sort_unstable();
        let (first, last) = (warmups[0], warmups[999]);
        assert!(warmup <= first && last < 2 * warmup, "{first:?} {last:?}");
        // Evenly: a gap of a tenth of all has a chance of one in 10^44.
        assert!(warmups.windows(2).all(|two| two[1] - two[0] < warmup / 10));
    }

    #[test]
    fn no_two_experiments_begin_at_the_same_place_of_a_cycle() {
        Own::run(|_| {
            let mut experimenter = Experimenter::new().expect("one at a time");
            let phases = Phases::from_millis(40, 1, 0);
            let settled: Vec<_> = (0..10)
                .map(|_| {
                    let began = clock::now();
                    let held = experimenter.run(None, Speedup::ZERO, phases).record().unwrap();
                    experimenter.start() + Nanos(held.start_ns as i64) - began
                })
                .collect();
            drop(experimenter);
            let (least, most) = (settled.iter().min().unwrap(), settled.iter().max().unwrap());
            assert!(*least >= Nanos::from_millis(40), "{settled:?}");
            // All of ten within an eighth of what they may be has a chance of one in ten million.
            assert!(*most - *least > Nanos::from_millis(5), "{settled:?}");
        })
    }
}
