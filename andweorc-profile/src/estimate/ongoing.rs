//! A run that goes on, in memory that does not grow with its length: it may be a service's for
//! days.
//!
//! The profile has all rows. Here an experiment is [tallied](crate::estimate::tally) and forgotten
//! when the next one comes, allocations are summed up, and of very many notes the first and
//! the last are kept. What is left
//! grows with what the program has: targets, points, and names.

use crate::estimate::observe::Rows;
use crate::estimate::tally::{MOST, Tally};
use crate::estimate::{Analysis, analyse_all, analyse_metrics, ranking_points, seen};
use crate::{EndRecord, Header, NoteRecord, PointKind, PointRecord, Record, Run};
use std::slice;

/// The most important points, whose effects are estimated. The first one with latencies is always
/// among them.
const POINTS: usize = 8;

/// So many notes are kept from the beginning of the run, and as many of its end.
const NOTES: usize = 50;

/// A run that still goes on, as far as its estimates need it: record by record, in memory that does
/// not grow with the number of experiments.
#[derive(Debug)]
pub struct Ongoing {
    /// Without experiments.
    run: Run,
    tally: Tally,
    has_latencies: bool,
    notes_left_out: usize,
}

impl Ongoing {
    /// A run of which only the header is known.
    pub fn new(header: Header) -> Ongoing {
        Ongoing {
            run: Run::new(header),
            tally: Tally::new(MOST),
            has_latencies: false,
            notes_left_out: 0,
        }
    }

    /// Adds a record.
    pub fn push(&mut self, record: Record) {
        match record {
            Record::Experiment(experiment) => self.tally.push(&experiment),
            Record::Note(note) => {
                self.run.notes.push(note);
                if self.run.notes.len() > 2 * NOTES {
                    self.run.notes.remove(NOTES);
                    self.notes_left_out += 1;
                }
            }
            Record::Point(point) => {
                self.ask_for(&point);
                self.run.push(Record::Point(point));
            }
            Record::Allocations(later) => match self.run.allocations.first_mut() {
                Some(sum) => sum.add(later),
                None => self.run.push(Record::Allocations(later)),
            },
            // Nothing is estimated from them.
            Record::Stacks(_) => {}
            Record::End(end) => self.end(end),
            other => self.run.push(other),
        }
    }

    /// Estimates the effects on a point, if it is one of the first. Points come in the order of
    /// their importance.
    fn ask_for(&mut self, point: &PointRecord) {
        let first_latency = point.kind == PointKind::Latency && !self.has_latencies;
        if self.tally.asked_for() < POINTS || first_latency {
            self.tally.ask_for(point.id);
            self.has_latencies |= first_latency;
        }
    }

    fn end(&mut self, end: EndRecord) {
        if self.notes_left_out > 0 {
            let text = format!("{} more notes are in the profile", self.notes_left_out);
            self.run.notes.insert(NOTES, NoteRecord { at_ns: end.real_ns, text });
        }
        self.run.push(Record::End(end));
    }

    /// The run, without its experiments.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Experiments and baselines held.
    pub fn held(&self) -> u32 {
        u32::try_from(self.tally.all()).unwrap_or(u32::MAX)
    }

    /// Of these, how many were discarded.
    pub fn discarded(&self) -> u32 {
        u32::try_from(self.tally.discarded_ones()).unwrap_or(u32::MAX)
    }

    /// Analyses what the ranking needs, as [`analyse_ranking`](crate::estimate::analyse_ranking)
    /// does.
    pub fn ranking(&self) -> Analysis {
        let runs = slice::from_ref(&self.run);
        let points = ranking_points(runs);
        let rows = [Rows::tallied(&self.run, &self.tally, &points)];
        analyse_metrics(runs, points, &rows, false, |by| vec![(by.point_index, by.metric)])
    }

    /// Analyses all targets, as [`analyse`](crate::estimate::analyse) does, by the most important
    /// points.
    pub fn analysis(&self) -> Analysis {
        let points = seen::points(slice::from_ref(&self.run));
        let rows = [Rows::tallied(&self.run, &self.tally, &points)];
        analyse_all(slice::from_ref(&self.run), points, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::allocations::tests::of as allocations_of;
    use crate::estimate::tests::{measured, run};
    use crate::estimate::{analyse, analyse_ranking};
    use crate::{AllocationsRecord, PointCount, Writer};
    use std::fs;
    use std::path::Path;
    use tests_support::memory;

    #[global_allocator]
    static COUNTING: memory::Counting = memory::Counting;

    fn records(run: &Run) -> Vec<Record> {
        let targets = run.targets.iter().cloned().map(Record::Target);
        let points = run.points.iter().cloned().map(Record::Point);
        let samples = run.samples.iter().cloned().map(Record::Samples);
        let notes = run.notes.iter().cloned().map(Record::Note);
        let experiments = run.experiments.iter().cloned().map(Record::Experiment);
        let allocations = run.allocations.iter().cloned().map(Record::Allocations);
        let all = targets.chain(points).chain(samples).chain(notes).chain(experiments);
        all.chain(allocations).collect()
    }

    fn ongoing(run: &Run) -> Ongoing {
        let mut ongoing = Ongoing::new(run.header.clone());
        records(run).into_iter().for_each(|record| ongoing.push(record));
        ongoing
    }

    fn point(id: u32, kind: PointKind) -> Record {
        let name = format!("point {id}");
        Record::Point(PointRecord { id, kind, name, file: None, line: None, rank: id })
    }

    #[test]
    fn estimates_are_those_of_the_profile() {
        // More experiments than are kept one by one, too.
        for rounds in [1, 4, 3 * MOST as u64 + 5] {
            let mut run = measured(rounds);
            run.allocations = (0..rounds)
                .map(|round| AllocationsRecord {
                    seq: Some(round as u32),
                    real_ns: 1_000,
                    targets: vec![allocations_of(Some(1), [round, 1, 0, round])],
                })
                .collect();
            let ongoing = ongoing(&run);
            assert_eq!(ongoing.run().allocations.len(), 1, "they are summed up");
            assert!(ongoing.run().experiments.is_empty());
            assert_eq!(ongoing.held() as usize, run.experiments.len());
            assert_eq!(ongoing.ranking(), analyse_ranking(slice::from_ref(&run)));
            assert_eq!(ongoing.analysis(), analyse(&[run]));
        }
    }

    #[test]
    fn effects_are_those_on_the_first_points_and_the_first_with_latencies() {
        let mut run = run();
        run.points.clear();
        let mut ongoing = Ongoing::new(run.header.clone());
        records(&run).into_iter().for_each(|record| ongoing.push(record));
        let latency = 2 * POINTS as u32;
        for id in 0..2 * latency {
            let kind = if id < latency { PointKind::Progress } else { PointKind::Latency };
            ongoing.push(point(id, kind));
        }
        for seq in 0..3 {
            let points = (0..2 * latency).map(|point| PointCount {
                point,
                count: 10,
                latency: if point < latency { Vec::new() } else { vec![(5, 10)] },
            });
            let mut experiment = measured(1).experiments[0].clone();
            (experiment.points, experiment.target) = (points.collect(), (seq == 1).then_some(1));
            ongoing.push(Record::Experiment(experiment));
        }
        let mut indices: Vec<usize> =
            ongoing.analysis().targets[0].effects.iter().map(|it| it.point_index).collect();
        indices.dedup();
        assert_eq!(indices, (0..POINTS).chain([latency as usize]).collect::<Vec<_>>());
    }

    #[test]
    fn of_very_many_notes_the_first_and_the_last_are_told() {
        let mut ongoing = Ongoing::new(run().header);
        for i in 0..1_000 {
            ongoing.push(Record::Note(NoteRecord { at_ns: i, text: format!("note {i}") }));
        }
        ongoing.push(Record::End(EndRecord {
            reason: "time".into(),
            real_ns: 1_000,
            experiments: 0,
            discarded: 0,
            lost_samples: 0,
            lost_records: 0,
        }));
        let told: Vec<_> = ongoing.run().notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!((told[0], told[2 * NOTES]), ("note 0", "note 999"));
        assert_eq!(told[NOTES], "900 more notes are in the profile");
    }

    /// Bytes that are held after each tenth of so many rounds of a session, which writes its
    /// profile, and estimates anew all the time.
    fn held(rounds: u64, path: &Path) -> Vec<isize> {
        let mut random = fastrand::Rng::with_seed(1);
        let template = measured(1);
        let before = memory::live_here();
        let mut writer = Writer::create(path).unwrap();
        let mut ongoing = Ongoing::new(template.header.clone());
        let mut held = Vec::new();
        let mut push = |ongoing: &mut Ongoing, record: Record| {
            writer.write(&record);
            ongoing.push(record);
        };
        push(&mut ongoing, Record::Header(template.header.clone()));
        for record in
            records(&template).into_iter().filter(|it| !matches!(it, Record::Experiment(_)))
        {
            push(&mut ongoing, record);
        }
        for round in 0..rounds {
            for (i, one) in template.experiments[1..].iter().enumerate() {
                let mut one = one.clone();
                let count = 900 + random.u64(..200);
                let latency = (0..100).map(|i| (1_000 + i, 1 + random.u64(..3))).collect();
                one.points = vec![PointCount { point: 1, count, latency }];
                // Every other round something goes wrong.
                if round % 2 == 1 && i % 3 == 0 {
                    one.discarded = Some("the machine stole 9 % of the time".into());
                    let text = format!("an experiment was ended early in round {round}");
                    push(&mut ongoing, Record::Note(NoteRecord { at_ns: round, text }));
                }
                push(&mut ongoing, Record::Experiment(one));
            }
            if (round + 1) % (rounds / 10) == 0 {
                drop((ongoing.ranking(), ongoing.analysis()));
                held.push(memory::live_here() - before);
            }
        }
        held
    }

    #[test]
    fn a_session_of_days_needs_no_more_memory_than_one_of_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("days.jsonl");
        // From the first tenth on all is full: observations and notes.
        let rounds = 10 * 2 * MOST as u64;
        let held = held(rounds, &path);
        let rows = fs::read_to_string(&path).unwrap();
        let rows = rows.lines().filter(|line| line.contains(r#""record":"experiment""#)).count();
        assert_eq!(rows as u64, 12 * rounds, "the profile has all of them");
        let most = held.iter().max().unwrap();
        // The rounds in the notes have more digits.
        assert!(*most < held[0] + 1_000, "{held:?}");
        assert!(*most < 120_000, "{held:?}");
    }
}
