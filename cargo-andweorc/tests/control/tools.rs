//! `merge`, `list`, `doctor`, `completions` and `man`.

use crate::common::{command, stderr, stdout};
use crate::made::{AFTER, BEFORE, before_and_after, profile, runs};
use andweorc_profile::settings::CountedEvent;
use insta::assert_snapshot;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command().current_dir(folder).args(arguments).output().unwrap()
}

#[test]
fn merged_runs_stay_apart() {
    let folder = before_and_after();
    let at = folder.path();
    let output = run(at, &["merge", "new/all.jsonl", "before", "after/0.jsonl"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "4 runs in new/all.jsonl\n");
    let merged = fs::read_to_string(at.join("new/all.jsonl")).unwrap();
    assert_eq!(merged.matches(r#""record":"header""#).count(), 4);
    assert!(stdout(&run(at, &["report", "new/all.jsonl"])).contains("4 runs"));
    let output = run(at, &["merge", "new/all.jsonl", "before"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("exists already; `--force` replaces it"));
    let output = run(at, &["-q", "merge", "--force", "new/all.jsonl", "before"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn folders_and_baselines_are_reported_too() {
    let folder = before_and_after();
    let at = folder.path();
    fs::create_dir_all(at.join("target/andweorc/baselines")).unwrap();
    fs::write(at.join("target/andweorc/baselines/main.jsonl"), profile(&BEFORE, 1)).unwrap();
    assert!(stdout(&run(at, &["report", "before"])).contains(", 3 runs"));
    assert!(stdout(&run(at, &["report", "before", "main"])).contains(", 4 runs"));
    let output = run(at, &["report", "nosuch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no profile and no baseline `nosuch` (baselines: main)"));
}

#[test]
fn a_torn_profile_does_not_tear_what_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    let whole = profile(&BEFORE, 1);
    fs::write(folder.path().join("torn.jsonl"), &whole[..whole.len() - 20]).unwrap();
    fs::write(folder.path().join("whole.jsonl"), &whole).unwrap();
    let arguments = ["-v", "merge", "all.jsonl", "torn.jsonl", "whole.jsonl"];
    let output = run(folder.path(), &arguments);
    assert!(stderr(&output).contains("torn.jsonl: 1 run\n"), "{}", stderr(&output));
    let output = run(folder.path(), &["report", "all.jsonl"]);
    assert!(stdout(&output).contains("2 runs"), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn file_that_is_no_profile_is_not_merged() {
    let folder = before_and_after();
    fs::write(folder.path().join("before/x.jsonl"), "x\n").unwrap();
    let output = run(folder.path(), &["merge", "all.jsonl", "before"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("x.jsonl: is not a profile"), "{}", stderr(&output));
    assert!(!folder.path().join("all.jsonl").exists());
}

#[test]
fn list_shows_profiles_and_baselines() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(stdout(&run(at, &["list"])).starts_with("no profiles in target/andweorc;"));
    fs::create_dir_all(at.join("target/andweorc/baselines")).unwrap();
    fs::write(at.join("target/andweorc/shop.jsonl"), profile(&AFTER, 1)).unwrap();
    fs::write(at.join("target/andweorc/foreign.jsonl"), "{}\n").unwrap();
    let twice = profile(&BEFORE, 1) + &profile(&BEFORE, 2);
    fs::write(at.join("target/andweorc/baselines/main.jsonl"), twice).unwrap();
    runs(&at.join("target/andweorc/compare"), "a", &BEFORE, 2, 1);
    assert_snapshot!(stdout(&run(at, &["list"])));
}

/// A project with this tokio in its lock file.
fn project(tokio: &str, dependencies: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (package, rest) in [
        (
            ".",
            format!("[workspace]\n[profile.release]\nstrip = true\n[dependencies]\n{dependencies}"),
        ),
        ("andweorc", String::new()),
    ] {
        let name = if package == "." { "shop" } else { package };
        fs::create_dir_all(at.join(package).join("src")).unwrap();
        fs::write(at.join(package).join("src/lib.rs"), "").unwrap();
        let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n{rest}\n");
        fs::write(at.join(package).join("Cargo.toml"), manifest).unwrap();
    }
    let lock = format!("version = 4\n[[package]]\nname = \"tokio\"\nversion = \"{tokio}\"\n");
    fs::write(at.join("Cargo.lock"), lock).unwrap();
    folder
}

const DEPENDENCY: &str = "andweorc = { path = \"andweorc\" }";

#[test]
fn doctor_says_what_to_do() {
    // A machine that is busy with other work is a problem too.
    let code = |text: &str| Some(i32::from(text.contains("problem  noise")));
    let output = run(project("1.47.0", DEPENDENCY).path(), &["doctor"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), code(&text), "{text}");
    for what in [
        "kernel",
        "perf events",
        "events ",
        "cores",
        "noise",
        "andweorc",
        "tokio",
        "frame pointers",
        "profiles",
    ] {
        assert!(text.contains(what), "{what} in {text}");
    }
    // With one processor there is no other one to be woken on.
    if std::thread::available_parallelism().is_ok_and(|it| it.get() > 1) {
        assert!(text.contains("a thread that slept goes on"), "{text}");
    }
    // Each event can be counted, or cannot.
    let events = text.lines().find(|line| line.contains("  events  ")).expect(&text);
    for event in CountedEvent::ALL {
        assert!(events.contains(event.name()), "{} in {events}", event.name());
    }
    assert!(events.contains("can be counted"), "{events}");
    assert!(text.contains("note     debug info"), "{text}");
    assert!(text.contains("-> `cargo andweorc run` sees to it"), "{text}");

    let output = run(project("1.30.0", "").path(), &["doctor"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("problem  tokio") && text.contains("cargo update -p tokio"), "{text}");
    assert!(text.contains("problem  andweorc") && text.contains("#[andweorc::main]"), "{text}");

    let broken = project("1.47.0", "andweorc = { path = \"nowhere\" }");
    let output = run(broken.path(), &["doctor"]);
    assert!(stdout(&output).contains("problem  project      cargo can't read it"));
    assert_eq!(output.status.code(), Some(1));

    let nowhere = tempfile::tempdir().unwrap();
    let output = run(nowhere.path(), &["doctor"]);
    assert!(stdout(&output).contains("no cargo project is here"), "{}", stdout(&output));
    assert_eq!(output.status.code(), code(&stdout(&output)));
}

#[test]
fn completions_complete_for_bash() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(folder.path(), &["completions", shell]);
        assert!(output.status.success());
        for command in ["diff", "merge", "doctor"] {
            assert!(stdout(&output).contains(command), "{command} for {shell}");
        }
    }
    let script = folder.path().join("completion");
    fs::write(&script, run(folder.path(), &["completions", "bash"]).stdout).unwrap();
    let ask = "source \"$0\"; COMP_WORDS=(cargo-andweorc do); COMP_CWORD=1; \
               \"$(complete -p cargo-andweorc | sed 's/.* -F \\([^ ]*\\).*/\\1/')\" cargo-andweorc do cargo-andweorc; \
               echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", ask]).arg(&script).output().unwrap();
    assert_eq!(stdout(&output), "doctor\n", "{}", stderr(&output));
}

#[test]
fn cargo_completes_the_command_in_bash_and_what_it_did_before() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("completion");
    fs::write(&script, run(folder.path(), &["completions", "bash"]).stdout).unwrap();
    let ask = |words: &str, at: usize| {
        let ask = format!(
            "_before() {{ COMPREPLY=(before \"$2\"); }}; complete -F _before cargo; source \"$0\"; source \"$0\"; \
             COMP_WORDS=({words}); COMP_CWORD={at}; \
             \"$(complete -p cargo | sed 's/.* -F \\([^ ]*\\).*/\\1/')\" cargo \"${{COMP_WORDS[{at}]}}\" x; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash").args(["-c", &ask]).arg(&script).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(ask("cargo andweorc do", 2), "doctor\n");
    assert_eq!(ask("cargo +stable andweorc run --manifest-p", 4), "--manifest-path\n");
    assert_eq!(ask("cargo bui", 1), "before bui\n");
    assert_eq!(ask("cargo build andweorc", 2), "before andweorc\n");
}

#[test]
fn manual_pages_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let page = stdout(&run(folder.path(), &["man"]));
    assert!(page.contains(".TH cargo-andweorc 1") && page.contains("cargo andweorc run"), "{page}");
    let output = run(folder.path(), &["man", "--out", "man1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["", "-run", "-diff", "-ci", "-merge", "-list", "-doctor"] {
        let file = folder.path().join(format!("man1/cargo-andweorc{name}.1"));
        let page = fs::read_to_string(&file).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{}", file.display());
    }
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let mut child = command().args(["completions", "bash"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
