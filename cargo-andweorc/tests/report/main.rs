//! `cargo andweorc report`, and `view`.

mod alike;
mod brief;
mod browser;
#[path = "../common/mod.rs"]
mod common;
mod coz;
mod cpu;
mod dhat;
mod difference;
mod events;
mod exports;
mod formats;
mod html;
#[path = "../common/services.rs"]
mod services;
mod together;
mod view;

use common::{command, profile, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::process::Output;

/// The report of a file of this content.
fn report(content: &str, options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    fs::write(&file, content).unwrap();
    command().arg("report").args(options).arg(&file).output().unwrap()
}

/// The message with which such a file is refused.
fn refusal(content: &str) -> String {
    let output = report(content, &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    let message = stderr(&output);
    assert!(message.starts_with("error: ") && message.contains("run.jsonl"), "{message}");
    message
}

#[test]
fn text_names_what_matters_and_what_does_not() {
    let output = report(&profile(), &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("If stock (20 % of CPU) took "), "{text}");
    let (faster, rest) = text.split_once("LEAVE ALONE").unwrap();
    assert!(faster.contains("stock shop.rs:12") && !faster.contains("audit"), "{text}");
    assert!(rest.contains("task:audit shop.rs:40  70 %"), "{text}");
}

#[test]
fn json_has_the_keys_of_the_contract() {
    let output = report(&profile(), &["--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["points"][0]["name"], "checkout");
    let target = &report["targets"][0];
    assert_eq!((&target["kind"], &target["name"]), (&"span".into(), &"stock".into()));
    for key in ["point", "metric", "speedup", "effect_pct", "ci_low", "ci_high", "n"] {
        assert!(!target["effects"][0][key].is_null(), "{key} in {target}");
    }
    for key in ["point", "metric", "slope", "ci_low", "ci_high"] {
        assert!(!target["impacts"][0][key].is_null(), "{key} in {target}");
    }
}

#[test]
fn cargo_puts_its_own_name_for_the_command_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    fs::write(&file, profile()).unwrap();
    let output = command().args(["andweorc", "report"]).arg(&file).output().unwrap();
    assert!(stdout(&output).contains("stock shop.rs:12"), "{}", stderr(&output));
}

#[test]
fn a_torn_profile_is_read_up_to_its_last_whole_line() {
    let whole = profile();
    let output = report(&whole[..whole.len() - 30], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("stock shop.rs:12") && text.contains("torn off"), "{text}");
}

#[test]
fn merged_profiles_are_one_report() {
    let output = report(&(profile() + &profile()), &[]);
    assert!(stdout(&output).contains("2 runs"), "{}", stdout(&output));
}

#[test]
fn file_that_is_no_profile_is_refused_with_the_reason() {
    assert!(refusal("<html>\n<body>\n").contains("is not a profile"));
    assert!(refusal("").contains("is empty"));
    let newer = profile().replace(r#""schema":1"#, r#""schema":7"#);
    assert!(refusal(&newer).contains("schema version 7"));
    let damaged = profile().replacen(r#""kind":"span""#, r#""kind":42"#, 1);
    assert!(refusal(&damaged).contains("line 2"));
}

#[test]
fn a_missing_file_is_named() {
    let output = command().args(["report", "/nowhere/run.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/nowhere/run.jsonl: can't be read"), "{}", stderr(&output));
}

#[test]
fn help_has_examples() {
    for arguments in [
        &["andweorc", "--help"][..],
        &["run", "--help"],
        &["report", "--help"],
        &["view", "--help"],
    ] {
        let output = command().args(arguments).output().unwrap();
        let help = stdout(&output);
        assert!(output.status.success() && help.contains("Examples:\n  cargo andweorc "), "{help}");
        assert!(help.contains("Usage: cargo andweorc"), "{help}");
    }
}
