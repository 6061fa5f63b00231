//! Made-up profiles of a service, and files of them.

use andweorc_profile::{
    EndRecord, ExperimentRecord, Header, PointCount, PointKind, PointRecord, Record, TargetKind,
    TargetRecord,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Properties of a version of the service.
#[derive(Clone, Copy)]
pub(crate) struct Service {
    /// Requests per second.
    pub(crate) rate: f64,
    /// Its p99 in ms.
    pub(crate) p99: f64,
    /// Name, file and line of each target, and what it brings at 50 %, in %.
    pub(crate) targets: &'static [(&'static str, &'static str, u32, f64)],
    /// Whether its load comes at its own pace, where it is probed.
    pub(crate) open: Option<bool>,
}

/// The service before the change.
pub(crate) const BEFORE: Service = Service {
    rate: 1_350.0,
    p99: 12.0,
    targets: &[
        ("stock", "src/shop.rs", 12, 20.0),
        ("audit", "src/audit.rs", 40, 2.0),
        ("legacy", "src/legacy.rs", 7, 0.0),
        ("parse", "src/parse.rs", 3, 0.0),
    ],
    open: None,
};

/// The service after the change: audit holds it back, stock was mended, legacy is gone, receipt is
/// new, and parse went to another file.
pub(crate) const AFTER: Service = Service {
    rate: 1_150.0,
    p99: 14.5,
    targets: &[
        ("stock", "/ci/shop/src/shop.rs", 15, 4.0),
        ("audit", "/ci/shop/src/audit.rs", 52, 16.0),
        ("receipt", "/ci/shop/src/receipt.rs", 5, 6.0),
        ("parse", "/ci/shop/src/wire.rs", 3, 0.0),
    ],
    open: None,
};

/// One run. Runs of another `seed` drift by about 1 %; baselines vary by about 2 %.
pub(crate) fn profile(service: &Service, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut noise = move |sd: f64| {
        let mut uniform = || {
            // Marsaglia's xorshift.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        (sd * normal).exp()
    };
    let mut header = Header::new("shop");
    header.host = "here".into();
    header.cores = 2;
    header.andweorc = "0.1.0".into();
    header.tokio = Some("1.52.3".into());
    header.duration_ns = 30_000_000_000;
    header.speedups = vec![0.5];
    header.start_unix_ms = 1_795_248_000_000 + seed * 60_000;
    let point = PointRecord::new(1, PointKind::Latency, "checkout", 0);
    let mut records = vec![Record::Header(header), Record::Point(point)];
    for (id, (name, file, line, _)) in (1..).zip(service.targets) {
        let mut target = TargetRecord::new(id, TargetKind::Span, *name);
        (target.file, target.line) = (Some((*file).into()), Some(*line));
        records.push(Record::Target(target));
    }
    let probe = 99;
    if service.open.is_some() {
        records.push(Record::Target(TargetRecord::new(probe, TargetKind::Probe, "everything")));
    }
    let (rate, p99) = (service.rate * noise(0.01), service.p99 * noise(0.02));
    let mut seq = 0;
    let mut hold = |target: Option<u32>, effect: f64| {
        let speedup = if target.is_some() { 0.5 } else { 0.0 };
        let delay_ns = (speedup * 2e8) as u64;
        let count = (rate * (1.0 + effect / 100.0) * noise(0.02)) as u64;
        let tail = (p99 * 1e6 * noise(0.05)) as u64;
        let latency = vec![(2_000_000, count * 9 / 10), (tail, count - count * 9 / 10)];
        records.push(Record::Experiment(ExperimentRecord {
            seq,
            target,
            speedup,
            start_ns: u64::from(seq) * 1_500_000_000,
            real_ns: 1_000_000_000 + delay_ns,
            delay_ns,
            cpu_ns: None,
            sampled: Vec::new(),
            points: vec![PointCount { point: 1, count, latency }],
            discarded: None,
        }));
        seq += 1;
    };
    hold(None, 0.0);
    if let Some(open) = service.open {
        // Of a program delayed by a half: all that came, which is twice as much in its virtual
        // time, or as much as ever in it.
        hold(Some(probe), if open { 100.0 } else { 0.0 });
        hold(None, 0.0);
    }
    for _ in 0..5 {
        for (id, (_, _, _, effect)) in (1..).zip(service.targets) {
            hold(Some(id), *effect);
            hold(None, 0.0);
        }
    }
    records.push(Record::End(EndRecord {
        reason: "time".into(),
        real_ns: 30_000_000_000,
        experiments: seq,
        discarded: 0,
        lost_samples: 0,
        lost_records: 0,
    }));
    let lines = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n");
    lines.collect()
}

/// The folder `name` in `at`, with so many runs of the service.
pub(crate) fn runs(at: &Path, name: &str, service: &Service, count: u64, seed: u64) -> PathBuf {
    let folder = at.join(name);
    fs::create_dir_all(&folder).unwrap();
    for i in 0..count {
        fs::write(folder.join(format!("{i}.jsonl")), profile(service, seed + i)).unwrap();
    }
    folder
}

/// Folders `before` and `after` with three runs each.
pub(crate) fn before_and_after() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    runs(folder.path(), "before", &BEFORE, 3, 1);
    runs(folder.path(), "after", &AFTER, 3, 101);
    folder
}
