//! Threads that come back late from their pauses: what they are late by is credit, and who has
//! waited for them has it too.

use crate::measure::{Comparison, Truth, in_parallel};
use crate::program::*;
use crate::rules::{Pay, Rules, SHIPPED};
use crate::{errors, percent};

/// In percent.
const SPEEDUPS: [u32; 3] = [25, 50, 75];

/// Pauses as they are: at the ends of polls, which are short here.
const PASSES: Rules = Rules { name: "shipped rules", pay: Pay::AtPolls, ..SHIPPED };

const RULES: [Rules; 2] =
    [PASSES, Rules { name: "credit stays with its thread", credit_passes: false, ..PASSES }];

/// Requests that leave work to the blocking pool, beside somebody they do not wait for.
fn offload(workers: usize) -> Program {
    let mut p = Program::new("offload beside a busy task", workers).late_looks();
    let hash = p.kind("hash", &[span("hash", 200.0)]);
    let ops = [span("parse", 60.0), Op::SpawnBlocking(hash), Op::Join, Op::Progress];
    p.tasks("handler", 1, &ops);
    p.tasks("busy", 1, &[span("busy", 300.0), wait("disk", 100.0)]);
    p.targets(&[Target::Span("busy"), Target::Span("hash")])
}

fn compare(program: &Program) -> Vec<Vec<Comparison>> {
    let truth = Truth::of(program, &SPEEDUPS.map(percent), SHIPPED).unwrap();
    RULES.iter().map(|rules| truth.compare(*rules, |_| true).unwrap()).collect()
}

/// A thread that comes back late from a pause has credit. If one that waited for it goes on without
/// that credit, it pays once more for what the first came late by.
#[test]
fn credit_of_a_late_pause_passes_to_threads_that_waited() {
    let programs =
        [offload(2), offload(4)].map(|program| program.late_pauses(30).units(600).seeds(4));
    let compared = in_parallel(&programs, compare);
    for (program, by_rules) in programs.iter().zip(&compared) {
        println!("{}, {} workers", program.name, program.workers);
        for (n, Comparison { case, truth, .. }) in by_rules[0].iter().enumerate() {
            let what = format!("{} {}", case.target, case.speedup);
            print!("    {what:<18} {truth:>6.2}:");
            by_rules.iter().for_each(|all| print!(" {:>6.2}", all[n].predicted));
            println!();
        }
    }
    println!("{:<44} {:>6} {:>6} {:>6}", "rules, late pauses", "mean", "p95", "worst");
    let all = [0, 1].map(|n| errors(compared.iter().flat_map(|by_rules| &by_rules[n])));
    for (rules, errors) in RULES.iter().zip(&all) {
        println!(
            "{:<44} {:>6.2} {:>6.2} {:>6.2}",
            rules.name, errors.mean, errors.p95, errors.worst
        );
    }
    // What is left is who was notified by whom, which is a guess.
    assert!(all[0].mean < 1.8 && all[0].worst < 3.5, "credit that passes is lost");
    assert!(all[1].mean > 2.0 * all[0].mean, "nothing is to be seen of what passes");
}
