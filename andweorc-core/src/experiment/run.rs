//! The life of a run, on a thread of its own: observe, choose, hold experiments until the ranking
//! is settled or the time is up, and write everything down as it goes.

use crate::clock;
use crate::copies::Copies;
use crate::descriptors;
use crate::experiment::choose::{
    Hits, Times, choose_points, is_named, is_sampled, names, reconsidered, want_functions_alone,
    want_samples,
};
use crate::experiment::clocks::by_counter;
use crate::experiment::early::{self, Early, nothing_hit};
use crate::experiment::first::first_to_mark;
use crate::experiment::guard::Cut;
use crate::experiment::hold::{Experimenter, Lengths, Outcome, to_ns};
use crate::experiment::lacks::why_none;
use crate::experiment::noise::Noise;
use crate::experiment::plan::{Cell, Known, Plan};
use crate::experiment::unended::unended;
use crate::fork::Unshared;
use crate::hints;
use crate::point::{Point, points};
use crate::sampler::{self, Found, Sampling, Shortfall};
use crate::settings::Settings;
use crate::signal;
use crate::spelled::spelled;
use crate::symbols::{SymbolError, Symbols};
use crate::target::{Target, targets};
use crate::thread;
use crate::time::{Nanos, Speedup};
use andweorc_profile::estimate::Ongoing;
use andweorc_profile::estimate::{Analysis, Verdict};
use andweorc_profile::plain;
use andweorc_profile::{
    EndRecord, ExperimentRecord, Header, NoteRecord, Record, SamplesRecord, TargetKind, Writer,
};
use std::collections::HashSet;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the program is watched before targets are chosen, again and again until there are some.
const OBSERVE: Duration = Duration::from_secs(1);

/// How often it is looked whether a point was hit, until one is. Only then does that second begin:
/// what a program uses that waits for its load says nothing.
const AWAIT_LOAD: Duration = Duration::from_millis(50);

/// Processors are all busy from this part of them on.
const FULL: f64 = 0.9;

/// Other processes matter there from this part of them on.
const SHARED: f64 = 0.1;

/// A run that has less time left does not look for functions beside tasks.
const TIME_TO_SAMPLE: Duration = Duration::from_secs(10);

/// Queues settle to the changed speeds before an experiment is measured, and back after it.
const SETTLE: Duration = Duration::from_millis(50);
const RECOVER: Duration = Duration::from_millis(30);

/// Bounds of the measured stretch.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(1);

/// Hits of the ranking point that an experiment should have; it is lengthened until it has them.
const ENOUGH_HITS: f64 = 100.0;

/// Where less is done than at first, experiments are lengthened up to this: the load of a service
/// that is profiled for days may go away for hours.
const SPARSE: Duration = Duration::from_secs(60);

/// How many probes of the load a run begins with.
const PROBES: u32 = 2;

/// After so many experiments on targets the load is probed again, while it is not known and when it
/// is: it may change.
const PROBED_AGAIN: [u32; 2] = [3, 24];

/// So many more probes are held at most where all is settled but the load.
const LAST_PROBES: u32 = 6;

/// By how much a probe delays the program.
const PROBE: Speedup = Speedup::from_ppm(250_000);

/// Seed of the order of experiments: two runs with the same settings differ by the program and the
/// machine alone.
const SEED: u64 = 0x616e_6477_656f_7263;

/// State of a run, for a progress bar.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Phase of the run: `observing`, `experimenting`, `done`.
    pub phase: &'static str,
    /// The experiment that is held, in words: ``stock 25 % faster`` or `baseline`.
    pub experiment: Option<String>,
    /// Experiments held so far, baselines included.
    pub held: u32,
    /// Time since the run began.
    pub elapsed: Duration,
    /// Time that it may take.
    pub budget: Duration,
}

/// The thread's state.
pub(crate) struct Runner {
    settings: Settings,
    experimenter: Experimenter,
    writer: Unshared<Writer>,
    /// Part of the profile that the estimates need.
    run: Ongoing,
    written_targets: HashSet<u32>,
    written_points: HashSet<u32>,
    status: Arc<Mutex<Status>>,
    /// Lines and functions are sampled, since the user named some, or nothing else runs.
    sampling: Option<Sampling>,
    sampled: Found,
    copies: Copies,
    /// Why points and targets were not seen.
    noted_causes: HashSet<String>,
}

/// How an experiment went that is written down, with the hits of the first point.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    /// The run was stopped meanwhile.
    Stopped,
    /// The experiment did not do the program good.
    CutShort(Cut),
    /// The machine disturbed the experiment.
    Spoiled(u64),
    /// The experiment can be used.
    Measured(u64),
}

impl Runner {
    pub(crate) fn new(
        settings: Settings,
        experimenter: Experimenter,
        header: Header,
        writer: Unshared<Writer>,
        status: Arc<Mutex<Status>>,
    ) -> Runner {
        Runner {
            settings,
            experimenter,
            writer,
            run: Ongoing::new(header),
            written_targets: HashSet::new(),
            written_points: HashSet::new(),
            status,
            sampling: None,
            sampled: Found::default(),
            noted_causes: HashSet::new(),
            copies: Copies::default(),
        }
    }

    /// Runs to the end, and returns what was found. `reason` tells why the run was stopped, if it
    /// was.
    pub(crate) fn run(
        mut self,
        reason: impl FnOnce() -> Option<String>,
    ) -> (Ongoing, Unshared<Writer>) {
        // On the profiler's thread: a file system that hangs, or a limit on the size of files, is
        // no matter of who starts the run.
        self.writer.write(&Record::Header(self.run.run().header.clone()));
        let ended = self.experiments();
        let reason = reason().unwrap_or_else(|| ended.to_owned());
        self.finish(reason);
        (self.run, self.writer)
    }

    fn experiments(&mut self) -> &'static str {
        let (mut points, targets) = match self.observe() {
            Ok(seen) => seen,
            Err(reason) => return reason,
        };
        self.write_points(&points);
        let mut plan = Plan::new(&targets, &self.settings.speedups, SEED ^ self.settings.order);
        let mut analysis = None;
        let mut first = self.lengths(&plan, &points);
        let mut lengths = first;
        if self.hold(None, lengths, &points) == Held::Stopped {
            return "time";
        }
        let probe = crate::target::target(TargetKind::Probe, "everything", None, None);
        self.write_target(probe);
        for _ in 0..PROBES {
            if !self.probe(probe, lengths) {
                return "stopped";
            }
        }
        let (mut since_probe, mut last_probes) = (0, 0);
        let hits = Hits::read();
        loop {
            let Some(cell) = plan.next(|target| known(analysis.as_ref(), target)) else {
                if plan.len() == 0 {
                    return "nothing left to test";
                }
                // Without the load a verdict may be by another metric than it should.
                let is_known = analysis.as_ref().is_none_or(|it: &Analysis| it.load.is_some());
                if is_known || last_probes == LAST_PROBES || self.left() < 2 * lengths.mean() {
                    return "settled";
                }
                last_probes += 1;
                if !self.probe(probe, lengths) {
                    return "stopped";
                }
                analysis = Some(self.run.ranking());
                continue;
            };
            if self.left() < 2 * lengths.mean() {
                return "time";
            }
            let held = self.hold(Some(cell), lengths, &points);
            match held {
                Held::Stopped => return "stopped",
                Held::CutShort(Cut::TooSlow(_)) => plan.leave_out(cell),
                Held::CutShort(_) | Held::Spoiled(_) => {}
                Held::Measured(_) => plan.held(cell),
            }
            if self.has_lost_samples() {
                plan.leave_out_all(sampler::is_sampled);
            }
            if self.reconsider(&mut points, &hits) {
                first = self.lengths(&plan, &points);
                lengths = first;
            } else {
                lengths = self.lengthened(lengths, first, held);
            }
            if self.hold(None, lengths, &points) == Held::Stopped {
                return "stopped";
            }
            let known = self.run.ranking();
            since_probe += 1;
            if since_probe >= PROBED_AGAIN[usize::from(known.load.is_some())] {
                since_probe = 0;
                if self.left() >= 2 * lengths.mean() && !self.probe(probe, lengths) {
                    return "stopped";
                }
            }
            analysis = Some(known);
        }
    }

    /// Holds a probe of the load, and the baseline after it. False when they were stopped.
    fn probe(&mut self, probe: &'static Target, lengths: Lengths) -> bool {
        [Some(Cell::new(probe, PROBE)), None]
            .into_iter()
            .all(|cell| self.hold(cell, lengths, &[]) != Held::Stopped)
    }

    /// Puts another point first, where nobody named one and the first is hardly hit any more: it
    /// was chosen while connections were made, say, which last since then. Says whether it did.
    fn reconsider(&mut self, points: &mut Vec<&'static Point>, hits: &Hits) -> bool {
        if !self.settings.points.is_empty() {
            return false;
        }
        let Some(now) = reconsidered(points, hits) else { return false };
        self.note(format!(
            "targets are ranked by `{}` from here on: `{}`, the point that was first, is hardly hit while that one is often",
            now[0].name(),
            points[0].name()
        ));
        *points = now;
        // A point that is known already gets another rank.
        self.written_points.clear();
        self.write_points(points);
        true
    }

    /// Watches the program until a point is hit and a target is seen. An error, the reason why the
    /// run ends, when the time is up before, or when the program has had work for some time and
    /// nothing of it has a name that was asked for.
    fn observe(&mut self) -> Result<(Vec<&'static Point>, Vec<&'static Target>), &'static str> {
        self.set_status("observing", None);
        let mut early = Early::default();
        // Names that were not seen at the last look, while there was work.
        let mut unknown: Option<(Vec<String>, Vec<String>)> = None;
        let mut may_sample = true;
        if want_samples(&self.settings.targets) {
            may_sample = false;
            self.sample();
        }
        loop {
            let (began, cpu, before) = (clock::now(), clock::process_cpu(), Times::read());
            let (hits, noise) = (Hits::read(), Noise::read());
            let had_load = is_any_hit();
            let length = if had_load { OBSERVE } else { AWAIT_LOAD };
            let stopper = self.experimenter.stopper();
            if stopper.sleep(length.min(self.left())) || self.left() == Duration::ZERO {
                if let Some((points, targets)) = &unknown {
                    self.note_unknown(points, targets);
                }
                self.note_what_lacks(unknown.is_some());
                return Err("time");
            }
            self.take_samples();
            self.note_copies();
            let times = Times::read();
            let real_ns = to_ns(clock::now() - began);
            let cpu_ns = to_ns(clock::process_cpu() - cpu);
            let (points, no_points) = choose_points(&hits, &self.settings.points);
            let (targets, no_targets) =
                times.choose_targets(&before, [real_ns, cpu_ns], &self.settings.targets);
            let is_hit = is_any_hit();
            let now = self.elapsed().to_duration();
            if early.is_idle(is_hit, now) {
                self.note(nothing_hit(crate::point::points().iter().map(|point| point.name())));
                if may_sample {
                    may_sample = false;
                    self.sample();
                }
            }
            if is_hit && !had_load {
                // Of this stretch the program was idle for an unknown part.
                continue;
            }
            if is_hit {
                unknown = Some((no_points, no_targets));
            }
            // Without spans, and with tasks of one kind, nobody says what the parts of the work
            // are: functions do. Where there is nothing to test else they are waited for in any
            // case.
            let by_default = self.settings.targets.is_empty();
            let has_spans = targets.iter().any(|it| it.kind() == TargetKind::Span);
            let has_parts = has_spans || targets.len() > 1;
            let has_time = targets.is_empty() || self.left() > TIME_TO_SAMPLE;
            if may_sample && by_default && !points.is_empty() && !has_parts && has_time {
                may_sample = false;
                self.sample();
                continue;
            }
            if points.is_empty() || targets.is_empty() {
                if early.is_over(now)
                    && let Some((no_points, no_targets)) = &unknown
                    && self.is_all_unknown(no_points, no_targets)
                {
                    self.note_unknown(no_points, no_targets);
                    return Err("nothing has a name that was asked for");
                }
                continue;
            }
            if let Some((no_points, no_targets)) = &unknown {
                self.note_unknown(no_points, no_targets);
            }
            if let Some(sampling) = &self.sampling {
                sampling.refine(&targets);
            }
            if targets.iter().any(|it| is_sampled(it) && it.kind() != TargetKind::Line)
                && let Some(lack) = self.lack()
            {
                self.note(lack.to_string());
            }
            let others = noise.others(&Noise::read());
            if let Some(others) = others {
                self.note_others(real_ns, cpu_ns, to_ns(others));
            }
            for target in crate::target::targets() {
                self.write_target(target);
            }
            self.write(Record::Samples(SamplesRecord {
                real_ns,
                cpu_ns,
                others_ns: others.map(to_ns),
                source: self
                    .sampling
                    .as_ref()
                    .map_or("timed".to_owned(), |sampling| sampling.kind().to_string()),
                targets: times.records_since(&before),
                lost: self.sampled.lost + self.sampled.throttled,
            }));
            return Ok((points, targets));
        }
    }

    /// Adds a note where other processes, such as the load, want the processors that the program
    /// has.
    fn note_others(&mut self, real_ns: u64, cpu_ns: u64, others_ns: u64) {
        let of_real = |ns: u64| ns as f64 / real_ns.max(1) as f64;
        let (used, others) = (of_real(cpu_ns), of_real(others_ns));
        let cores = self.run.run().header.cores as f64;
        if used + others >= FULL * cores && others >= SHARED * cores {
            self.note(format!(
                "other processes, such as the load, use {others:.1} of the {cores} processors, which are all busy: in \
                 experiments they work on while the program pauses, and wait longer behind the part under test, so \
                 that predictions may be some points too high or too low. Let the load come from another machine, or \
                 give it processors of its own (`taskset`)"
            ));
        }
    }

    /// Begins to sample lines and functions, or notes why not.
    fn sample(&mut self) {
        let started =
            Symbols::of_this_program().map_err(|error| error.to_string()).and_then(|symbols| {
                let symbols = symbols.with_scope(self.settings.scope.clone());
                Sampling::start(symbols, self.settings.event).map_err(|error| error.to_string())
            });
        match started {
            Ok(sampling) => {
                if want_functions_alone(&self.settings.targets) {
                    sampling.count_functions_alone();
                }
                self.sampling = Some(sampling);
            }
            Err(why) => self.note(why),
        }
    }

    /// The reason why samples are not charged to lines, and inlined functions not seen.
    fn lack(&self) -> Option<SymbolError> {
        self.sampling.as_ref().and_then(|sampling| sampling.lines().err())
    }

    /// Says which shared objects have a copy of andweorc of their own, when they were loaded.
    fn note_copies(&mut self) {
        for copy in self.copies.new_ones() {
            self.note(copy.to_string());
        }
    }

    /// Takes note of what was sampled up to now.
    fn take_samples(&mut self) {
        if let Some(found) = self.sampling.as_ref().map(Sampling::take) {
            self.sampled.samples += found.samples;
            self.sampled.lost += found.lost;
            self.sampled.throttled += found.throttled;
        }
    }

    /// Whether lines and functions were sampled and are not any more.
    fn has_lost_samples(&self) -> bool {
        self.sampling.as_ref().is_some_and(Sampling::is_over)
    }

    /// Says what took the samples, and what of them was lost.
    fn note_samples(&mut self) {
        self.take_samples();
        let Some(sampling) = &self.sampling else { return };
        let (kind, refused) = (sampling.kind(), sampling.refused());
        let Shortfall { by_timer, deaf } = sampling.shortfall();
        let Found { samples, lost, throttled, .. } = self.sampled;
        self.note(format!(
            "lines and functions were sampled by {kind}: {samples} samples, {lost} lost, held back by the kernel {throttled} times"
        ));
        if let Some(refused) = refused {
            self.note(format!("not all threads could be sampled: {refused}"));
        }
        if by_timer > 0 {
            self.note(format!(
                "{by_timer} threads began to be sampled by the CPU timer, a sample in 4 ms most often: andweorc opens no more files for threads than a \
                 quarter of what the program may have, {}; raise the limit with `ulimit -n`",
                descriptors::most()
            ));
        }
        if deaf > 0 {
            self.note(format!(
                "{deaf} threads block SIGURG, by which threads are sampled and told to pay: their lines are not seen, and they pay at the \
                 ends of polls and spans alone"
            ));
        }
    }

    /// Says that the program took the signal over, if it did.
    fn note_signal(&mut self) {
        if !signal::was_taken_over() {
            return;
        }
        let samples = match self.sampling {
            Some(_) => {
                "; lines and functions were not sampled any more, samples on their way were lost, and what was held of such targets after \
                 that is left out"
            }
            None => "",
        };
        self.note(format!(
            "the program took SIGURG over while it was profiled, and andweorc sent it to no thread from then on: threads in long polls paid at \
             their ends{samples}"
        ));
    }

    /// Says why there is nothing to experiment with. `told` says that unknown names have been
    /// noted.
    fn note_what_lacks(&mut self, told: bool) {
        let points = points();
        let targets = targets();
        if points.iter().all(|point| point.count() == 0) {
            let seen = names(points.iter().map(|point| point.name()));
            let causes = causes();
            let advice = if causes.is_empty() {
                ": mark a unit of work with `andweorc::progress!(\"name\")`, or give requests a tracing span, with \
                 `andweorc::subscriber()`, or `andweorc::layer()` added to the program's own"
            } else {
                ""
            };
            self.note(format!(
                "no progress point was hit, so there was nothing to measure (points known: {seen}){advice}"
            ));
            // Why spans are not seen is said before where to have some.
            self.note_causes(causes);
            self.take_samples();
            if let Some(first) = first_to_mark() {
                self.note(first);
            }
        } else if self.settings.targets.is_empty()
            && self.sampled.samples > 0
            && targets.iter().all(|target| target.kind() != TargetKind::Line)
            && let Some(lack) = self.lack()
        {
            self.note(lack.to_string());
        } else if targets.iter().all(|target| target.count() == 0) {
            let seen = names(targets.iter().map(|target| target.name()));
            self.note(format!(
                "no target ran, so there was nothing to speed up (targets known: {seen}): spawn tasks with \
                 `andweorc::spawn`, name futures with `.profiled(\"name\")`, or have tracing \
                 spans, with `andweorc::subscriber()`, or `andweorc::layer()` added to the program's own"
            ));
        } else if !told {
            self.note(format!(
                "the program ran for {:.1} s, and is watched for {:.0} s before the first experiment: give it more work, or \
                 load for longer",
                self.elapsed().to_duration().as_secs_f64(),
                OBSERVE.as_secs_f64()
            ));
        }
    }

    /// Whether points, or targets, were named and not one of them is known, seen or idle.
    fn is_all_unknown(&self, no_points: &[String], no_targets: &[String]) -> bool {
        let (points, targets) = (points(), targets());
        let known_point =
            |wanted: &String| points.iter().any(|it| it.name() == plain::cut_name(wanted));
        let known_target = |wanted: &String| {
            want_samples(slice::from_ref(wanted)) || targets.iter().any(|it| is_named(it, wanted))
        };
        let Settings { points: wanted_points, targets: wanted_targets, .. } = &self.settings;
        let is_all = |wanted: &[String], missing: &[String], known: &dyn Fn(&String) -> bool| {
            !wanted.is_empty() && missing.len() == wanted.len() && !missing.iter().any(known)
        };
        is_all(wanted_points, no_points, &known_point)
            || is_all(wanted_targets, no_targets, &known_target)
    }

    fn note_unknown(&mut self, no_points: &[String], no_targets: &[String]) {
        let points = points();
        let is_known =
            |wanted: &&String| points.iter().any(|point| point.name() == plain::cut_name(wanted));
        let (idle, unknown): (Vec<_>, Vec<_>) = no_points.iter().partition(is_known);
        if !idle.is_empty() {
            let idle = names(idle.into_iter().map(String::as_str));
            self.note(format!(
                "{}: {idle} was not hit by the time the experiments began, and is not measured: a span is hit as it is closed",
                spelled("ANDWEORC_POINTS")
            ));
        }
        if !unknown.is_empty() {
            let wanted: Vec<&str> = unknown.into_iter().map(String::as_str).collect();
            let known: Vec<&str> = points.iter().map(|point| point.name()).collect();
            self.note(early::unknown("point", &wanted, &known, &spelled("ANDWEORC_POINTS")));
        }
        let mut unknown = Vec::new();
        let lack = self.lack();
        for wanted in no_targets {
            let (samples, scope) = (self.sampled.samples, &self.settings.scope);
            match why_none(wanted, samples, scope, lack.as_ref()) {
                Some(why) if self.sampling.is_some() => self.note(why),
                // Why there are no samples has been noted.
                Some(_) => {}
                None => unknown.push(wanted.as_str()),
            }
        }
        if want_samples(no_targets) {
            self.note_objects_without_lines();
        }
        let targets = targets();
        let is_known = |wanted: &&str| targets.iter().any(|target| is_named(target, wanted));
        let (idle, unknown): (Vec<_>, Vec<_>) = unknown.into_iter().partition(is_known);
        if !idle.is_empty() {
            let idle = names(idle.into_iter());
            self.note(format!(
                "{}: {idle} did not run in the {:.0} s in which the program was watched, and is not tested: put load on it by then",
                spelled("ANDWEORC_TARGETS"),
                OBSERVE.as_secs_f64()
            ));
        }
        if !unknown.is_empty() {
            let of_samples = unknown.iter().any(|it| want_samples(&[(*it).to_owned()]));
            let known: Vec<&str> = targets.iter().map(|target| target.name()).collect();
            self.note(early::unknown("target", &unknown, &known, &spelled("ANDWEORC_TARGETS")));
            if let Some(lack) = lack.filter(|_| of_samples) {
                self.note(lack.to_string());
            }
        }
    }

    /// Says which shared objects were sampled and can't be charged.
    fn note_objects_without_lines(&mut self) {
        let objects = self.sampling.as_ref().map(Sampling::objects_without_lines);
        let objects = objects.unwrap_or_default();
        let objects: Vec<_> = objects.iter().map(|path| path.to_string_lossy()).collect();
        if !objects.is_empty() {
            let objects = names(objects.iter().map(|path| &**path));
            self.note(format!(
                "samples were in shared objects of which no lines are known: {objects}. Build them with `debug = \"line-tables-only\"` and without \
                 `strip`, and leave their files as they are while they are loaded"
            ));
        }
    }

    /// How long experiments should be: so that every one gets its passes in the time, and the first
    /// point enough hits.
    fn lengths(&self, plan: &Plan, points: &[&'static Point]) -> Lengths {
        let pairs = PROBES + plan.wanted();
        let each = self.left() / (2 * pairs);
        let unmeasured = Lengths { settle: SETTLE, measure: Duration::ZERO, recover: RECOVER };
        let measure = each.saturating_sub(unmeasured.mean()).clamp(SHORTEST, LONGEST);
        let seconds = clock::now() - self.experimenter.start();
        let rate = points.first().map_or(0.0, |point| point.count() as f64) / seconds.as_secs_f64();
        let enough = Duration::from_secs_f64((ENOUGH_HITS / rate.max(1e-3)).min(3600.0));
        let most = self.left() / 10;
        Lengths { measure: measure.max(enough.min(most)), ..unmeasured }
    }

    /// How long the next experiment should be, after one with few hits of the first point, or with
    /// plenty again.
    fn lengthened(&self, lengths: Lengths, first: Lengths, held: Held) -> Lengths {
        let hits = match held {
            Held::Measured(hits) | Held::Spoiled(hits) => hits,
            // What it saw is not what such a length shows.
            Held::Stopped | Held::CutShort(_) => return lengths,
        };
        let most = SPARSE.max(first.measure).min(self.left() / 10);
        let measure = next_length(lengths.measure, hits, first.measure, most);
        Lengths { measure, ..lengths }
    }

    /// Holds one experiment and writes it down.
    fn hold(&mut self, cell: Option<Cell>, lengths: Lengths, points: &[&'static Point]) -> Held {
        let what = cell.map_or("baseline".to_owned(), |cell| {
            format!("{} {} faster", cell.target.name(), cell.speedup)
        });
        self.set_status("experimenting", Some(what.clone()));
        let speedup = cell.map_or(Speedup::ZERO, |cell| cell.speedup);
        let target = cell.map(|cell| cell.target);
        let (mut record, cut) = match self.experimenter.hold(target, speedup, lengths) {
            Outcome::Stopped => return Held::Stopped,
            Outcome::CutShort(record, cut) => (record, Some(cut)),
            Outcome::Measured(record) => (record, None),
        };
        if self.has_lost_samples() && target.is_some_and(sampler::is_sampled) {
            record.spoiled = Some("the program took SIGURG over, by which it was sampled".into());
        }
        let hits = points.first().map_or(0, |first| {
            let counts = record.points.iter().filter(|count| count.point == first.id());
            counts.map(|count| count.count).sum()
        });
        let held = match cut {
            Some(cut) => Held::CutShort(cut),
            None if record.spoiled.is_some() => Held::Spoiled(hits),
            None => Held::Measured(hits),
        };
        self.write_experiment(record);
        self.note_copies();
        if let Some(cut) = cut {
            let then = match cut {
                Cut::Stopped(_) => "was it stopped, or had it no processor? It is left out",
                Cut::TooSlow(_) => &format!(
                    "it is not tried again; {} sets what is allowed",
                    spelled("ANDWEORC_MAX_SLOWDOWN")
                ),
                Cut::NoProgress(_) => "it is left out; is the load gone, or does the program wait?",
            };
            self.note(format!("an experiment ({what}) was ended early, since {cut}: {then}"));
        }
        held
    }

    fn write_experiment(&mut self, record: ExperimentRecord) {
        for point in points() {
            if record.points.iter().any(|count| count.point == point.id())
                && self.written_points.insert(point.id())
            {
                let rank = self.run.run().points.len() as u32;
                self.write(Record::Point(point.to_record(rank)));
            }
        }
        self.write(Record::Experiment(record));
    }

    fn write_points(&mut self, points: &[&'static Point]) {
        for (rank, point) in points.iter().enumerate() {
            if self.written_points.insert(point.id()) {
                self.write(Record::Point(point.to_record(rank as u32)));
            }
        }
    }

    fn write_target(&mut self, target: &Target) {
        if self.written_targets.insert(target.id()) {
            self.write(Record::Target(target.to_record()));
        }
    }

    fn finish(&mut self, reason: String) {
        self.note_samples();
        self.note_copies();
        self.note_signal();
        let without_account = thread::without_account();
        if without_account > 0 {
            self.note(format!(
                "{without_account} threads found no free account in the ledger and were not delayed: predictions are too low \
                 where they work beside the target"
            ));
        }
        if thread::paid_waits_again() {
            self.note(
                "the kernel does not tell how long threads wait for a processor (no /proc/thread-self/schedstat: it is built without \
                 CONFIG_SCHED_INFO, or no file descriptor was left): what they waited for behind other threads they were delayed by again, so that \
                 predictions are too low where there are more threads to run than processors"
                    .to_owned(),
            );
        }
        self.note_causes(causes());
        self.note_causes(by_counter().into_iter().collect());
        let unmatched = crate::point::unmatched();
        if unmatched > 0 {
            self.note(format!(
                "{unmatched} intervals were ended by `end!` on a thread where none had begun, and are not measured: in async code use a \
                 tracing span"
            ));
        }
        self.write(Record::End(EndRecord {
            reason: plain::cut_sentence(&reason).into_owned(),
            real_ns: to_ns(self.elapsed()),
            experiments: self.run.held(),
            spoiled: self.run.spoiled(),
            lost_samples: self.sampled.lost + self.sampled.throttled,
            lost_records: self.writer.lost_records(),
        }));
        self.set_status("done", None);
    }

    /// Notes those that have not been noted yet.
    fn note_causes(&mut self, causes: Vec<String>) {
        for cause in causes {
            if self.noted_causes.insert(cause.clone()) {
                self.note(cause);
            }
        }
    }

    fn note(&mut self, text: String) {
        let at_ns = to_ns(self.elapsed());
        let text = plain::cut_sentence(&text).into_owned();
        self.write(Record::Note(NoteRecord { at_ns, text }));
    }

    fn write(&mut self, record: Record) {
        self.writer.write(&record);
        self.run.push(record);
    }

    fn elapsed(&self) -> Nanos {
        clock::now() - self.experimenter.start()
    }

    fn left(&self) -> Duration {
        self.settings.duration.saturating_sub(self.elapsed().to_duration())
    }

    fn set_status(&self, phase: &'static str, experiment: Option<String>) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Status {
            phase,
            experiment,
            held: self.run.held(),
            elapsed: self.elapsed().to_duration(),
            budget: self.settings.duration,
        };
    }
}

/// Whether the program has done anything that is counted.
fn is_any_hit() -> bool {
    points().iter().any(|point| point.count() > 0)
}

/// Says why points and targets were not seen, or count nothing, as far as that is known.
fn causes() -> Vec<String> {
    let mut all = hints::all();
    all.extend(unended());
    all
}

/// The length after one with so many hits: twice as long with too few, half as long with plenty,
/// between what was first and `most`.
fn next_length(now: Duration, hits: u64, first: Duration, most: Duration) -> Duration {
    if (hits as f64) < ENOUGH_HITS / 4.0 {
        (2 * now).min(most).max(now)
    } else if hits as f64 > ENOUGH_HITS * 4.0 {
        (now / 2).max(first)
    } else {
        now
    }
}

/// A target whose effect is known to within this, in points, needs no more experiments.
const NARROW: f64 = 1.0;

/// Returns what the estimates say of `target` by now.
fn known(analysis: Option<&Analysis>, target: &Target) -> Known {
    let record = target.to_record();
    let summary = analysis.and_then(|analysis| analysis.targets.iter().find(|it| it.is(&record)));
    match summary {
        None => Known::Undecided(f64::INFINITY),
        Some(it) => match it.verdict {
            Verdict::Inconclusive { more_seconds } => {
                Known::Undecided(more_seconds.unwrap_or(f64::INFINITY))
            }
            Verdict::Nothing => Known::Settled,
            _ if it.half_width() <= NARROW => Known::Settled,
            _ => Known::Within(it.half_width()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_longer_while_little_is_done_and_no_longer_for_good() {
        let [first, most] = [Duration::from_millis(400), SPARSE];
        let mut length = first;
        for _ in 0..20 {
            length = next_length(length, 3, first, most);
        }
        assert_eq!(length, most);
        assert_eq!(next_length(length, 100, first, most), length);
        for _ in 0..20 {
            length = next_length(length, 10_000, first, most);
        }
        assert_eq!(length, first);
        // With little time left it is at least not shorter.
        assert_eq!(next_length(first, 0, first, first / 2), first);
    }
}
