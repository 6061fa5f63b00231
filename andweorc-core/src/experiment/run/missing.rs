//! Notes on what a run did not see: points that nobody hit, targets that did not run, names that
//! nothing has.

use super::{ExperimentLoop, OBSERVATION};
use crate::experiment::choose::{is_named, names, want_samples};
use crate::experiment::diagnose::diagnose;
use crate::experiment::early;
use crate::experiment::first::first_to_mark;
use crate::experiment::unended::unended;
use crate::hints;
use crate::point::points;
use crate::settings::Settings;
use crate::spelled::spelled;
use crate::target::targets;
use andweorc_profile::{TargetKind, plain};
use std::slice;

/// Wanted names that nothing had when the program was looked at last.
#[derive(Clone, Debug)]
pub(super) struct Unseen {
    pub(super) points: Vec<String>,
    pub(super) targets: Vec<String>,
}

/// Says why points and targets were not seen, or count nothing, as far as that is known.
pub(super) fn causes() -> Vec<String> {
    let mut all = hints::all();
    all.extend(unended());
    all
}

fn is_point(wanted: &str) -> bool {
    points().iter().any(|point| point.name() == plain::cut_name(wanted))
}

fn is_target(wanted: &str) -> bool {
    targets().iter().any(|target| is_named(target, wanted))
}

impl ExperimentLoop {
    /// Notes why there is nothing to experiment with. `told` says that unknown names have been
    /// noted.
    pub(super) fn note_nothing_to_test(&mut self, told: bool) {
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
            self.journal.note(format!(
                "no progress point was hit, so there was nothing to measure (points known: {seen}){advice}"
            ));
            // Why spans are not seen is said before where to have some.
            self.journal.note_once(causes);
            self.samples.take();
            if let Some(first) = first_to_mark() {
                self.journal.note(first);
            }
        } else if self.settings.targets.is_empty()
            && self.samples.count() > 0
            && targets.iter().all(|target| target.kind() != TargetKind::Line)
            && let Some(lack) = self.samples.lack()
        {
            self.journal.note(lack.to_string());
        } else if targets.iter().all(|target| target.count() == 0) {
            let seen = names(targets.iter().map(|target| target.name()));
            self.journal.note(format!(
                "no target ran, so there was nothing to speed up (targets known: {seen}): spawn tasks with \
                 `andweorc::spawn`, name futures with `.profiled(\"name\")`, or have tracing \
                 spans, with `andweorc::subscriber()`, or `andweorc::layer()` added to the program's own"
            ));
        } else if !told {
            self.journal.note(format!(
                "the program ran for {:.1} s, and is watched for {:.0} s before the first experiment: give it more work, or \
                 load for longer",
                self.journal.elapsed().as_secs_f64(),
                OBSERVATION.as_secs_f64()
            ));
        }
    }

    /// Whether points, or targets, were named and not one of them is known, seen or idle.
    pub(super) fn is_all_unknown(&self, unseen: &Unseen) -> bool {
        let is_all = |wanted: &[String], missing: &[String], is_known: &dyn Fn(&String) -> bool| {
            !wanted.is_empty() && missing.len() == wanted.len() && !missing.iter().any(is_known)
        };
        let Settings { points, targets, .. } = &self.settings;
        is_all(points, &unseen.points, &|wanted| is_point(wanted))
            || is_all(targets, &unseen.targets, &|wanted| {
                want_samples(slice::from_ref(wanted)) || is_target(wanted)
            })
    }

    /// Notes each wanted name that nothing had, with the reason as far as it is known.
    pub(super) fn note_unseen(&mut self, unseen: &Unseen) {
        self.note_unseen_points(&unseen.points);
        self.note_unseen_targets(&unseen.targets);
    }

    fn note_unseen_points(&mut self, wanted: &[String]) {
        let (idle, unknown): (Vec<&str>, Vec<&str>) =
            wanted.iter().map(String::as_str).partition(|wanted| is_point(wanted));
        let setting = spelled("ANDWEORC_POINTS");
        if !idle.is_empty() {
            let idle = names(idle.into_iter());
            self.journal.note(format!(
                "{setting}: {idle} was not hit by the time the experiments began, and is not measured: a span is hit as it is closed"
            ));
        }
        if !unknown.is_empty() {
            let known = points();
            let known: Vec<&str> = known.iter().map(|point| point.name()).collect();
            self.journal.note(early::unknown("point", &unknown, &known, &setting));
        }
    }

    fn note_unseen_targets(&mut self, wanted: &[String]) {
        let mut named = Vec::new();
        let lack = self.samples.lack();
        for wanted in wanted {
            let (samples, scope) = (self.samples.count(), &self.settings.scope);
            match diagnose(wanted, samples, scope, lack.as_ref()) {
                Some(why) if self.samples.is_on() => self.journal.note(why),
                // Why there are no samples has been noted.
                Some(_) => {}
                None => named.push(wanted.as_str()),
            }
        }
        if want_samples(wanted) {
            self.samples.note_objects_without_lines(&mut self.journal);
        }
        let (idle, unknown): (Vec<&str>, Vec<&str>) =
            named.into_iter().partition(|wanted| is_target(wanted));
        let setting = spelled("ANDWEORC_TARGETS");
        if !idle.is_empty() {
            let idle = names(idle.into_iter());
            self.journal.note(format!(
                "{setting}: {idle} did not run in the {:.0} s in which the program was watched, and is not tested: put load on it by then",
                OBSERVATION.as_secs_f64()
            ));
        }
        if !unknown.is_empty() {
            let of_samples = unknown.iter().any(|it| want_samples(&[(*it).to_owned()]));
            let known = targets();
            let known: Vec<&str> = known.iter().map(|target| target.name()).collect();
            self.journal.note(early::unknown("target", &unknown, &known, &setting));
            if let Some(lack) = lack.filter(|_| of_samples) {
                self.journal.note(lack.to_string());
            }
        }
    }
}
