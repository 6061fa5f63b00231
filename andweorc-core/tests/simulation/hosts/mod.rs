//! Services on several hosts that hold an experiment together: each host has a ledger of its own,
//! and messages carry what their sender had taken.

mod catalogue;
mod message;
mod world;

pub(crate) use message::{Mail, Post, Remote};

use crate::measure::{Comparison, Errors, in_parallel};
use crate::rules::{Messages, Rules, SHIPPED};
use crate::tables::{errors, print_rows};
use crate::{percent, row};

/// In percent.
const SPEEDUPS: [u32; 2] = [25, 50];

/// Other ways in which hosts could learn of each other's delays.
const ABLATIONS: [Rules; 4] = [
    Rules { name: "nothing carried", messages: Messages::Nothing, ..SHIPPED },
    Rules { name: "carried on requests only", messages: Messages::OnRequests, ..SHIPPED },
    Rules { name: "told to all each ms, nothing carried", messages: Messages::Told, ..SHIPPED },
    Rules { name: "carried, and told to all", messages: Messages::CarriedAndTold, ..SHIPPED },
];

fn print_cases(name: &str, all: &[Vec<Comparison>]) {
    for Comparison { case, truth, predicted, .. } in &all[0] {
        let others = all[1..].iter().flatten().filter(|other| other.case == *case);
        let others: String = others.map(|other| format!(" {:>6.1}", other.predicted)).collect();
        let case = format!("{} {}", case.target, case.speedup);
        println!("{name:<36} {case:<22} true {truth:>6.1} {predicted:>6.1}{others}");
    }
}

#[test]
fn messages_that_carry_delay_predict_several_hosts() {
    let systems = catalogue::catalogue();
    let all = in_parallel(&systems, |system| {
        let few = |speedup| speedup == percent(SPEEDUPS[1]);
        world::compare(system, SHIPPED, &ABLATIONS, &SPEEDUPS.map(percent), few).unwrap()
    });
    for (system, comparisons) in systems.iter().zip(&all) {
        print_cases(system.name, comparisons);
    }
    let few = |comparison: &&Comparison| comparison.case.speedup == percent(SPEEDUPS[1]);
    let fair = errors(all.iter().flat_map(|by| by[0].iter().filter(few)));
    let others = ABLATIONS.iter().enumerate();
    let others =
        others.map(|(n, rules)| (rules.name, errors(all.iter().flat_map(|by| &by[n + 1]))));
    let rows: Vec<(&str, Errors)> = [(SHIPPED.name, fair)].into_iter().chain(others).collect();
    print_rows("hosts", &rows);
    let Errors { cases, mean, worst, .. } = errors(all.iter().flat_map(|by| &by[0]));
    println!("\nSIMULATION-HOSTS cases={cases} mean={mean:.2} worst={worst:.2}");
    assert!(mean <= 0.2 && worst <= 3.0);
    for rules in &ABLATIONS[..3] {
        let ablated = row(&rows, rules.name);
        assert!(
            ablated.mean >= 3.0 * fair.mean && ablated.worst > 10.0,
            "{} is hardly worse: {ablated:?} against {fair:?}",
            rules.name
        );
    }
    let told = row(&rows, ABLATIONS[3].name);
    // Who is told by other ways too predicts hardly better: what is causally connected is enough.
    assert!(fair.mean - told.mean <= 0.12, "messages are not enough: {told:?} against {fair:?}");
}
