//! Estimates of a program with very many span call sites, each of which is two targets and a point.
//! They are made anew after each experiment, in the profiled program, so that they must be cheap.
//! No test has a limit of time: what was quadratic would not end.

use andweorc_profile::estimate::{analyse, analyse_ranking};
use andweorc_profile::{
    ExperimentRecord, Header, PointCount, PointKind, PointRecord, Profile, Record, Run,
    SamplesRecord, TargetKind, TargetRecord, TargetTime,
};
use std::iter;

/// A run in which so many call sites were seen, with as many experiments as fit into 30 s.
fn run(sites: u32) -> Run {
    let mut run = Run::new(Header::new("many"));
    let mut times = Vec::new();
    for id in 0..sites {
        let name = format!("site {id}");
        let (file, line) = (Some("src/lib.rs".to_owned()), Some(id));
        for (id, kind) in [(2 * id + 1, TargetKind::Span), (2 * id + 2, TargetKind::Wait)] {
            let mut target = TargetRecord::new(id, kind, name.clone());
            (target.file, target.line) = (file.clone(), line);
            run.push(Record::Target(target));
            times.push(TargetTime { target: id, busy_ns: 1000, count: 1, waits: None });
        }
        let mut point = PointRecord::new(id + 1, PointKind::Latency, name, id);
        (point.file, point.line) = (file, line);
        run.push(Record::Point(point));
    }
    let samples = SamplesRecord {
        real_ns: 1_000_000_000,
        cpu_ns: 1_000_000_000,
        others_ns: None,
        source: "timed".to_owned(),
        targets: times,
        lost: 0,
    };
    run.push(Record::Samples(samples));
    for seq in 0..100 {
        run.push(Record::Experiment(ExperimentRecord {
            seq,
            target: (seq % 2 == 1).then_some(1 + 2 * (seq % 8)),
            speedup: if seq % 2 == 1 { 0.25 } else { 0.0 },
            start_ns: u64::from(seq) * 300_000_000,
            real_ns: 200_000_000,
            delay_ns: 0,
            cpu_ns: None,
            sampled: Vec::new(),
            points: vec![PointCount { point: 1, count: 1000 + u64::from(seq), latency: vec![] }],
            discarded: None,
        }));
    }
    run
}

/// So many call sites that whatever looks for each target in the list of all, or goes through all
/// rows for each, takes many minutes.
const SITES: u32 = 50_000;

#[test]
fn estimates_take_time_in_proportion_to_the_rows() {
    let run = [run(SITES)];
    for (analysis, waits) in [(analyse_ranking(&run), 0), (analyse(&run), SITES as usize)] {
        assert_eq!(analysis.experiments, 50);
        assert_eq!(analysis.waits.len(), waits);
        let names: Vec<_> = analysis.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        let share = analysis.targets[0].share.unwrap();
        assert!((share - 1e-6).abs() < 1e-12, "{share}");
    }
}

#[test]
fn profiles_are_read_in_time_in_proportion_to_their_lines() {
    let run = run(SITES);
    let records = (run.targets.iter().cloned().map(Record::Target))
        .chain(run.points.iter().cloned().map(Record::Point))
        .chain(run.samples.iter().cloned().map(Record::Samples))
        .chain(run.experiments.iter().cloned().map(Record::Experiment));
    let mut lines = Vec::new();
    for record in iter::once(Record::Header(run.header.clone())).chain(records) {
        serde_json::to_writer(&mut lines, &record).unwrap();
        lines.push(b'\n');
    }
    assert_eq!(Profile::parse(&lines).unwrap().runs, [run]);
}
