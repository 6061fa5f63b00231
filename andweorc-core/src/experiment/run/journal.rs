//! The records of a run: each goes to the profile, and to the estimates that decide what is held
//! next.

use crate::clock;
use crate::experiment::hold::to_ns;
use crate::fork::Unshared;
use crate::point::{Point, points};
use crate::target::{Target, targets};
use crate::time::{Nanos, Real};
use andweorc_profile::estimate::Ongoing;
use andweorc_profile::plain;
use andweorc_profile::{
    AllocationsRecord, EndRecord, EventsRecord, ExperimentRecord, Header, LongPollsRecord,
    NoteRecord, Record, Writer,
};
use std::collections::HashSet;

/// Writes records, and keeps of them what the estimates need.
pub(super) struct Journal {
    /// None where no profile is written.
    writer: Option<Unshared<Writer>>,
    run: Ongoing,
    /// The zero of the profile's times.
    start: Real,
    written_targets: HashSet<u32>,
    written_points: HashSet<u32>,
    /// Notes that are made once, however often their cause is found.
    noted_once: HashSet<String>,
}

impl Journal {
    /// A journal of which nothing is written yet.
    pub(super) fn new(header: Header, writer: Option<Unshared<Writer>>, start: Real) -> Journal {
        Journal {
            writer,
            run: Ongoing::new(header),
            start,
            written_targets: HashSet::new(),
            written_points: HashSet::new(),
            noted_once: HashSet::new(),
        }
    }

    /// The run as far as it is written.
    pub(super) fn run(&self) -> &Ongoing {
        &self.run
    }

    /// Real time since the run began.
    pub(super) fn elapsed(&self) -> Nanos {
        clock::now() - self.start
    }

    /// The zero of the profile's times.
    pub(super) fn start(&self) -> Real {
        self.start
    }

    /// Writes a record that the estimates have no use for, so that it takes no memory from then on.
    pub(super) fn write_apart(&mut self, record: &Record) {
        self.write_to_profile(record);
    }

    /// Takes the journal apart, once its last record is written.
    pub(super) fn into_parts(self) -> (Ongoing, Option<Unshared<Writer>>) {
        (self.run, self.writer)
    }

    /// Writes the header. The estimates have it already.
    pub(super) fn write_header(&mut self) {
        let header = Record::Header(self.run.run().header.clone());
        self.write_to_profile(&header);
    }

    fn write_to_profile(&mut self, record: &Record) {
        if let Some(writer) = &mut self.writer {
            writer.write(record);
        }
    }

    /// Writes a record, and hands it to the estimates.
    pub(super) fn write(&mut self, record: Record) {
        self.write_to_profile(&record);
        self.run.push(record);
    }

    /// Writes points in the order of their importance. With `anew` those that are known already get
    /// another rank.
    pub(super) fn write_points(&mut self, points: &[&'static Point], anew: bool) {
        if anew {
            self.written_points.clear();
        }
        for (rank, point) in points.iter().enumerate() {
            if self.written_points.insert(point.id()) {
                self.write(Record::Point(point.to_record(rank as u32)));
            }
        }
    }

    /// Writes a target, unless it was written before.
    pub(super) fn write_target(&mut self, target: &Target) {
        if self.written_targets.insert(target.id()) {
            self.write(Record::Target(target.to_record()));
        }
    }

    /// Writes an experiment, after the points that it names for the first time.
    pub(super) fn write_experiment(&mut self, record: ExperimentRecord) {
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

    /// Writes allocations, after the targets that they name for the first time.
    pub(super) fn write_allocations(&mut self, record: AllocationsRecord) {
        for target in targets() {
            if record.targets.iter().any(|of| of.target == Some(target.id())) {
                self.write_target(target);
            }
        }
        self.write(Record::Allocations(record));
    }

    /// Writes events, after the targets that they name for the first time.
    pub(super) fn write_events(&mut self, record: EventsRecord) {
        for target in targets() {
            if record.targets.iter().any(|of| of.target == Some(target.id())) {
                self.write_target(target);
            }
        }
        self.write(Record::Events(record));
    }

    /// Writes long polls, after the targets that they name for the first time.
    pub(super) fn write_long_polls(&mut self, record: LongPollsRecord) {
        for target in targets() {
            if record.polls.iter().any(|poll| poll.target == target.id()) {
                self.write_target(target);
            }
        }
        self.write(Record::LongPolls(record));
    }

    /// Writes a note.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let at_ns = to_ns(self.elapsed());
        let text = plain::cut_sentence(&text.into()).into_owned();
        self.write(Record::Note(NoteRecord::new(at_ns, text)));
    }

    /// Writes the notes that were not written by this before. Other counts make no other note: the
    /// program goes on.
    pub(super) fn note_once(&mut self, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            if self.noted_once.insert(without_counts(&note)) {
                self.note(note);
            }
        }
    }

    /// Writes the last record.
    pub(super) fn write_end(&mut self, reason: &str, lost_samples: u64) {
        let mut end = EndRecord::new(plain::cut_sentence(reason), to_ns(self.elapsed()));
        end.experiments = self.run.held();
        end.discarded = self.run.discarded();
        end.lost_samples = lost_samples;
        end.lost_records = self.writer.as_ref().map_or(0, |writer| writer.lost_records());
        self.write(Record::End(end));
    }
}

/// A note without its counts. A number in a name, between backticks, is none.
fn without_counts(note: &str) -> String {
    let is_count = |it: char| it.is_ascii_digit() || it == ',';
    let parts = note.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.replace(is_count, ""),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_differ_in_counts_are_one_and_those_of_other_names_are_not() {
        let of = |name: &str, count: &str| without_counts(&format!("`{name}` was entered {count}"));
        assert_eq!(of("stage1", "4,553 times"), of("stage1", "14,554 times"));
        assert_ne!(of("stage1", "4 times"), of("stage2", "4 times"));
    }
}
