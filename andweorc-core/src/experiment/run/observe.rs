//! The first phase of a run: the program is watched until there are points and targets to
//! experiment with.

use super::missing::Unseen;
use super::sampled_pace::{Pace, SAMPLING, STAYS_SLOW, USES_TIMERS};
use super::{ExperimentLoop, OBSERVATION};
use crate::allocations;
use crate::allocations::sampled::SampledSnapshot;
use crate::clock;
use crate::experiment::choose::{Hits, MAX_TARGETS, TargetTimes, choose_points, want_samples};
use crate::experiment::diagnose::diagnose_chains;
use crate::experiment::early::{Early, nothing_hit};
use crate::experiment::hold::to_ns;
use crate::experiment::noise::Noise;
use crate::point::{Point, points};
use crate::sampler::is_sampled;
use crate::settings::Settings;
use crate::symbols::Symbols;
use crate::target::{Target, targets};
use crate::time::{Nanos, Real};
use crate::wall;
use andweorc_profile::{AllocationStacksRecord, Record, SamplesRecord, TargetKind};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether a point was hit, until one is. Only then does that second begin:
/// what a program uses that waits for its load says nothing.
const AWAIT_LOAD: Duration = Duration::from_millis(50);

/// Processors are all busy from this part of them on.
const FULL: f64 = 0.9;

/// Other processes matter there from this part of them on.
const SHARED: f64 = 0.1;

/// A run that has less time left does not look for functions beside tasks, nor at how fast the
/// program is before it is sampled.
pub(super) const TIME_TO_SAMPLE: Duration = Duration::from_secs(10);

/// Points and targets of a run, the most important ones first.
pub(super) type Chosen = (Vec<&'static Point>, Vec<&'static Target>);

/// Whether the program has done anything that is counted.
fn is_any_hit() -> bool {
    points().iter().any(|point| point.count() > 0)
}

/// State of the program when a look at it begins.
struct Start {
    at: Real,
    cpu: Nanos,
    times: TargetTimes,
    allocations: allocations::Snapshot,
    sampled_allocations: SampledSnapshot,
    hits: Hits,
    noise: Noise,
    had_load: bool,
}

/// Changes in the program since a look at it began.
pub(super) struct ObservedStretch {
    real_ns: u64,
    cpu_ns: u64,
    times: TargetTimes,
    allocations: allocations::Snapshot,
    pub(super) points: Vec<&'static Point>,
    targets: Vec<&'static Target>,
    /// The wanted names that nothing had.
    unseen: Unseen,
    is_hit: bool,
    /// Hits of each point.
    hits: Vec<(&'static Point, u64)>,
}

impl Start {
    fn now() -> Start {
        Start {
            at: clock::now(),
            cpu: clock::process_cpu(),
            times: TargetTimes::read(),
            allocations: allocations::Snapshot::read(),
            sampled_allocations: SampledSnapshot::read(),
            hits: Hits::read(),
            noise: Noise::read(),
            had_load: is_any_hit(),
        }
    }

    fn until_now(&self, settings: &Settings, many: usize) -> ObservedStretch {
        let times = TargetTimes::read();
        let allocations = allocations::Snapshot::read();
        let real_ns = to_ns(clock::now() - self.at);
        let cpu_ns = to_ns(clock::process_cpu() - self.cpu);
        let (points, no_points) = choose_points(&self.hits, &settings.points);
        let (targets, no_targets) =
            times.choose_targets(&self.times, [real_ns, cpu_ns], &settings.targets, many);
        let unseen = Unseen { points: no_points, targets: no_targets };
        let is_hit = is_any_hit();
        let hits = points.iter().map(|&point| (point, self.hits.since(point))).collect();
        ObservedStretch {
            real_ns,
            cpu_ns,
            times,
            allocations,
            points,
            targets,
            unseen,
            is_hit,
            hits,
        }
    }
}

impl ObservedStretch {
    /// Work of a point in it.
    pub(super) fn pace(&self, point: &Point) -> Option<Pace> {
        let (_, hits) = self.hits.iter().find(|(it, _)| it.id() == point.id())?;
        Some(Pace { hits: *hits, real_ns: self.real_ns, cpu_ns: self.cpu_ns })
    }
}

impl ExperimentLoop {
    /// Watches the program until a point is hit and a target is seen. An error, the reason why the
    /// run ends, when the time is up before, or when the program has had work for some time and
    /// nothing of it has a name that was asked for.
    pub(super) fn observe(&mut self) -> Result<Chosen, &'static str> {
        let long_polls = Arc::clone(self.experimenter.long_polls());
        let chosen = long_polls.while_observing(|| self.look_until_chosen());
        // Where nothing was chosen it goes on.
        wall::forget();
        self.samples.end_stacks(0, 0);
        chosen
    }

    fn look_until_chosen(&mut self) -> Result<Chosen, &'static str> {
        self.set_status("observing", None);
        let began = self.journal.elapsed();
        let most_targets = self.rounds.map_or(MAX_TARGETS, |rounds| rounds.max_targets);
        let mut early = Early::default();
        // Names that were not seen at the last look, while there was work.
        let mut unseen: Option<Unseen> = None;
        // The program before it was sampled.
        let mut unsampled: Option<ObservedStretch> = None;
        let wants_samples = want_samples(&self.settings.targets);
        if wants_samples && self.left() < TIME_TO_SAMPLE {
            self.start_samples();
        }
        loop {
            wall::begin_stretch();
            self.samples.begin_stacks();
            let start = Start::now();
            let length = if start.had_load { OBSERVATION } else { AWAIT_LOAD };
            let stopper = self.experimenter.stopper();
            if stopper.sleep(length.min(self.left())) || self.left() == Duration::ZERO {
                if let Some(unseen) = &unseen {
                    self.note_unseen(unseen);
                }
                self.note_nothing_to_test(unseen.is_some());
                return Err("time");
            }
            self.samples.take_lines();
            self.note_copies();
            let seen = start.until_now(&self.settings, most_targets);
            let now = self.journal.elapsed().to_duration();
            if early.is_idle(seen.is_hit, now) {
                self.journal.note(nothing_hit(points().iter().map(|point| point.name())));
                self.start_samples();
            }
            if seen.is_hit && !start.had_load {
                // Of this stretch the program was idle for an unknown part.
                continue;
            }
            if seen.is_hit {
                unseen = Some(seen.unseen.clone());
            }
            let starts_samples = wants_samples && seen.is_hit && !self.samples.is_asked();
            if starts_samples || self.needs_functions(&seen) {
                self.start_samples();
                unsampled = Some(seen);
                continue;
            }
            if !seen.points.is_empty() && !seen.targets.is_empty() {
                let unsampled = unsampled.as_ref().filter(|_| self.samples.is_on());
                if unsampled.is_some_and(|unsampled| self.needs_timers(unsampled, &seen)) {
                    continue;
                }
                self.note_unseen(&seen.unseen);
                self.write_observed(&start, &seen);
                self.count_events(&seen);
                return Ok((seen.points, seen.targets));
            }
            if self.rounds.is_some_and(|it| it.is_over(self.journal.elapsed() - began)) {
                return Err("nothing to test was seen");
            }
            if early.is_over(now)
                && let Some(unseen) = &unseen
                && self.is_all_unknown(unseen)
            {
                self.note_unseen(unseen);
                return Err("nothing has a name that was asked for");
            }
        }
    }

    fn start_samples(&mut self) {
        self.samples.start(&self.settings, &mut self.journal);
    }

    /// Whether functions are to be sampled, and looked at again with them. Without spans, and with
    /// tasks of one kind, nobody says what the parts of the work are: functions do. Where there is
    /// nothing to test else they are waited for in any case.
    fn needs_functions(&self, seen: &ObservedStretch) -> bool {
        let has_spans = seen.targets.iter().any(|it| it.kind() == TargetKind::Span);
        let has_parts = has_spans || seen.targets.len() > 1;
        let has_time = seen.targets.is_empty() || self.left() > TIME_TO_SAMPLE;
        let by_default = self.settings.targets.is_empty();
        !self.samples.is_asked() && by_default && !seen.points.is_empty() && !has_parts && has_time
    }

    /// Writes the targets of the program and the time that each had, and notes what keeps them from
    /// being measured well.
    fn write_observed(&mut self, start: &Start, seen: &ObservedStretch) {
        // At the period that all of them were taken at.
        let stacks = self.samples.end_stacks(seen.real_ns, seen.cpu_ns);
        if let Some(unknown) = stacks.as_ref().and_then(diagnose_chains) {
            self.journal.note(unknown);
        }
        self.samples.refine(&seen.targets);
        if seen.targets.iter().any(|it| is_sampled(it) && it.kind() != TargetKind::Line)
            && let Some(lack) = self.samples.lack()
        {
            self.journal.note(lack.to_string());
        }
        // Before targets are written: it names none that comes later.
        let (mut wall, polls) = wall::end();
        wall.wait_sites = wall::take_wait_sites(|| self.open_symbols());
        let allocation_stacks = self.allocation_stacks(start, seen);
        let examples = wall::take_examples();
        let timeline = wall::take_timeline(self.journal.start());
        let others_ns = start.noise.others(&Noise::read()).map(to_ns);
        if let Some(others_ns) = others_ns {
            self.note_others(seen.real_ns, seen.cpu_ns, others_ns);
        }
        for target in targets() {
            self.journal.write_target(target);
        }
        let mut record = SamplesRecord::new(self.samples.source(), seen.real_ns, seen.cpu_ns);
        record.others_ns = others_ns;
        record.targets = seen.times.records_since(&start.times);
        record.lost = self.samples.lost();
        self.journal.write(Record::Samples(record));
        let allocations = seen.allocations.clone();
        if let Some(record) = allocations.since(&start.allocations, None, seen.real_ns) {
            self.journal.write_allocations(record);
        }
        if let Some(record) = allocation_stacks {
            self.journal.write(Record::AllocationStacks(record));
        }
        if !wall.stacks.is_empty() {
            self.journal.write(Record::Wall(wall));
        }
        if let Some(stacks) = stacks {
            self.journal.write(Record::Stacks(stacks));
        }
        if !polls.kinds.is_empty() {
            self.journal.write(Record::Polls(polls));
        }
        if !examples.requests.is_empty() {
            self.journal.write(Record::Examples(examples));
        }
        if !timeline.threads.is_empty() {
            self.journal.write_apart(&Record::Timeline(timeline));
        }
    }

    /// Where the program allocated, by samples, if its allocator tells.
    fn allocation_stacks(
        &self,
        start: &Start,
        seen: &ObservedStretch,
    ) -> Option<AllocationStacksRecord> {
        let kind = |id| targets().into_iter().find(|it| it.id() == id).map(Target::kind);
        let now = SampledSnapshot::read();
        now.record_since(&start.sampled_allocations, seen.real_ns, kind, || self.open_symbols())
    }

    /// Opens the symbols of the program, if it has some.
    fn open_symbols(&self) -> Option<Symbols> {
        let symbols = Symbols::of_this_program().ok()?;
        Some(symbols.with_scope(self.settings.scope.clone()))
    }

    /// Adds a note where the program is slower while it is sampled than it was before. Returns
    /// whether it is to be looked at again, since timers take its samples from now on.
    fn needs_timers(&mut self, unsampled: &ObservedStretch, sampled: &ObservedStretch) -> bool {
        let slowed = sampled.points.first().and_then(|point| {
            unsampled.pace(point)?.slowed(sampled.pace(point)?, point.name(), SAMPLING)
        });
        let Some(slowed) = slowed else { return false };
        let is_changed = self.left() > TIME_TO_SAMPLE && self.samples.use_timers();
        let follows = if is_changed { USES_TIMERS } else { STAYS_SLOW };
        self.journal.note(format!("{slowed}. {follows}"));
        is_changed
    }

    /// Adds a note where other processes, such as the load, want the processors that the program
    /// has.
    fn note_others(&mut self, real_ns: u64, cpu_ns: u64, others_ns: u64) {
        let of_real = |ns: u64| ns as f64 / real_ns.max(1) as f64;
        let (used, others) = (of_real(cpu_ns), of_real(others_ns));
        let cores = self.journal.run().run().header.cores as f64;
        if used + others >= FULL * cores && others >= SHARED * cores {
            self.journal.note(format!(
                "other processes, such as the load, use {others:.1} of the {cores} processors, which are all busy: in \
                 experiments they work on while the program pauses, and wait longer behind the part under test, so \
                 that predictions may be some points too high or too low. Let the load come from another machine, or \
                 give it processors of its own (`taskset`)"
            ));
        }
    }
}
