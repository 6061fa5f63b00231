//! Experiments that a coordinator begins and ends in several programs at once.
//!
//! A target of another program is tested here too: the delays that it makes come with messages.
//! Such an experiment has a target of the kind [`TargetKind::Remote`] in this program's profile,
//! which so tells what the parts of all programs do for the points of this one.

use super::ExperimentLoop;
use crate::experiment::guard::Cut;
use crate::experiment::hold::{Outcome as Held, Phases};
use crate::experiment::stop::Stop;
use crate::point::Point;
use crate::sampler;
use crate::session::link::Link;
use crate::target::{Target, target, targets};
use crate::thread;
use crate::time::Speedup;
use andweorc_profile::coordination::{
    Begin, KnownPoint, KnownTarget, LONGEST_EXPERIMENT, MOST_NAMED, Outcome, Tested, Verdict,
};
use andweorc_profile::{ExperimentRecord, Record, TargetKind, plain};
use std::time::Duration;

/// How long it is slept at most until the coordinator is asked for again.
const LOOK: Duration = Duration::from_secs(1);

/// A measured stretch that is shorter tells nothing.
const MIN_MEASURED_NS: u64 = 50_000_000;

impl ExperimentLoop {
    /// Holds what the coordinator says until the run is over.
    pub(super) fn hold_joint(
        &mut self,
        points: &[&'static Point],
        targets: &[&'static Target],
    ) -> &'static str {
        let Some(link) = self.link.take() else { return "stopped" };
        link.offer(known_targets(targets), known_points(points));
        let stop = self.experimenter.stopper();
        let mut is_named = false;
        while !link.is_over() {
            // Before the look: a change that comes after it ends the sleep.
            stop.forget_cut();
            match link.take() {
                Some(begin) => {
                    if !is_named && let Some(run) = link.run() {
                        is_named = true;
                        self.journal.write_apart(&Record::Joint(run));
                    }
                    if !self.hold_begun(&link, &begin) {
                        break;
                    }
                }
                None if stop.sleep_unless_cut(LOOK) => break,
                None => {}
            }
        }
        self.link = Some(link);
        "stopped"
    }

    /// Holds an experiment until the coordinator ends it, and writes it down when that has said
    /// whether it can be used. False when the session was stopped.
    fn hold_begun(&mut self, link: &Link, begin: &Begin) -> bool {
        let number = begin.experiment;
        let Some(target) = tested(link.service(), begin.target.as_ref()) else {
            let reason = "it has no such target".to_owned();
            link.report(number, Outcome::Refused { reason });
            return true;
        };
        if let Some(target) = target {
            self.journal.write_target(target);
        }
        let speedup = Speedup::from_ppm(begin.speedup_ppm);
        let what = target
            .map_or("baseline".to_owned(), |target| format!("{} {speedup} faster", target.name()));
        self.set_status("experimenting", Some(what.clone()));
        // Queues settle back while the coordinator waits for the next.
        let phases = Phases {
            warmup: Duration::from_millis(begin.warmup_ms.into()),
            measure: LONGEST_EXPERIMENT.to_duration(),
            cooldown: Duration::ZERO,
        };
        thread::number_next(Some(number));
        let held = self.experimenter.run_while(target, speedup, phases, || link.is_held(number));
        let (mut record, cut) = match held {
            Held::Stopped => return false,
            Held::CutShort(record, cut) => (record, Some(cut)),
            Held::Measured(record) => (record, None),
        };
        record.joint = Some(number);
        if self.samples.is_over() && target.is_some_and(sampler::is_sampled) {
            record.discarded = Some("the program took SIGURG over, by which it was sampled".into());
        }
        if record.discarded.is_none() && record.real_ns < MIN_MEASURED_NS {
            record.discarded = Some("it was ended before it was measured".into());
        }
        link.report(number, outcome(&record, cut));
        let stop = self.experimenter.stopper();
        match verdict(link, number, &stop) {
            Verdict::Use => {}
            Verdict::Discard(reason) => {
                let reason = plain::cut_sentence(&reason).into_owned();
                record.discarded.get_or_insert(reason);
            }
        }
        self.write_down(record, &what, cut);
        true
    }
}

/// Waits until the coordinator says whether an experiment can be used. It can't when the session is
/// stopped meanwhile.
fn verdict(link: &Link, number: u32, stop: &Stop) -> Verdict {
    loop {
        stop.forget_cut();
        if let Some(verdict) = link.verdict(number) {
            return verdict;
        }
        if stop.sleep_unless_cut(LOOK) {
            return Verdict::Discard("the session ended before all had told how it went".into());
        }
    }
}

/// How an experiment went, for the coordinator.
fn outcome(record: &ExperimentRecord, cut: Option<Cut>) -> Outcome {
    let reason = record.discarded.as_deref().map(|it| plain::cut_name(it).into_owned());
    match (reason, cut) {
        (None, _) => Outcome::Measured,
        (Some(reason), Some(Cut::TooSlow(_))) => Outcome::Refused { reason },
        (Some(reason), _) => Outcome::Discarded { reason },
    }
}

/// The target that is tested, `None` of it in a baseline. `None` at all where it is said to be of
/// this service, which has none like it.
fn tested(service: &str, tested: Option<&Tested>) -> Option<Option<&'static Target>> {
    let Some(tested) = tested else { return Some(None) };
    let KnownTarget { id, kind, file, line, .. } = &tested.target;
    if *kind == TargetKind::Probe {
        return Some(Some(target(TargetKind::Probe, "everything", None, None)));
    }
    if tested.service == service {
        return targets().into_iter().find(|it| it.id() == *id).map(Some);
    }
    let name = plain::cut_name(&tested.name()).into_owned();
    let file = file.as_deref().map(plain::cut_name);
    Some(Some(target(TargetKind::Remote, &name, file.as_deref(), *line)))
}

fn known_targets(targets: &[&'static Target]) -> Vec<KnownTarget> {
    let known = targets.iter().take(MOST_NAMED).map(|target| KnownTarget {
        id: target.id(),
        kind: target.kind(),
        name: plain::cut_name(target.name()).into_owned(),
        file: target.file().map(|file| plain::cut_name(file).into_owned()),
        line: target.line(),
    });
    known.collect()
}

fn known_points(points: &[&'static Point]) -> Vec<KnownPoint> {
    let known = points.iter().take(MOST_NAMED).map(|point| KnownPoint {
        id: point.id(),
        name: plain::cut_name(point.name()).into_owned(),
    });
    known.collect()
}
