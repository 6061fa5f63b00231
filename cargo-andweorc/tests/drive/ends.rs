//! How a run ends.

use crate::Project;
use crate::common::{stderr, stdout};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tests_support::take_interrupts;

#[test]
fn a_program_is_stopped_when_its_profile_has_its_end() {
    let project = Project::new();
    let output = project.run(&["--duration", "5s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!project.runs("pid"));
    assert_eq!(stdout(&output).matches("  stock shop.rs:12").count(), 1, "{}", stdout(&output));
    let named = format!("profile: {}\n", project.out().display());
    assert!(stderr(&output).contains(&named), "{}", stderr(&output));
    let left = profiles(&project);
    assert_eq!(left.len(), 2, "the profile and the build: {left:?}");
}

#[test]
fn a_session_that_the_program_starts_itself_takes_the_place_of_the_one_started_for_it() {
    let project = Project::new();
    let output = project.run(&["--duration", "5s", "--", "own-session"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output).matches("  stock shop.rs:12").count(), 1, "{}", stdout(&output));
}

/// All that is in the folder of the profiles, in order.
fn profiles(project: &Project) -> Vec<String> {
    let entries = project.out().parent().unwrap().read_dir().unwrap().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn nothing_measured_is_a_failure_and_no_profile_in_the_place_of_a_good_one() {
    let project = Project::new();
    let output = project.run(&["--", "idle"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(said.matches("andweorc: no request seen in the first 3 s\n").count(), 1, "{said}");
    assert!(said.contains("error: nothing was measured, see above\n"), "{said}");
    assert!(stdout(&output).contains("no request seen"), "{}", stdout(&output));

    assert_eq!(project.run(&["--", "ends"]).status.code(), Some(0));
    let good = project.read("target/andweorc/shop.jsonl");
    let output = project.run(&["--save-baseline", "main", "--", "idle"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("the profile of before stays"), "{}", stderr(&output));
    assert_eq!(project.read("target/andweorc/shop.jsonl"), good);
    assert!(!project.at().join("target/andweorc/baselines/main.jsonl").exists());

    assert_eq!(project.run(&["--", "exit"]).status.code(), Some(7));
    assert_eq!(project.read("target/andweorc/shop.jsonl"), good, "it wrote no profile");
    assert_eq!(project.run(&["--", "ends"]).status.code(), Some(0));
    let kept = profiles(&project);
    let earlier: Vec<&String> = kept.iter().filter(|name| name.starts_with("shop.2")).collect();
    assert_eq!(earlier.len(), 2, "the empty one of before the first, and the first: {kept:?}");
    let newest = project.at().join("target/andweorc").join(earlier[1]);
    assert_eq!(std::fs::read_to_string(newest).unwrap(), good);
}

#[test]
fn the_page_is_opened_by_what_the_desktop_says() {
    let project = Project::new();
    let bin = project.at().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let opener = bin.join("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\necho \"$1\" >opened\n").unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = project.command(&["--open", "--", "ends"]).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = project.out().with_extension("html");
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!"));
    let until = Instant::now() + Duration::from_secs(20);
    while !project.read("opened").ends_with('\n') && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(project.read("opened"), format!("{}\n", page.display()));
}

#[test]
fn a_program_that_does_not_end_is_killed() {
    let project = Project::new();
    let output = project.run(&["--", "stubborn"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("did not end within 10 s after SIGTERM, and is killed"));
    assert!(!project.runs("pid"));
    assert!(stdout(&output).contains("  stock shop.rs:12"));
}

#[test]
fn a_program_that_fails_in_the_middle_is_reported_as_far_as_it_came() {
    let project = Project::new();
    let output = project.run(&["--", "ends", "crash"]);
    assert_eq!(output.status.code(), Some(128 + Signal::SIGABRT as i32));
    let said = stderr(&output);
    assert!(said.contains("shop ended by itself (signal SIGABRT)"), "{said}");
    assert!(stdout(&output).contains("stock shop.rs:12"), "{}", stdout(&output));
}

#[test]
fn signals_end_load_and_program_and_what_was_measured_is_reported() {
    take_interrupts();
    // SIGTERM reaches the command alone, Ctrl-C all that the terminal knows of: not the load, which
    // has a group of its own.
    for (signal, to_all) in [(Signal::SIGTERM, false), (Signal::SIGINT, true)] {
        let project = Project::new();
        let child = project
            .command(&["--load", "echo $$ >load; sleep 60", "--", "serve", "open"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let is_under_load = || project.read("load").ends_with('\n');
        while project.read("target/andweorc/shop.jsonl").lines().count() < 15 || !is_under_load() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = Pid::from_raw(child.id().cast_signed());
        if to_all { killpg(pid, signal) } else { kill(pid, signal) }.unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal as i32), "{}", stderr(&output));
        assert!(!project.runs("load") && !project.runs("pid"), "{signal}");
        assert!(stdout(&output).contains("stock shop.rs:12"), "{}", stdout(&output));
    }
}

#[test]
fn benches_and_tests_are_run_as_cargo_runs_them() {
    let project = Project::new();
    let output = project.run(&["--bench", "bench", "--", "a"]);
    let out = stdout(&output);
    assert!(out.contains(r#"args=["--bench", "a"] here=true"#), "{out}{}", stderr(&output));
    let output = project.run(&["--test", "test", "--", "--nocapture"]);
    let out = stdout(&output);
    assert!(out.contains(r#"args=["--nocapture"] here=true"#), "{out}{}", stderr(&output));
    let output = project.run(&["--bench", "test"]);
    assert!(stderr(&output).contains("there is no bench `test`; there is bench"));
    assert_eq!(project.run(&["--bench", "bench", "--test", "test"]).status.code(), Some(2));
}
