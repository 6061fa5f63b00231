//! Threads that come back late from their pauses: what they are late by is credit, and who has
//! waited for them has it too.

use crate::percent;
use crate::program::*;
use crate::rules::{Pay, Rules, SHIPPED};
use crate::tables::{compare, errors_by, print_cases, print_errors};

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

/// A thread that comes back late from a pause has credit. If one that waited for it goes on without
/// that credit, it pays once more for what the first came late by.
#[test]
fn credit_of_a_late_pause_passes_to_threads_that_waited() {
    let programs =
        [offload(2), offload(4)].map(|program| program.late_pauses(30).units(600).seeds(4));
    let compared = compare(&programs, &SPEEDUPS.map(percent), &RULES);
    print_cases(&programs, &compared);
    let all = print_errors("rules, late pauses", &RULES, |n| errors_by(&compared, n));
    // What is left is who was notified by whom, which is a guess.
    assert!(all[0].mean < 1.8 && all[0].worst < 3.5, "credit that passes is lost");
    assert!(all[1].mean > 2.0 * all[0].mean, "nothing is to be seen of what passes");
}
