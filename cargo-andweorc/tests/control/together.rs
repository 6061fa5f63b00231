//! `cargo andweorc diff` and `ci` of services that were profiled together.

use crate::common::{command, stderr, stdout};
use crate::services::{profile, write};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command().current_dir(folder).args(arguments).output().unwrap()
}

/// Folders `before` and `after` with three joint runs each: `lookup` was mended.
fn before_and_after() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (side, lookup_pct, seed) in [("before", 20.0, 10), ("after", 1.0, 20)] {
        for i in 0..3 {
            write(&folder.path().join(side), &format!("{side}-{i}"), lookup_pct, seed + i);
        }
    }
    folder
}

#[test]
fn targets_of_all_services_are_compared_by_service_and_name() {
    let folder = before_and_after();
    let json = run(folder.path(), &["diff", "--format", "json", "before", "after"]);
    let json: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!((&json["a"]["runs"], &json["b"]["runs"]), (&3.into(), &3.into()));
    assert_eq!(json["a"]["program"], "gateway-server");
    let target = |name: &str| {
        let targets = json["targets"].as_array().unwrap();
        targets.iter().find(|target| target["name"] == name).unwrap()["state"]["is"].clone()
    };
    assert_eq!(target("inventory/lookup"), "improved");
    assert_eq!(target("payments/charge"), "unchanged");
    let text = stdout(&run(folder.path(), &["diff", "before", "after"]));
    assert!(text.contains("inventory/lookup"), "{text}");
    let of = ["diff", "--entry", "inventory", "--format", "json", "before", "after"];
    let of_inventory: Value = serde_json::from_str(&stdout(&run(folder.path(), &of))).unwrap();
    assert_eq!(of_inventory["a"]["program"], "inventory-server");
    assert!(of_inventory["targets"].to_string().contains("gateway/render"));
}

#[test]
fn the_guard_judges_the_points_of_the_entry() {
    let folder = before_and_after();
    let output = run(folder.path(), &["ci", "before", "after"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("request throughput"), "{}", stdout(&output));
}

#[test]
fn side_with_a_service_of_another_run_is_refused_by_its_name() {
    let folder = before_and_after();
    fs::write(folder.path().join("after/z.jsonl"), profile(2, "strange", 20.0, 40)).unwrap();
    for name in ["diff", "ci"] {
        let output = run(folder.path(), &[name, "before", "after"]);
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains("after: `payments` was profiled in another run"), "{said}");
    }
}
