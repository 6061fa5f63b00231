//! Made-up profiles of three services that were profiled together.

use andweorc_profile::{
    EndRecord, ExperimentRecord, Header, JointRun, PointCount, PointKind, PointRecord, Record,
    TargetKind, TargetRecord, WallRecord, WallStack,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Names of the services, the entry first.
pub(crate) const SERVICES: [&str; 3] = ["gateway", "inventory", "payments"];

/// The target that each service has, and what it brings at 50 %, in %.
const TARGETS: [(&str, f64); 3] = [("render", 4.0), ("lookup", 20.0), ("charge", 0.0)];

/// The profile of the service with this index in a joint run. `lookup` brings `lookup_pct` at 50 %,
/// and runs of another `seed` scatter otherwise.
pub(crate) fn profile(index: usize, run: &str, lookup_pct: f64, seed: u64) -> String {
    let service = SERVICES[index];
    let mut header = Header::new(format!("{service}-server"));
    header.host = "here".into();
    header.cores = 2;
    header.start_unix_ms = 1_795_248_000_000 + seed * 60_000;
    let joint =
        JointRun { run: run.into(), service: service.into(), entry: Some(SERVICES[0].into()) };
    let mut records = vec![
        Record::Header(header),
        Record::Joint(joint),
        Record::Point(PointRecord::new(1, PointKind::Latency, "request", 0)),
        Record::Target(TargetRecord::new(9, TargetKind::Probe, "everything")),
        Record::Target(TargetRecord::new(4, TargetKind::Span, "request")),
    ];
    for (id, (at, (name, _))) in (1..).zip(TARGETS.into_iter().enumerate()) {
        let (kind, name) = match at == index {
            true => (TargetKind::Span, name.to_owned()),
            false => (TargetKind::Remote, format!("{}/{name}", SERVICES[at])),
        };
        records.push(Record::Target(TargetRecord::new(id, kind, name)));
    }
    records.push(Record::Wall(wall(index)));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut number = 0;
    let mut hold = |target: Option<u32>, speedup: f64, gain: f64| {
        let delay_ns = (speedup * 2e8) as u64;
        let noise = 1.0 + 0.004 * (random.f64() - 0.5);
        let count = (10_000.0 * noise * (1.0 + gain / 100.0)) as u64;
        let start_ns = u64::from(number) * 1_500_000_000;
        let mut record = ExperimentRecord::new(number, start_ns, 1_000_000_000 + delay_ns);
        (record.target, record.speedup, record.delay_ns) = (target, speedup, delay_ns);
        record.joint = Some(number);
        let mut point = PointCount::new(1, count);
        point.latency = vec![(2_000_000_u64 * 10_000 / count, count)];
        record.points = vec![point];
        if number == 5 {
            record.discarded = Some("`payments`: steal 7 %".into());
        }
        records.push(Record::Experiment(record));
        number += 1;
    };
    for _ in 0..2 {
        hold(None, 0.0, 0.0);
        hold(Some(9), 0.2, 0.0);
    }
    for _ in 0..6 {
        for (id, (name, gain)) in (1..).zip(TARGETS) {
            hold(None, 0.0, 0.0);
            hold(Some(id), 0.5, if name == "lookup" { lookup_pct } else { gain });
        }
    }
    hold(None, 0.0, 0.0);
    records.push(Record::End(EndRecord::new("time", 30_000_000_000)));
    let lines = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n");
    lines.collect()
}

/// Where the wall time of a service's requests went.
fn wall(index: usize) -> WallRecord {
    let mut request = WallStack { target: Some(4), count: 1_000, ..WallStack::default() };
    let us = [[400, 100, 1_500], [500, 50, 50], [200, 0, 100]][index];
    let [running, queue, outside] = us.map(|us: u64| us * 1_000 * 1_000);
    (request.running_ns, request.queue_ns, request.outside_ns) = (running, queue, outside);
    WallRecord { real_ns: 2_000_000_000, stacks: vec![request], ..WallRecord::default() }
}

/// Writes the profiles of a joint run into a folder, and returns their paths, the entry's first.
pub(crate) fn write(folder: &Path, run: &str, lookup_pct: f64, seed: u64) -> [PathBuf; 3] {
    fs::create_dir_all(folder).unwrap();
    [0, 1, 2].map(|index| {
        let file = folder.join(format!("{run}.{}.jsonl", SERVICES[index]));
        fs::write(&file, profile(index, run, lookup_pct, seed)).unwrap();
        file
    })
}
