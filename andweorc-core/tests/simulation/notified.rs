//! Workers that sleep, and that another one gets going: until when they take their delay.

use crate::percent;
use crate::program::*;
use crate::rules::{Notified, Rules, SHIPPED};
use crate::tables::{compare, errors_by, print_cases, print_errors};

/// In percent.
const SPEEDUPS: [u32; 3] = [25, 50, 75];

const RULES: [Rules; 4] = [
    SHIPPED,
    Rules { name: "and paid as a poll begins", notified_pays: false, ..SHIPPED },
    Rules { name: "until it was notified", notified: Notified::Known, ..SHIPPED },
    Rules { name: "until it runs, as shipped before", notified: Notified::Running, ..SHIPPED },
];

/// Pieces that are spawned and joined, and merged.
fn spawned(name: Tag, workers: usize) -> Program {
    let mut p = Program::new(name, workers).late_looks();
    let piece = p.kind("piece", &[span("piece", 400.0)]);
    let mut ops = vec![Op::Spawn(piece); 4];
    ops.extend(vec![Op::Join; 4]);
    ops.extend([span("merge", 300.0), Op::Progress]);
    p.tasks("driver", 1, &ops);
    p.targets(&[Target::Span("piece"), Target::Span("merge")])
}

/// A request that hands two parts to others and goes on itself.
fn halves() -> Program {
    let mut p = Program::new("requests of two halves", 2).late_looks();
    let half = p.kind("half", &[span("half", 250.0)]);
    let ops = [
        wait("client", 900.0),
        span("parse", 100.0),
        Op::Spawn(half),
        Op::Spawn(half),
        span("other", 200.0),
        Op::Join,
        Op::Join,
        Op::Progress,
    ];
    p.tasks("root", 1, &ops);
    p.targets(&[Target::Span("half"), Target::Span("other")])
}

/// From when a worker is notified until it runs 30 to 60 us pass, however fast the target is. If it
/// took what D grew by meanwhile it would, in virtual time, have come earlier by that.
#[test]
fn notified_worker_takes_delay_until_its_notification() {
    let programs = [
        spawned("spawn 4 and join, 2 workers", 2),
        spawned("spawn 4 and join, 4 workers", 4),
        halves(),
    ]
    .map(|program| program.units(600).seeds(4));
    let compared = compare(&programs, &SPEEDUPS.map(percent), &RULES);
    print_cases(&programs, &compared);
    let all = print_errors("rules, workers that are notified", &RULES, |n| errors_by(&compared, n));
    let [shipped, later, known, running] = all;
    assert!(known.worst < 0.5 && shipped.worst < 0.5, "{known:?} {shipped:?}");
    assert!(later.worst > 5.0 && running.worst > 10.0, "{later:?} {running:?}");
}
