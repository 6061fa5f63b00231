//! The brief report, for scripts and coding agents.

use crate::common::{command, profile, stderr, stdout};
use crate::report;
use serde_json::Value;
use std::collections::BTreeSet;

const BRIEF: [&str; 3] = ["--format", "json", "--brief"];

/// The brief report of a file of this content.
fn brief(content: &str) -> String {
    let output = report(content, &BRIEF);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// A profile without the rows that have this text.
fn without(text: &str) -> String {
    let rows = profile();
    rows.lines().filter(|row| !row.contains(text)).map(|row| format!("{row}\n")).collect()
}

fn answer(content: &str) -> String {
    let report: Value = serde_json::from_str(&brief(content)).unwrap();
    report["answer"].as_str().unwrap().to_owned()
}

#[test]
fn brief_says_what_to_make_faster_and_how_sure_that_is() {
    insta::assert_snapshot!(brief(&profile()));
}

#[test]
fn brief_of_bad_names_is_json_with_a_line_a_target() {
    let shop = include_str!("../fixtures/shop.jsonl");
    let text = brief(shop);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["targets"].as_array().unwrap().len(), 5);
    insta::assert_snapshot!(text);
}

#[test]
fn brief_without_anything_measured_says_why() {
    insta::assert_snapshot!(brief(&without(r#""point""#).replace(r#"[{"point":1,"#, "[")));
}

#[test]
fn answer_follows_the_verdicts() {
    assert_eq!(answer(&profile()), "make_faster");
    assert_eq!(answer(&without(r#""target":1,"speedup""#)), "nothing_matters");
    assert_eq!(answer(&without(r#""speedup":0.5,"#)), "undecided");
}

#[test]
fn targets_above_the_bound_are_counted() {
    let output = report(&profile(), &["--format", "json", "--brief", "--top", "1"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["targets"].as_array().unwrap().len(), 1);
    assert_eq!(report["more_targets"], 1);
}

#[test]
fn brief_in_another_form_is_refused() {
    let output = command().args(["report", "--brief", "run.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("say --format json too"), "{}", stderr(&output));
}

#[test]
fn each_key_of_the_brief_report_is_explained() {
    fn keys(value: &Value, all: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                all.extend(map.keys().cloned());
                map.values().for_each(|value| keys(value, all));
            }
            Value::Array(values) => values.iter().for_each(|value| keys(value, all)),
            _ => {}
        }
    }
    let mut all = BTreeSet::new();
    keys(&serde_json::from_str(&brief(include_str!("../fixtures/shop.jsonl"))).unwrap(), &mut all);
    let explained = include_str!("../../../docs/book/src/reference/report-json.md");
    for key in all {
        let named = [format!("`{key}`"), format!("\"{key}\"")];
        assert!(named.iter().any(|name| explained.contains(name)), "{key}");
    }
}
