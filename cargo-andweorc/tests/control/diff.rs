//! `cargo andweorc diff`.

use crate::common::{self, command, stderr, stdout};
use crate::made::{AFTER, BEFORE, Service, before_and_after, profile, runs};
use insta::assert_snapshot;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, SystemTime};

fn diff(folder: &Path, arguments: &[&str]) -> Output {
    command().current_dir(folder).arg("diff").args(arguments).output().unwrap()
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command().current_dir(folder).args(arguments).output().unwrap()
}

fn text(folder: &Path, arguments: &[&str]) -> String {
    let output = diff(folder, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn words_say_what_changed() {
    assert_snapshot!(text(before_and_after().path(), &["before", "after"]));
}

#[test]
fn markdown_says_what_changed() {
    assert_snapshot!(text(before_and_after().path(), &["--format", "markdown", "before", "after"]));
}

#[test]
fn json_has_every_number_and_state() {
    let folder = before_and_after();
    let found = text(folder.path(), &["--format", "json", "before", "after"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!((&found["schema"], &found["a"]["runs"]), (&2.into(), &3.into()));
    assert_eq!(found["a"]["name"], "before");
    let by = serde_json::json!({ "point": "checkout", "metric": "throughput" });
    assert_eq!(found["ranked_by"], by);
    let throughput = &found["outcomes"][0];
    assert_eq!(
        (&throughput["metric"], &throughput["point"]),
        (&"throughput".into(), &"checkout".into())
    );
    assert_eq!(throughput["state"]["is"], "regressed");
    for key in ["a", "b", "change_pct", "ci_low", "ci_high", "limit_pct"] {
        assert!(throughput[key].is_f64(), "{key} in {throughput}");
    }
    assert_eq!(found["outcomes"][1]["metric"], "p99");
    let target = |name: &str| {
        let targets = found["targets"].as_array().unwrap();
        targets.iter().find(|target| target["name"] == name).unwrap().clone()
    };
    assert_eq!(target("audit")["state"]["is"], "regressed");
    assert_eq!(target("stock")["state"]["is"], "improved");
    assert_eq!(target("parse")["presence"], "moved");
    assert_eq!(target("legacy")["presence"], "gone");
    assert_eq!(target("receipt")["presence"], "new");
    assert_eq!(target("receipt")["state"], Value::Null);
    assert!(target("stock")["impact_a"]["slope"].as_f64().unwrap() > 30.0);
    assert_eq!(target("stock")["place_b"]["line"], 15);
}

#[test]
fn a_throughput_that_is_the_loads_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let open = Service { open: Some(true), ..BEFORE };
    runs(folder.path(), "a", &open, 3, 1);
    runs(folder.path(), "b", &open, 3, 50);
    runs(folder.path(), "closed", &Service { open: Some(false), ..BEFORE }, 3, 50);
    let words = text(folder.path(), &["a", "b"]);
    let note = "A and B kept up with a load that comes at its own pace";
    let beside = words.lines().skip_while(|line| !line.contains("checkout throughput")).nth(1);
    assert!(beside.unwrap().contains(note), "{words}");
    let markdown = text(folder.path(), &["a", "b", "--format", "markdown"]);
    let row = markdown.lines().find(|line| line.starts_with("| checkout throughput")).unwrap();
    assert!(row.contains(note), "{row}");
    for text in [&words, &markdown] {
        assert!(text.contains("Impact: change of the mean latency of checkout"), "{text}");
    }
    let json = |b| -> Value {
        serde_json::from_str(&text(folder.path(), &["a", b, "--format", "json"])).unwrap()
    };
    let both = json("b");
    assert_eq!(both["load"], serde_json::json!(["open", "open"]));
    assert_eq!(both["ranked_by"]["metric"], "mean");
    assert!(both["outcomes"][0]["note"].as_str().unwrap().starts_with(note));
    assert_eq!(both["outcomes"][1]["note"], Value::Null, "a p99 can move");
    let one = json("closed");
    assert_eq!(one["load"], serde_json::json!(["open", "closed"]));
    assert!(one["outcomes"][0]["note"].as_str().unwrap().starts_with("A kept up"));
}

#[test]
fn a_version_is_unchanged_against_itself_with_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    runs(folder.path(), "a", &BEFORE, 8, 1);
    runs(folder.path(), "b", &BEFORE, 8, 50);
    let text = text(folder.path(), &["a", "b"]);
    assert!(text.contains("unchanged  checkout throughput"), "{text}");
    assert!(text.contains("(within "), "{text}");
    assert!(!text.contains("  regressed ") && !text.contains("  improved "), "{text}");
}

#[test]
fn real_runs_beside_a_build_are_erratic() {
    // Ten seconds of `examples/pipeline` each, on two cores that compiled something meanwhile.
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control/profiles");
    let text = text(&at, &["busy/a", "busy/b"]);
    assert!(text.contains("erratic  item throughput") && text.contains("scatters by"), "{text}");
    assert!(text.contains("the same build"), "{text}");
}

#[test]
fn a_baseline_is_found_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir_all(at.join("target/andweorc/baselines")).unwrap();
    fs::write(at.join("target/andweorc/baselines/main.jsonl"), profile(&BEFORE, 1)).unwrap();
    fs::write(at.join("new.jsonl"), profile(&AFTER, 2)).unwrap();
    let by_option = text(at, &["--baseline", "main", "new.jsonl"]);
    assert!(
        by_option.starts_with("A: main (shop, 1 run), B: new.jsonl (shop, 1 run)\n"),
        "{by_option}"
    );
    assert_eq!(text(at, &["main", "new.jsonl"]), by_option);
    assert!(by_option.contains("assumed, not measured"), "{by_option}");
    let output = diff(at, &["--baseline", "trunk", "new.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no baseline `trunk` (baselines: main)"),
        "{}",
        stderr(&output)
    );
}

/// A project with these profiles, each older than the one before.
fn project(profiles: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir_all(at.join("src")).unwrap();
    fs::write(at.join("src/lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"shop\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(at.join("Cargo.toml"), manifest).unwrap();
    fs::create_dir_all(at.join("target/andweorc/baselines")).unwrap();
    for (age, (name, profile)) in profiles.iter().enumerate() {
        let file = at.join("target/andweorc").join(name);
        fs::write(&file, profile).unwrap();
        let written = SystemTime::now() - Duration::from_secs(60 * age as u64);
        File::options().append(true).open(file).unwrap().set_modified(written).unwrap();
    }
    folder
}

#[test]
fn without_names_the_newest_is_compared_with_the_one_before_of_its_program() {
    let other = profile(&AFTER, 3).replace(r#""program":"shop""#, r#""program":"tool""#);
    let folder = project(&[
        ("shop.jsonl", profile(&AFTER, 2)),
        ("tool.jsonl", other),
        ("shop.20261127-103500.jsonl", profile(&BEFORE, 1)),
        ("shop.20261127-093500.jsonl", profile(&BEFORE, 5)),
    ]);
    let at = folder.path();
    let output = diff(at, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let words = stdout(&output);
    let first = words.lines().next().unwrap();
    assert!(first.contains("shop.20261127-103500.jsonl (shop, 1 run), B: "), "{first}");
    assert!(first.ends_with("target/andweorc/shop.jsonl (shop, 1 run)"), "{first}");
    let said = stderr(&output);
    assert!(said.contains("no change is told that is smaller than about 8 %"), "{said}");
    fs::remove_file(at.join("target/andweorc/shop.20261127-103500.jsonl")).unwrap();
    fs::remove_file(at.join("target/andweorc/shop.20261127-093500.jsonl")).unwrap();
    let output = diff(at, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("but one profile of `shop` here"), "{}", stderr(&output));
}

#[test]
fn a_baseline_is_not_compared_with_the_profile_that_it_was_saved_from() {
    let folder = project(&[("shop.jsonl", profile(&AFTER, 2))]);
    let at = folder.path();
    let baseline = at.join("target/andweorc/baselines/main.jsonl");
    fs::copy(at.join("target/andweorc/shop.jsonl"), &baseline).unwrap();
    for command in ["diff", "ci"] {
        let output = run(at, &[command, "--baseline", "main"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        let said = stderr(&output);
        assert!(
            said.contains("`main` was saved from") && said.contains("profile it again"),
            "{said}"
        );
    }
    fs::write(&baseline, profile(&BEFORE, 1)).unwrap();
    assert!(diff(at, &["--baseline", "main"]).status.success());
}

#[test]
fn different_programs_are_compared_when_that_is_asked_for() {
    let folder = before_and_after();
    let at = folder.path();
    let other = profile(&AFTER, 3).replace(r#""program":"shop""#, r#""program":"tool""#);
    fs::write(at.join("tool.jsonl"), other).unwrap();
    let output = diff(at, &["before", "tool.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("program `shop` and B of `tool`") && said.contains("--across-programs"));
    assert!(text(at, &["before", "tool.jsonl", "--across-programs"]).contains("(tool, 1 run)"));
}

#[test]
fn a_point_that_became_another_kind_is_still_compared() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("progress.jsonl"), common::profile()).unwrap();
    fs::write(folder.path().join("latency.jsonl"), profile(&BEFORE, 1)).unwrap();
    let text = text(folder.path(), &["progress.jsonl", "latency.jsonl"]);
    assert!(text.contains("checkout throughput") && !text.contains("p99  "), "{text}");
    assert!(text.contains("the versions of tokio differ: A none, B 1.52.3"), "{text}");
}

#[test]
fn colours_are_for_terminals_unless_wanted() {
    let folder = before_and_after();
    let coloured = |options: &[&str], no_color: bool| {
        let mut command = command();
        command.current_dir(folder.path()).args(options).args(["diff", "before", "after"]);
        if no_color {
            command.env("NO_COLOR", "1");
        }
        stdout(&command.output().unwrap()).contains("\u{1b}[")
    };
    assert!(!coloured(&[], false));
    assert!(coloured(&["--color", "always"], false));
    assert!(coloured(&["--color", "always"], true), "what is asked for wins over the environment");
    assert!(!coloured(&["--color", "never"], false));
    let mut forced = command();
    forced.current_dir(folder.path()).args(["diff", "before", "after"]).env("CLICOLOR_FORCE", "1");
    assert!(stdout(&forced.output().unwrap()).contains("\u{1b}[1m\u{1b}[31mregressed"));
    let output = forced.env("NO_COLOR", "1").output().unwrap();
    assert!(!stdout(&output).contains('\u{1b}'));
}
