//! Everything that comes from elsewhere is shown as text, by every command: names of a profile,
//! paths, quotes of a file.

use crate::common::{command, profile, stderr, stdout};
use crate::made::{AFTER, BEFORE};
use std::fs;
use std::path::Path;
use std::process::Output;

/// Characters that are not seen, or change how the rest is seen. One of each kind.
const UNSEEN: &str = "\u{1b}\u{7}\u{7f}\u{85}\u{9b}\u{ad}\u{34f}\u{61c}\u{115f}\u{200b}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\
\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{3164}\u{fe0f}\u{feff}\u{fff9}\u{e000}\u{e0041}\u{e0101}";

/// A million characters of one kind.
fn million(c: char) -> String {
    c.to_string().repeat(1_000_000)
}

/// Asserts that nothing of [`UNSEEN`] is in what was printed.
fn assert_seen(what: &str, output: &Output) {
    for text in [stdout(output), stderr(output)] {
        assert_text(what, &text);
    }
}

fn assert_text(what: &str, text: &str) {
    let unseen = text.chars().find(|c| UNSEEN.contains(*c));
    assert_eq!(unseen, None, "{what}: {}", text.escape_debug());
}

fn run(at: &Path, arguments: &[&str]) -> Output {
    command().current_dir(at).args(arguments).output().unwrap()
}

/// The text as JSON has it, without its quotes.
fn in_json(text: &str) -> String {
    serde_json::to_string(text).unwrap().trim_matches('"').to_owned()
}

/// The profile with `text` before each name and sentence in it.
fn spoilt(profile: &str, text: &str) -> String {
    let mut spoilt = profile.to_owned();
    for key in ["program", "host", "name", "file", "text", "reason", "spoiled", "tokio", "source"] {
        let text = in_json(text);
        spoilt = spoilt.replace(&format!(r#""{key}":""#), &format!(r#""{key}":"{text}"#));
    }
    spoilt
}

/// `a.jsonl` and `b.jsonl` with spoilt names: B of another program on another host, with one target
/// more and one less.
fn spoilt_sides(at: &Path) {
    for (name, service, seed) in [("a", &BEFORE, 1), ("b", &AFTER, 2)] {
        let note = format!(r#"{{"record":"note","at_ns":1,"text":"a note of {name}"}}"#);
        let other = |text: &str| format!("{text}of {name}");
        let runs: String = (0..3)
            .map(|run| crate::made::profile(service, seed + 10 * run) + &note + "\n")
            .collect::<String>()
            .replace(r#""program":""#, &other(r#""program":""#))
            .replace(r#""host":""#, &other(r#""host":""#));
        fs::write(at.join(format!("{name}.jsonl")), spoilt(&runs, UNSEEN)).unwrap();
    }
}

#[test]
fn no_command_shows_what_is_not_seen() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    spoilt_sides(at);
    for arguments in [
        &["report", "--format", "text", "a.jsonl"][..],
        &["report", "--format", "markdown", "a.jsonl"],
        &["report", "--format", "csv", "a.jsonl"],
        &["report", "--format", "coz", "a.jsonl"],
        &["report", "--format", "html", "a.jsonl"],
        &["report", "--format", "json", "a.jsonl"],
        &["diff", "--across-programs", "a.jsonl", "b.jsonl"],
        &["diff", "--across-programs", "--format", "markdown", "a.jsonl", "b.jsonl"],
        &["diff", "--across-programs", "--format", "json", "a.jsonl", "b.jsonl"],
        &["ci", "--across-programs", "a.jsonl", "b.jsonl"],
        &["ci", "--across-programs", "--markdown", "-", "a.jsonl", "b.jsonl"],
        &["ci", "--across-programs", "--json", "-", "a.jsonl", "b.jsonl"],
        &["list", "."],
        &["merge", "--verbose", "--force", "c.jsonl", "a.jsonl", "b.jsonl"],
    ] {
        let output = run(at, arguments);
        assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{}", stderr(&output));
        assert_seen(&arguments.join(" "), &output);
        let shown = stdout(&output) + &stderr(&output);
        let named = ["\\u{202e}", "\\u202e", "\\u\\{202e\\}", "in c.jsonl"];
        assert!(named.iter().any(|escape| shown.contains(escape)), "{arguments:?}: {shown}");
    }
}

#[test]
fn json_holds_the_same_names_as_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.jsonl"), spoilt(&profile(), UNSEEN)).unwrap();
    let report = stdout(&run(folder.path(), &["report", "--format", "json", "a.jsonl"]));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["targets"][0]["name"], format!("{UNSEEN}stock"));
}

#[test]
fn no_error_shows_what_is_not_seen_or_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let good = profile();
    let path = format!("{UNSEEN}.jsonl");
    let long = format!("{UNSEEN}{}", million('x'));
    let quoting = |from: &str| good.replacen(from, &format!(r#""kind":"{}""#, in_json(&long)), 1);
    fs::write(at.join(&path), "").unwrap();
    fs::write(at.join("kind.jsonl"), quoting(r#""kind":"span""#)).unwrap();
    let record = format!(r#"{{"record":"{}"}}"#, in_json(&long));
    fs::write(at.join("record.jsonl"), format!("{}\n{record}\n", good.lines().next().unwrap()))
        .unwrap();
    let unlike = spoilt(&good, &long);
    fs::write(at.join("unlike.jsonl"), &unlike).unwrap();
    fs::write(at.join("good.jsonl"), &good).unwrap();
    for arguments in [
        &["report", &*path][..],
        &["report", "-o", &*format!("nowhere/{path}"), "good.jsonl"],
        &["report", &*format!("nowhere/{path}")],
        &["diff", "good.jsonl", &*path],
        &["diff", "--baseline", &*path, "good.jsonl"],
        &["merge", &*path, "good.jsonl"],
        &["report", "kind.jsonl"],
        &["report", "record.jsonl"],
        &["diff", "good.jsonl", "unlike.jsonl"],
        &["merge", "all.jsonl", "record.jsonl"],
        &["view", "record.jsonl"],
    ] {
        let output = run(at, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_seen(&arguments.join(" "), &output);
        assert!(stderr(&output).len() < 50_000, "{arguments:?}: {}", stderr(&output).len());
    }
    for (name, value) in [("ANDWEORC_DURATION", UNSEEN), (&*format!("ANDWEORC_{UNSEEN}"), "1")] {
        let output = command().current_dir(at).arg("run").env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert_seen("run", &output);
    }
}

#[test]
fn names_of_a_megabyte_are_cut_and_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("a.jsonl"), spoilt(&profile(), &million('n'))).unwrap();
    for arguments in [
        &["report", "--format", "text", "a.jsonl"][..],
        &["report", "--format", "markdown", "a.jsonl"],
        &["report", "--format", "csv", "a.jsonl"],
        &["report", "--format", "coz", "a.jsonl"],
        &["report", "--format", "html", "a.jsonl"],
        &["diff", "a.jsonl", "a.jsonl"],
        &["diff", "--format", "markdown", "a.jsonl", "a.jsonl"],
        &["ci", "a.jsonl", "a.jsonl"],
        &["list", "."],
    ] {
        let output = run(at, arguments);
        assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{}", stderr(&output));
        let shown = stdout(&output);
        assert!(shown.len() < 500_000, "{arguments:?}: {} bytes", shown.len());
        // In words a name has the columns of its line.
        let cut = if arguments.contains(&"text") { "…n" } else { "…(1000005 bytes, " };
        assert!(shown.contains(cut), "{arguments:?}: {shown}");
        // Each has its own end and its own hash.
        for name in ["nstock", "naudit"] {
            assert!(shown.contains(name), "{arguments:?}: {name} in {shown}");
        }
    }
    let coz = stdout(&run(at, &["report", "--format", "coz", "a.jsonl"]));
    let mut selected: Vec<&str> = coz
        .lines()
        .filter_map(|line| line.split('\t').find(|it| it.starts_with("selected=")))
        .collect();
    selected.sort_unstable();
    selected.dedup();
    assert_eq!(selected.len(), 2, "{selected:?}");
}
