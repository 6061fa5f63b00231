//! The proof by simulation that the ledger predicts: a discrete-event simulator of an async runtime that drives the ledger that ships.
//!
//! A *prediction* is a simulated program with a target that the ledger makes faster virtually; the *truth* is the same program with that target's
//! costs really smaller. See docs/simulation.md.

mod catalogue;
mod engine;
mod measure;
mod poll;
mod program;
mod rules;
mod shared;
mod task;

use andweorc_core::time::Speedup;
use measure::{Comparison, Errors, Truth, in_parallel};
use program::Program;
use rules::{ABLATIONS, PAYMENTS, SHIPPED};
use std::time::Instant;

fn speedups() -> Vec<Speedup> {
    [10, 30, 50, 70, 90].iter().map(|percent| Speedup::from_ppm(percent * 10_000)).collect()
}

#[test]
fn predictions_match_the_truth_and_every_rule_is_needed() {
    let programs = catalogue::catalogue();
    let speedups = speedups();
    let all = in_parallel(&programs, |program: &Program| {
        let start = Instant::now();
        let truth = Truth::of(program, &speedups, SHIPPED).unwrap();
        let shipped = truth.compare(SHIPPED).unwrap();
        let one = start.elapsed();
        let others: Vec<Vec<Comparison>> =
            PAYMENTS.iter().chain(&ABLATIONS).map(|&rules| truth.compare(rules).unwrap()).collect();
        (shipped, others, one)
    });
    for (program, (shipped, _, took)) in programs.iter().zip(&all) {
        let errors = Errors::of(shipped.iter().map(Comparison::error));
        let latency = shipped.iter().filter_map(|c| c.latency);
        let mean = Errors::of(latency.clone().map(|(mean, _)| mean)).worst;
        let p99 = Errors::of(latency.map(|(_, p99)| p99)).worst;
        println!(
            "{:<32} mean {:6.2} worst {:6.2}  latency {mean:5.2} {p99:5.2} {took:?}",
            program.name, errors.mean, errors.worst
        );
        for c in shipped.iter().filter(|c| c.error() > 0.5) {
            println!(
                "    {:?} {} pred {:.2} truth {:.2}",
                c.case.target, c.case.speedup, c.predicted, c.truth
            );
        }
    }
    let shipped = Errors::of(all.iter().flat_map(|(shipped, ..)| shipped).map(Comparison::error));
    println!("{} {shipped:?}", SHIPPED.name);
    for (i, rules) in PAYMENTS.iter().chain(&ABLATIONS).enumerate().take(all[0].1.len()) {
        let errors =
            Errors::of(all.iter().flat_map(|(_, others, _)| &others[i]).map(Comparison::error));
        println!(
            "{:<44} mean {:7.2} p95 {:7.2} worst {:7.2}",
            rules.name, errors.mean, errors.p95, errors.worst
        );
    }
    println!(
        "SIMULATION programs={} cases={} mean={:.2} p95={:.2} worst={:.2}",
        programs.len(),
        shipped.cases,
        shipped.mean,
        shipped.p95,
        shipped.worst
    );
}

#[test]
fn debug_divergence() {
    let Some(name) = std::env::var_os("PROGRAM") else { return };
    let n: usize = std::env::var("TARGET").unwrap().parse().unwrap();
    let percent: u32 = std::env::var("SPEEDUP").unwrap().parse().unwrap();
    let programs = catalogue::catalogue();
    let program = programs.iter().find(|p| *p.name == *name.to_str().unwrap()).unwrap();
    let change = Some((program.targets[n], Speedup::from_ppm(percent * 10_000)));
    for (v, r) in [(change, None), (None, change)] {
        println!("RUN");
        engine::simulate(&engine::Setup {
            program,
            rules: SHIPPED,
            virtually: v,
            really: r,
            seed: 0,
        })
        .unwrap();
    }
}
