//! The stretch in which events of the processor are counted, where they are asked for: after the
//! targets are chosen, and before the first experiment. Nothing else is recorded in it, and the
//! pace of the program in it is compared with that before, when nothing was counted.

use super::ExperimentLoop;
use super::observe::{ObservedStretch, TIME_TO_SAMPLE};
use super::sampled_pace::Pace;
use crate::clock;
use crate::experiment::hold::to_ns;
use crate::point::Point;
use crate::sampler::{Counting, DRAIN};
use crate::spelled::spelled;
use crate::time::{Nanos, Real};
use andweorc_profile::EventsRecord;
use andweorc_profile::settings::CountedEvent;
use andweorc_sampling::perf::NotCounted;
use std::time::Duration;

/// How long events are counted by target.
const LENGTH: Duration = Duration::from_secs(1);

/// How long it is waited for events to happen at all.
const PATIENCE: Duration = Duration::from_secs(1);

/// The program when a stretch of it begins.
struct Start {
    at: Real,
    cpu: Nanos,
    hits: u64,
}

impl Start {
    fn now(point: &Point) -> Start {
        Start { at: clock::now(), cpu: clock::process_cpu(), hits: point.count() }
    }

    fn is_over(&self) -> bool {
        (clock::now() - self.at).to_duration() >= LENGTH
    }

    /// Work of the point since then.
    fn pace(&self, point: &Point) -> Pace {
        Pace {
            hits: point.count().saturating_sub(self.hits),
            real_ns: to_ns(clock::now() - self.at),
            cpu_ns: to_ns(clock::process_cpu() - self.cpu),
        }
    }
}

impl ExperimentLoop {
    /// Counts events, where they are asked for, and writes them down, unless that slows the program
    /// as it was `before`.
    pub(super) fn count_events(&mut self, before: &ObservedStretch) {
        let wanted = self.settings.events.clone();
        if wanted.is_empty() {
            return;
        }
        if self.left() < TIME_TO_SAMPLE {
            let events = spelled("ANDWEORC_EVENTS");
            let least = TIME_TO_SAMPLE.as_secs();
            self.journal.note(format!(
                "no events were counted, as {events} asks for: less than {least} s of the run were left, so give it more time"
            ));
            return;
        }
        self.set_status("counting events", None);
        let counting = Counting::start(&wanted, self.samples.sampling());
        let (counting, refused) = match counting {
            Ok(started) => started,
            Err(why) => return self.journal.note(format!("no events were counted: {why}")),
        };
        for (why, events) in NotCounted::by_reason(&refused) {
            self.journal.note(note_of(&why, &events));
        }
        if counting.is_empty() {
            return;
        }
        // There is one where targets are chosen.
        let Some(&point) = before.points.first() else { return };
        let Some((record, pace)) = self.counted(counting, point) else { return };
        match self.slowed(point, before.pace(point), pace) {
            Some(slowed) => self.journal.note(format!("{slowed}. They are left out")),
            None => self.journal.write_events(record),
        }
    }

    /// Counts for a while. Returns what was counted, and the work of the point meanwhile; `None`
    /// where the run is stopped.
    fn counted(&self, mut counting: Counting, point: &Point) -> Option<(EventsRecord, Pace)> {
        let begun = clock::now();
        let mut start: Option<Start> = None;
        let stopper = self.experimenter.stopper();
        while !start.as_ref().is_some_and(Start::is_over) {
            if stopper.sleep(DRAIN) {
                return None;
            }
            counting.look(self.samples.sampling());
            let is_late = (clock::now() - begun).to_duration() >= PATIENCE;
            if start.is_none() && (counting.is_rated() || is_late) {
                start = Some(Start::now(point));
            }
        }
        let pace = start?.pace(point);
        let mut record = counting.close(self.samples.sampling());
        (record.real_ns, record.cpu_ns) = (pace.real_ns, pace.cpu_ns);
        Some((record, pace))
    }

    /// Says how counting slowed the program, where it did less or needed more CPU time than before
    /// it, and than after it too: else the load or the machine has changed.
    fn slowed(&self, point: &Point, before: Option<Pace>, counted: Pace) -> Option<String> {
        let slowed = |than: Pace| than.slowed(counted, point.name(), "counting events");
        let note = slowed(before?)?;
        let start = Start::now(point);
        let is_stopped = self.experimenter.stopper().sleep(LENGTH);
        (is_stopped || slowed(start.pace(point)).is_some()).then_some(note)
    }
}

/// Note on events that are not counted for this reason.
fn note_of(why: &str, events: &[CountedEvent]) -> String {
    let are = if events.len() == 1 { "is" } else { "are" };
    let events: Vec<String> = events.iter().map(|event| format!("`{}`", event.name())).collect();
    format!("{} {are} not counted: {why}", events.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_are_refused_for_one_reason_are_one_note() {
        let (cycles, instructions) = (CountedEvent::Cycles, CountedEvent::Instructions);
        assert_eq!(
            note_of("none here", &[cycles, instructions]),
            "`cycles`, `instructions` are not counted: none here"
        );
        assert_eq!(
            note_of("forbidden", &[CountedEvent::PageFaults]),
            "`page-faults` is not counted: forbidden"
        );
    }
}
