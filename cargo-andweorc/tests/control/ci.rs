//! `cargo andweorc ci`.

use crate::common::{command, stderr, stdout};
use crate::made::{BEFORE, Service, before_and_after, runs};
use insta::assert_snapshot;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

fn ci(folder: &Path, arguments: &[&str]) -> Output {
    command().current_dir(folder).arg("ci").args(arguments).output().unwrap()
}

/// Exit code and last line.
fn verdict(output: &Output) -> (Option<i32>, String) {
    let text = stdout(output);
    (output.status.code(), text.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn a_regression_is_exit_code_3() {
    let output = ci(before_and_after().path(), &["before", "after"]);
    assert_eq!(verdict(&output), (Some(3), "A regression.".to_owned()), "{}", stderr(&output));
}

#[test]
fn an_improvement_and_no_change_are_exit_code_0() {
    let folder = before_and_after();
    let output = ci(folder.path(), &["after", "before"]);
    assert_eq!(verdict(&output), (Some(0), "No regression.".to_owned()));
    runs(folder.path(), "a", &BEFORE, 8, 1);
    runs(folder.path(), "b", &BEFORE, 8, 50);
    assert_eq!(ci(folder.path(), &["a", "b"]).status.code(), Some(0));
}

#[test]
fn a_change_must_be_large_enough_and_sure() {
    let folder = tempfile::tempdir().unwrap();
    let slower = Service { rate: 0.9 * BEFORE.rate, ..BEFORE };
    runs(folder.path(), "before", &BEFORE, 5, 1);
    runs(folder.path(), "after", &slower, 5, 101);
    let code =
        |limit| ci(folder.path(), &["before", "after", "--max-regression", limit]).status.code();
    assert_eq!(code("5%"), Some(3));
    assert_eq!(code("20%"), Some(0), "10 % is within the limit");
    assert_eq!(code("11%"), Some(4), "neither more than 11 % nor less is sure");
}

#[test]
fn the_p99_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let slower = Service { p99: 2.0 * BEFORE.p99, ..BEFORE };
    runs(folder.path(), "before", &BEFORE, 8, 1);
    runs(folder.path(), "after", &slower, 8, 101);
    assert_eq!(ci(folder.path(), &["before", "after"]).status.code(), Some(3));
    let without = ci(folder.path(), &["before", "after", "--max-p99-regression", "off"]);
    assert_eq!(without.status.code(), Some(0));
    assert!(!stdout(&without).contains("p99"), "{}", stdout(&without));
}

#[test]
fn a_loss_that_is_ruled_out_needs_no_certainty_about_a_gain() {
    let folder = tempfile::tempdir().unwrap();
    let faster = Service { rate: 1.04 * BEFORE.rate, ..BEFORE };
    runs(folder.path(), "before", &BEFORE, 8, 1);
    runs(folder.path(), "after", &faster, 8, 101);
    let output = ci(folder.path(), &["before", "after"]);
    assert!(stdout(&output).contains("inconclusive  checkout throughput"), "{}", stdout(&output));
    let (code, last) = verdict(&output);
    assert_eq!((code, last.starts_with("No regression: ")), (Some(0), true), "{last}");
    let other_way = ci(folder.path(), &["after", "before"]);
    assert_eq!(other_way.status.code(), Some(4), "{}", stdout(&other_way));
}

#[test]
fn a_throughput_that_is_the_loads_is_no_proof() {
    let folder = tempfile::tempdir().unwrap();
    let open = Service { open: Some(true), ..BEFORE };
    runs(folder.path(), "a", &open, 8, 1);
    runs(folder.path(), "b", &open, 8, 50);
    let both = ci(folder.path(), &["a", "b"]);
    assert_eq!(both.status.code(), Some(0), "the p99 shows it: {}", stdout(&both));
    let without = ci(folder.path(), &["a", "b", "--max-p99-regression", "off"]);
    let (code, last) = verdict(&without);
    assert_eq!(code, Some(4));
    assert!(last.contains("the throughput is bounded by the load"), "{last}");
    let comment = stdout(&ci(folder.path(), &["a", "b", "--markdown", "-"]));
    assert!(comment.contains("kept up with a load that comes at its own pace"), "{comment}");
}

#[test]
fn the_comment_has_a_marker_and_the_json_the_verdict() {
    let folder = before_and_after();
    let at = folder.path();
    let output = ci(at, &["before", "after", "--markdown", "comment.md", "--json", "result.json"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("regressed"), "the text is printed too");
    assert_snapshot!(fs::read_to_string(at.join("comment.md")).unwrap());
    let result = fs::read_to_string(at.join("result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!((&result["result"], &result["exit_code"]), (&"regression".into(), &3.into()));
    assert_eq!(result["outcomes"][0]["state"]["is"], "regressed");
    let piped = ci(at, &["before", "after", "--json", "-"]);
    assert_eq!(serde_json::from_slice::<Value>(&piped.stdout).unwrap(), result);
}

#[test]
fn ci_error_exits_with_code_2() {
    let folder = before_and_after();
    for (arguments, expected) in [
        (&[][..], "no profile is named, and no cargo project is here"),
        (&["before"], "name two profiles, or one and `--baseline NAME`"),
        (&["before", "after", "--baseline", "x"], "with `--baseline` name one profile"),
        (&["before", "after", "--max-regression", "0%"], "not a percentage"),
        (&["before", "nowhere.jsonl"], "nowhere.jsonl: can't be read"),
        (&["before", "after", "--json", "no/such/result.json"], "result.json can't be written"),
    ] {
        let output = ci(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn runs_that_are_too_few_to_pass_are_told_before_the_verdict() {
    let folder = before_and_after();
    let at = folder.path();
    let said = |arguments: &[&str]| stderr(&ci(at, arguments));
    let one = said(&["before/0.jsonl", "before/1.jsonl"]);
    assert!(one.contains("`ci` can't pass; it takes 3 runs a side or more"), "{one}");
    assert_eq!(said(&["before", "after"]), "");
    let strict = said(&["before", "after", "--max-regression", "1%"]);
    assert!(strict.contains("with 3 and 3 runs of A and B"), "{strict}");
    let generous = ["before/0.jsonl", "before/1.jsonl", "--max-regression", "20%"];
    assert_eq!(said(&[&generous[..], &["--max-p99-regression", "off"]].concat()), "");
}

#[test]
fn ci_run_options_require_compare() {
    let folder = before_and_after();
    for arguments in [&["--duration", "3s"][..], &["--locked"], &["--load", "x"], &["--runs", "2"]]
    {
        let output = ci(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("--compare <REV>"), "{}", stderr(&output));
    }
    let output = ci(folder.path(), &["before", "after", "--duration", "3s"]);
    assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
}
