//! The life of a run, on a thread of its own: observe, choose, hold experiments until the ranking
//! is settled or the time is up, and write everything down as it goes.
//!
//! | module | job |
//! |---|---|
//! | `observe` | the first phase: points and targets to experiment with |
//! | `events` | after it, the stretch in which events are counted |
//! | `missing` | notes on what was not seen |
//! | `samples` | lines and functions, where they are targets |
//! | `phases` | how long the next experiment is |
//! | `joint` | experiments that a coordinator begins and ends in several programs |
//! | `rounds` | a fixed number of experiments instead, for the classic API |
//! | `journal` | records, to the profile and to the estimates |
//! | `finish` | the notes at the end |

mod events;
mod finish;
mod joint;
mod journal;
mod missing;
mod observe;
mod phases;
mod rounds;
mod sampled_pace;
mod samples;
mod status;

pub(crate) use rounds::Rounds;
pub use status::Status;

use crate::clock;
use crate::experiment::choose::{Hits, reconsidered};
use crate::experiment::guard::Cut;
use crate::experiment::hold::{Experimenter, Outcome, Phases};
use crate::experiment::plan::{Arm, Known, Plan};
use crate::fork::Unshared;
use crate::point::Point;
use crate::sampler::{self, Found, Sampling, is_sampled};
use crate::session::link::Link;
use crate::settings::Settings;
use crate::spelled::spelled;
use crate::sync::Mutex;
use crate::target::{Target, target};
use crate::time::Speedup;
use andweorc_profile::estimate::{Analysis, Ongoing};
use andweorc_profile::{ExperimentRecord, Header, TargetKind, Writer};
use andweorc_sampling::copies::Copies;
use journal::Journal;
use samples::Samples;
use std::sync::Arc;
use std::time::Duration;

/// How long the program is watched before targets are chosen, again and again until there are some.
const OBSERVATION: Duration = Duration::from_secs(1);

/// How many probes of the load a run begins with.
const PROBES: u32 = 2;

/// After so many experiments on targets the load is probed again, while it is not known and when it
/// is: it may change.
const PROBE_INTERVALS: [u32; 2] = [3, 24];

/// So many more probes are held at most where all is settled but the load.
const MAX_LAST_PROBES: u32 = 6;

/// By how much a probe delays the program.
const PROBE: Speedup = Speedup::from_ppm(250_000);

/// Seed of the order of experiments: two runs with the same settings differ by the program and the
/// machine alone.
const SEED: u64 = 0x616e_6477_656f_7263;

/// A run, from its first look at the program to its last record.
pub(crate) struct ExperimentLoop {
    settings: Settings,
    experimenter: Experimenter,
    journal: Journal,
    status: Arc<Mutex<Status>>,
    samples: Samples,
    copies: Copies,
    /// Rounds in the place of what the estimates choose.
    rounds: Option<Rounds>,
    /// The coordinator that chooses instead.
    link: Option<Link>,
}

/// Findings of a run that has ended.
pub(crate) struct Finished {
    pub(crate) run: Ongoing,
    /// The profile's, where one is written.
    pub(crate) writer: Option<Unshared<Writer>>,
    /// Samples, with the lines that were sampled before the first experiment.
    pub(crate) samples: Found,
    /// Whether the program took over the signal by which it was sampled.
    pub(crate) has_lost_signal: bool,
}

/// How an experiment went that is written down, with the hits of the first point.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Attempt {
    /// The run was stopped meanwhile.
    Stopped,
    /// The experiment did not do the program good.
    CutShort(Cut),
    /// The machine disturbed the experiment.
    Discarded(u64),
    /// The experiment can be used.
    Measured(u64),
}

impl ExperimentLoop {
    pub(crate) fn new(
        settings: Settings,
        experimenter: Experimenter,
        header: Header,
        writer: Option<Unshared<Writer>>,
        status: Arc<Mutex<Status>>,
    ) -> ExperimentLoop {
        let journal = Journal::new(header, writer, experimenter.start());
        let (samples, copies) = (Samples::default(), Copies::default());
        ExperimentLoop {
            settings,
            experimenter,
            journal,
            status,
            samples,
            copies,
            rounds: None,
            link: None,
        }
    }

    /// Holds these rounds on what `sampling` finds, in the place of what the estimates choose.
    pub(crate) fn with_rounds(self, rounds: Rounds, sampling: Sampling) -> ExperimentLoop {
        ExperimentLoop { samples: Samples::of(sampling), rounds: Some(rounds), ..self }
    }

    /// Holds what the coordinator says, in the place of what the estimates choose.
    pub(crate) fn with_link(self, link: Link) -> ExperimentLoop {
        ExperimentLoop { link: Some(link), ..self }
    }

    /// Runs to the end, and returns what was found. `reason` tells why the run was stopped, if it
    /// was.
    pub(crate) fn run(mut self, reason: impl FnOnce() -> Option<String>) -> Finished {
        // On the profiler's thread: a file system that hangs, or a limit on the size of files, is
        // no matter of who starts the run.
        self.journal.write_header();
        let ended = self.hold_all();
        if let Some(mut link) = self.link.take() {
            link.leave(ended);
        }
        let reason = reason().unwrap_or_else(|| ended.to_owned());
        self.finish(&reason);
        let has_lost_signal = self.samples.is_over();
        let (run, writer) = self.journal.into_parts();
        Finished { run, writer, samples: self.samples.into_taken(), has_lost_signal }
    }

    /// Holds experiments until there is a reason to end, which it returns.
    fn hold_all(&mut self) -> &'static str {
        let (mut points, targets) = match self.observe() {
            Ok(chosen) => chosen,
            Err(reason) => return reason,
        };
        self.journal.write_points(&points, false);
        let sampled = targets.iter().copied().filter(|it| is_sampled(it)).collect();
        self.experimenter.record_samples_of(sampled);
        if self.link.is_some() {
            return self.hold_joint(&points, &targets);
        }
        let mut plan = Plan::new(&targets, &self.settings.speedups, SEED ^ self.settings.order);
        if let Some(rounds) = self.rounds {
            plan = plan.with_fixed_passes(rounds.passes);
        }
        let mut analysis = None;
        let mut first = self.first_phases(&plan, &points);
        let mut phases = first;
        if !self.hold_baselines(phases, &points) {
            return "time";
        }
        let probe = target(TargetKind::Probe, "everything", None, None);
        if self.rounds.is_none() {
            self.journal.write_target(probe);
            if (0..PROBES).any(|_| !self.probe(probe, phases)) {
                return "stopped";
            }
        }
        let (mut since_probe, mut last_probes) = (0, 0);
        let hits = Hits::read();
        loop {
            let Some(arm) = plan.next(|target| Known::of(analysis.as_ref(), target)) else {
                if plan.len() == 0 {
                    return "nothing left to test";
                }
                // Without the load a verdict may be by another metric than it should.
                let is_known = analysis.as_ref().is_none_or(|it: &Analysis| it.load.is_some());
                if is_known || last_probes == MAX_LAST_PROBES || !self.has_time_for(phases) {
                    return "settled";
                }
                last_probes += 1;
                if !self.probe(probe, phases) {
                    return "stopped";
                }
                analysis = Some(self.journal.run().ranking());
                continue;
            };
            if !self.has_time_for(phases) {
                return "time";
            }
            let attempt = self.hold(Some(arm), phases, &points);
            match attempt {
                Attempt::Stopped => return "stopped",
                Attempt::CutShort(Cut::TooSlow(_)) => plan.leave_out(arm),
                Attempt::CutShort(_) | Attempt::Discarded(_) if self.rounds.is_none() => {}
                _ => plan.count(arm),
            }
            if self.samples.is_over() {
                plan.leave_out_all(sampler::is_sampled);
            }
            if self.reconsider(&mut points, &hits) {
                first = self.first_phases(&plan, &points);
                phases = first;
            } else if let Attempt::Measured(hits) | Attempt::Discarded(hits) = attempt
                && self.rounds.is_none()
            {
                phases = phases::next(phases, hits, first, self.left());
            }
            if !self.hold_baselines(phases, &points) {
                return "stopped";
            }
            if self.rounds.is_some() {
                continue;
            }
            let known = self.journal.run().ranking();
            since_probe += 1;
            if since_probe >= PROBE_INTERVALS[usize::from(known.load.is_some())] {
                since_probe = 0;
                if self.has_time_for(phases) && !self.probe(probe, phases) {
                    return "stopped";
                }
            }
            analysis = Some(known);
        }
    }

    /// Holds the baselines between two experiments. False when they were stopped.
    fn hold_baselines(&mut self, phases: Phases, points: &[&'static Point]) -> bool {
        let many = self.rounds.map_or(1, |rounds| rounds.baselines);
        (0..many).all(|_| self.hold(None, phases, points) != Attempt::Stopped)
    }

    /// Holds a probe of the load, and the baseline after it. False when they were stopped.
    fn probe(&mut self, probe: &'static Target, phases: Phases) -> bool {
        [Some(Arm::new(probe, PROBE)), None]
            .into_iter()
            .all(|arm| self.hold(arm, phases, &[]) != Attempt::Stopped)
    }

    /// Puts another point first, where nobody named one and the first is hardly hit any more: it
    /// was chosen while connections were made, say, which last since then. Says whether it did.
    fn reconsider(&mut self, points: &mut Vec<&'static Point>, hits: &Hits) -> bool {
        if !self.settings.points.is_empty() {
            return false;
        }
        let Some(now) = reconsidered(points, hits) else { return false };
        self.journal.note(format!(
            "targets are ranked by `{}` from here on: `{}`, the point that was first, is hardly hit while that one is often",
            now[0].name(),
            points[0].name()
        ));
        *points = now;
        self.journal.write_points(points, true);
        true
    }

    /// How long experiments should be at first.
    fn first_phases(&self, plan: &Plan, points: &[&'static Point]) -> Phases {
        if let Some(rounds) = self.rounds {
            return rounds.phases();
        }
        let seconds = (clock::now() - self.experimenter.start()).as_secs_f64();
        let rate = points.first().map_or(0.0, |point| point.count() as f64) / seconds;
        // Each has a baseline after it.
        phases::first(2 * (PROBES + plan.wanted()), self.left(), rate)
    }

    /// Holds one experiment and writes it down.
    fn hold(&mut self, arm: Option<Arm>, phases: Phases, points: &[&'static Point]) -> Attempt {
        let what = arm.map_or("baseline".to_owned(), |arm| {
            format!("{} {} faster", arm.target.name(), arm.speedup)
        });
        self.set_status("experimenting", Some(what.clone()));
        let speedup = arm.map_or(Speedup::ZERO, |arm| arm.speedup);
        let target = arm.map(|arm| arm.target);
        let (mut record, cut) = match self.experimenter.run(target, speedup, phases) {
            Outcome::Stopped => return Attempt::Stopped,
            Outcome::CutShort(record, cut) => (record, Some(cut)),
            Outcome::Measured(record) => (record, None),
        };
        if self.samples.is_over() && target.is_some_and(sampler::is_sampled) {
            record.discarded = Some("the program took SIGURG over, by which it was sampled".into());
        }
        let hits = points.first().map_or(0, |first| {
            let counts = record.points.iter().filter(|count| count.point == first.id());
            counts.map(|count| count.count).sum()
        });
        let attempt = match cut {
            Some(cut) => Attempt::CutShort(cut),
            None if record.discarded.is_some() => Attempt::Discarded(hits),
            None => Attempt::Measured(hits),
        };
        self.write_down(record, &what, cut);
        attempt
    }

    /// Writes an experiment down, and what there is to tell of it.
    fn write_down(&mut self, record: ExperimentRecord, what: &str, cut: Option<Cut>) {
        self.journal.write_experiment(record);
        if let Some(record) = self.experimenter.take_allocations() {
            self.journal.write_allocations(record);
        }
        self.note_copies();
        if let Some(cut) = cut {
            self.note_cut(what, cut);
        }
    }

    fn note_cut(&mut self, what: &str, cut: Cut) {
        let then = match cut {
            Cut::Stopped(_) => "was it stopped, or had it no processor? It is left out",
            Cut::TooSlow(_) => &format!(
                "it is not tried again; {} sets what is allowed",
                spelled("ANDWEORC_MAX_SLOWDOWN")
            ),
            Cut::NoProgress(_) => "it is left out; is the load gone, or does the program wait?",
        };
        self.journal.note(format!("an experiment ({what}) was ended early, since {cut}: {then}"));
    }

    /// Notes which shared objects have a copy of andweorc of their own, when they were loaded.
    fn note_copies(&mut self) {
        for copy in self.copies.new_ones() {
            self.journal.note(copy.to_string());
        }
    }

    fn left(&self) -> Duration {
        self.settings.duration.saturating_sub(self.journal.elapsed().to_duration())
    }

    /// Whether there is time for one more experiment and the baseline after it.
    fn has_time_for(&self, phases: Phases) -> bool {
        self.left() >= 2 * phases.mean()
    }

    fn set_status(&self, phase: &'static str, experiment: Option<String>) {
        *self.status.lock() = Status {
            phase,
            experiment,
            held: self.journal.run().held(),
            elapsed: self.journal.elapsed().to_duration(),
            budget: self.settings.duration,
        };
    }
}
