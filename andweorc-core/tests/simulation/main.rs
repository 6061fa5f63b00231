//! The proof by simulation that the ledger predicts: a discrete-event simulator of an async runtime
//! that drives the ledger that ships.
//!
//! A *prediction* is a simulated program with a target that the ledger makes faster virtually; the
//! *truth* is the same program with that target's costs really smaller. See
//! docs/book/src/results/simulation.md.

mod blocked;
mod catalogue;
mod clock;
mod clocked;
mod driver;
mod engine;
mod hosts;
mod joined;
mod late;
mod limits;
mod measure;
mod notified;
mod part;
mod pauses;
mod plain;
mod poll;
mod program;
mod random;
mod rules;
mod schedule;
mod shared;
mod tables;
mod task;

use andweorc_core::time::Speedup;
use measure::{Comparison, Errors, Truth, in_parallel};
use program::Program;
use rules::{
    ABLATIONS, AFTER_ANOTHER, EVERYTHING_DEFERRED, LATE_ABLATIONS, PAYMENTS, Rules, SHIPPED,
};
use tables::{errors, print_rows};

/// In percent, of every case.
const SPEEDUPS: [u32; 5] = [10, 30, 50, 70, 90];

/// In percent, of the variants and ablations.
const FEWER: [u32; 2] = [30, 70];

fn percent(percent: u32) -> Speedup {
    Speedup::from_ppm(percent * 10_000)
}

/// A program with its cases by the rules that ship, and by the others.
struct Results {
    shipped: Vec<Comparison>,
    others: Vec<Vec<Comparison>>,
}

fn others() -> impl Iterator<Item = Rules> {
    [EVERYTHING_DEFERRED, AFTER_ANOTHER].into_iter().chain(PAYMENTS).chain(ABLATIONS)
}

/// The rules that a program is predicted by beside those that ship.
fn others_of(program: &Program) -> Vec<Rules> {
    if program.latencies.is_some() { LATE_ABLATIONS.into() } else { others().collect() }
}

fn results_of(program: &Program) -> Results {
    let truth = Truth::of(program, &SPEEDUPS.map(percent), SHIPPED).unwrap();
    let few = |speedup| FEWER.map(percent).contains(&speedup);
    let by = |rules: &Rules| truth.compare(*rules, few).unwrap();
    Results {
        shipped: truth.compare(SHIPPED, |_| true).unwrap(),
        others: others_of(program).iter().map(by).collect(),
    }
}

fn print_programs(programs: &[Program], all: &[Results]) {
    println!(
        "{:<36} {:>6} {:>6} {:>6} {:>8} {:>7}",
        "program", "mean", "p95", "worst", "latency", "p99"
    );
    for (program, results) in programs.iter().zip(all) {
        let Errors { mean, p95, worst, .. } = errors(&results.shipped);
        print!("{:<36} {mean:>6.2} {p95:>6.2} {worst:>6.2}", program.name);
        match worst_latency(&results.shipped) {
            Some((mean, p99)) => println!(" {mean:>6.2} % {p99:>5.2} %"),
            None => println!(),
        }
    }
}

/// The worst errors of mean and p99 latency, in percent.
fn worst_latency(comparisons: &[Comparison]) -> Option<(f64, f64)> {
    let all = comparisons.iter().filter_map(|comparison| comparison.latency);
    all.reduce(|(mean, p99), (other_mean, other_p99)| (mean.max(other_mean), p99.max(other_p99)))
}

/// A row for the rules that ship and for each of the others.
fn rows(all: &[Results], others: impl IntoIterator<Item = Rules>) -> Vec<(&'static str, Errors)> {
    let few = |comparison: &&Comparison| FEWER.map(percent).contains(&comparison.case.speedup);
    let fair = errors(all.iter().flat_map(|results| results.shipped.iter().filter(few)));
    let rest = others
        .into_iter()
        .enumerate()
        .map(|(i, rules)| (rules.name, errors(all.iter().flat_map(|results| &results.others[i]))));
    std::iter::once((SHIPPED.name, fair)).chain(rest).collect()
}

fn row(rows: &[(&str, Errors)], name: &str) -> Errors {
    rows.iter().find(|row| row.0 == name).expect("it has a row").1
}

#[test]
fn predictions_match_the_truth_and_every_rule_is_needed() {
    let at_once = catalogue::catalogue();
    let programs = [at_once.clone(), late::catalogue()].concat();
    let all = in_parallel(&programs, results_of);
    print_programs(&programs, &all);
    let (notice_at_once, notice_late) = all.split_at(at_once.len());
    let at_once = rows(notice_at_once, others());
    print_rows("rules", &at_once);
    let late = rows(notice_late, LATE_ABLATIONS);
    print_rows("rules, programs with late looks", &late);

    let Errors { cases, mean, p95, worst } =
        errors(all.iter().flat_map(|results| &results.shipped));
    println!(
        "\nSIMULATION programs={} cases={cases} mean={mean:.2} p95={p95:.2} worst={worst:.2}",
        programs.len()
    );
    assert!(programs.len() >= 30);
    assert!(mean <= 0.3 && p95 <= 1.0 && worst <= 3.0);
    for (program, results) in programs.iter().zip(&all) {
        if let Some((mean, p99)) = worst_latency(&results.shipped) {
            assert!(mean <= 3.0 && p99 <= 3.0, "latency of {}", program.name);
        }
    }
    let exact = row(&at_once, EVERYTHING_DEFERRED.name);
    assert!(exact.mean <= 0.02 && exact.worst <= 0.5, "the ledger's rules are exact: {exact:?}");
    let later = row(&at_once, AFTER_ANOTHER.name);
    assert!(later.mean <= 0.3 && later.p95 <= 1.0 && later.worst <= 3.0, "{later:?}");
    let fair = at_once[0].1;
    for rules in ABLATIONS {
        let ablated = row(&at_once, rules.name);
        assert!(
            ablated.mean >= 1.0 && ablated.mean >= 3.0 * fair.mean && ablated.worst > 10.0,
            "{} is hardly worse: {ablated:?} against {fair:?}",
            rules.name
        );
    }
    let fair = late[0].1;
    for rules in LATE_ABLATIONS {
        let ablated = row(&late, rules.name);
        assert!(
            ablated.mean >= 2.0 * fair.mean && ablated.worst > 3.0,
            "{} is hardly worse: {ablated:?} against {fair:?}",
            rules.name
        );
    }
}
