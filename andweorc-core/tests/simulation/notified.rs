//! Workers that sleep, and that another one gets going: until when they take their delay.

use crate::measure::{Comparison, Truth, in_parallel};
use crate::program::*;
use crate::rules::{Notified, Rules, SHIPPED};
use crate::{errors, percent};

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

fn compare(program: &Program) -> Vec<Vec<Comparison>> {
    let truth = Truth::of(program, &SPEEDUPS.map(percent), SHIPPED).unwrap();
    RULES.iter().map(|rules| truth.compare(*rules, |_| true).unwrap()).collect()
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
    let compared = in_parallel(&programs, compare);
    for (program, by_rules) in programs.iter().zip(&compared) {
        println!("{}", program.name);
        for (n, Comparison { case, truth, .. }) in by_rules[0].iter().enumerate() {
            let what = format!("{} {}", case.target, case.speedup);
            print!("    {what:<18} {truth:>6.2}:");
            by_rules.iter().for_each(|all| print!(" {:>6.2}", all[n].predicted));
            println!();
        }
    }
    println!(
        "{:<44} {:>6} {:>6} {:>6}",
        "rules, workers that are notified", "mean", "p95", "worst"
    );
    let all = [0, 1, 2, 3].map(|n| errors(compared.iter().flat_map(|by_rules| &by_rules[n])));
    for (rules, errors) in RULES.iter().zip(&all) {
        println!(
            "{:<44} {:>6.2} {:>6.2} {:>6.2}",
            rules.name, errors.mean, errors.p95, errors.worst
        );
    }
    let [shipped, later, known, running] = all;
    assert!(known.worst < 0.5 && shipped.worst < 0.5, "{known:?} {shipped:?}");
    assert!(later.worst > 5.0 && running.worst > 10.0, "{later:?} {running:?}");
}
