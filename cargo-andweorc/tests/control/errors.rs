//! Messages of the commands about files that they can't use.

use crate::common::{command, stderr};
use crate::made::{BEFORE, profile};
use std::fs;
use std::net::TcpListener;

/// The message of `diff` on a file of this content.
fn refusal(content: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.jsonl"), profile(&BEFORE, 1)).unwrap();
    fs::write(folder.path().join("bad.jsonl"), content).unwrap();
    let arguments = ["diff", "good.jsonl", "bad.jsonl"];
    let output = command().current_dir(folder.path()).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let message = stderr(&output);
    assert!(message.starts_with("error: ") && message.contains("bad.jsonl"), "{message}");
    message
}

#[test]
fn files_that_are_no_profiles_are_refused_with_the_reason() {
    let good = profile(&BEFORE, 1);
    assert!(refusal("").contains("is empty"));
    assert!(refusal("PNG or whatever\n").contains("is not a profile"));
    assert!(refusal(&good[..100]).contains("ends inside its header"));
    assert!(refusal(&good.replace(r#""schema":1"#, r#""schema":9"#)).contains("schema version 9"));
    let damaged = good.replacen(r#""kind":"span""#, r#""kind":7"#, 1);
    assert!(refusal(&damaged).contains("is damaged in line 3"));
}

#[test]
fn a_truncated_profile_is_compared_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let whole = profile(&BEFORE, 1);
    fs::write(folder.path().join("whole.jsonl"), &whole).unwrap();
    fs::write(folder.path().join("torn.jsonl"), &whole[..whole.len() / 2]).unwrap();
    let arguments = ["diff", "whole.jsonl", "torn.jsonl"];
    let output = command().current_dir(folder.path()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn versions_without_a_common_point_or_a_baseline_are_not_compared() {
    let good = profile(&BEFORE, 1);
    let message = refusal(&good.replace(r#""name":"checkout""#, r#""name":"order""#));
    assert!(message.contains("points of A: checkout; of B: order"), "{message}");
    let header = good.lines().take(6).map(|line| format!("{line}\n")).collect::<String>();
    assert!(refusal(&header).contains("no baseline in which the common point was hit"));
}

#[test]
fn an_empty_folder_and_a_name_that_can_not_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    let say = |arguments: &[&str]| {
        let output = command().current_dir(folder.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        stderr(&output)
    };
    assert!(say(&["diff", "runs", "runs"]).contains("the folder has no profile"));
    assert!(
        say(&["diff", "--baseline", "../x", "runs"]).contains("can't be the name of a baseline")
    );
    assert!(say(&["run", "--save-baseline", "a/b"]).contains("not the name of a baseline"));
}

#[test]
fn messages_word_for_word() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let good = profile(&BEFORE, 1);
    fs::write(at.join("good.jsonl"), &good).unwrap();
    fs::write(at.join("later.jsonl"), good.replace(r#""schema":1"#, r#""schema":9"#)).unwrap();
    fs::write(at.join("foreign.jsonl"), "<html>\n").unwrap();
    fs::write(at.join("empty.jsonl"), "").unwrap();
    fs::create_dir(at.join("none")).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut said = String::new();
    for arguments in [
        &["run"][..],
        &["report"],
        &["report", "nowhere.jsonl"],
        &["report", "later.jsonl"],
        &["report", "foreign.jsonl"],
        &["report", "empty.jsonl"],
        &["report", "none"],
        &["report", "-o", "good.jsonl", "good.jsonl"],
        &["report", "-o", "nowhere/report.txt", "good.jsonl"],
        &["view", "--port", &port, "good.jsonl"],
        &["diff", "good.jsonl"],
        &["diff", "good.jsonl", "main"],
        &["diff", "--baseline", "main", "a", "b"],
        &["ci", "good.jsonl", "later.jsonl"],
        &["merge", "good.jsonl", "good.jsonl"],
        &["merge", "good.jsonl/all.jsonl", "good.jsonl"],
        &["man", "--out", "good.jsonl"],
    ] {
        let output = command().current_dir(at).args(arguments).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        let message =
            stderr(&output).replace(&*at.to_string_lossy(), "HERE").replace(&port, "PORT");
        said += &format!("$ {}\n{message}", arguments.join(" ").replace(&port, "PORT"));
    }
    insta::assert_snapshot!(said);
}
