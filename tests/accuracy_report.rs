//! The figures of `benches/accuracy`: a bench has no tests of its own.

#[expect(dead_code, reason = "rows are made by the bench")]
#[path = "../benches/accuracy/report.rs"]
mod report;

use andweorc_profile::TargetKind;
use report::{Change, Pair, Report, Row, Scheduling, Totals};

fn change(pct: f64, half: f64) -> Change {
    Change { pct, low: pct - half, high: pct + half, n: 3 }
}

fn row(predicted: Change, truth: Change) -> Row {
    Row {
        target: "part".into(),
        kind: TargetKind::Span,
        speedup: 0.5,
        delayed: 0.2,
        overhead: 0.0,
        throughput: Pair { predicted, truth },
        p50: None,
        p99: None,
    }
}

fn report(rows: Vec<Row>, settle_s: Option<f64>) -> Report {
    let program = "program".into();
    let missing = Vec::new();
    Report {
        program,
        rows,
        missing,
        rate: 1.0,
        busy: 0.5,
        scheduling: Scheduling::RealTime,
        turns: 3,
        repeated: 2,
        settle_s,
        seconds: 1.0,
    }
}

#[test]
fn the_truths_own_interval_counts_for_coverage() {
    // Off by 4: outside of +-3, inside of the root of 3 * 3 + 3 * 3.
    let both = Pair { predicted: change(10.0, 3.0), truth: change(14.0, 3.0) };
    assert!(both.is_covered() && !both.is_covered_strictly());
    let exact = Pair { predicted: change(10.0, 3.0), truth: change(14.0, 0.0) };
    assert!(!exact.is_covered());
    // It is the side towards the other that counts.
    let skewed = Change { pct: 10.0, low: 9.9, high: 15.0, n: 3 };
    assert!(Pair { predicted: skewed, truth: change(14.0, 0.1) }.is_covered());
    assert!(!Pair { predicted: skewed, truth: change(6.0, 0.1) }.is_covered());
}

#[test]
fn latencies_compare_what_is_left() {
    // 50 % are predicted to be left where 40 % are: a quarter too much.
    let pair = Pair { predicted: change(-50.0, 1.0), truth: change(-60.0, 1.0) };
    assert!((pair.relative_error() - 25.0).abs() < 1e-9);
}

#[test]
fn totals_are_over_all_cases() {
    let first = report(
        vec![row(change(10.0, 1.0), change(12.0, 1.0)), row(change(3.0, 1.0), change(0.5, 0.1))],
        Some(2.0),
    );
    let second = report(vec![row(change(-1.0, 5.0), change(-2.5, 1.0))], Some(7.0));
    let totals = Totals::of(&[first, second]);
    assert_eq!((totals.programs, totals.cases, totals.repeated), (2, 3, 4));
    assert!((totals.mean - 2.0).abs() < 1e-9);
    assert!((totals.worst - 2.5).abs() < 1e-9);
    assert!((totals.null_worst - 2.5).abs() < 1e-9, "only the truth of 0.5 is none");
    assert!((totals.coverage - 1.0 / 3.0).abs() < 1e-9);
    assert_eq!(totals.settle_s, 7.0);
    assert_eq!(totals.p50.cases, 0);
    let never = report(vec![row(change(0.0, 1.0), change(0.0, 1.0))], None);
    assert_eq!(Totals::of(&[never]).settle_s, f64::INFINITY);
}
