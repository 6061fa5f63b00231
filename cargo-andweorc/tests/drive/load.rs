//! The load while the program runs.

use crate::Project;
use crate::common::{stderr, stdout};

#[test]
fn a_load_that_fails_ends_the_run_and_what_was_measured_is_named() {
    let project = Project::new();
    let output =
        project.run(&["--load", "sleep 2; echo connection refused; exit 3", "--", "serve", "open"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("connection refused\n"), "{said}");
    assert!(said.contains("exit 3` failed (exit code 3)"), "{said}");
    let named = format!("until then: cargo andweorc report {}", project.out().display());
    assert!(said.contains(&named), "{said}");
    assert!(!project.runs("pid") && project.out().exists());

    let output = project.run(&["--load", "no-such-tool", "--", "serve"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("(exit code 127; is it installed?)"), "{}", stderr(&output));
    assert!(!project.runs("pid"));
}

#[test]
fn a_load_that_ends_is_started_again_and_gets_no_settings() {
    let project = Project::new();
    let load = "echo on=$ANDWEORC_ENABLED. >>loads";
    let output =
        project.command(&["--load", load, "--", "serve"]).env("ANDWEORC_ENABLED", "1").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("started again").count(), 1, "{}", stderr(&output));
    let loads = project.read("loads");
    assert!((2..10).contains(&loads.matches("on=.\n").count()), "not in a hurry: {loads}");
}

#[test]
fn the_load_is_stopped_before_the_program_with_all_that_it_started() {
    let project = Project::new();
    let load = "trap 'kill -0 $(cat pid) && echo yes >served; exit' TERM; sleep 60 & echo $! >inner; \
                sh -c 'trap \"\" TERM; echo $$ >stubborn; sleep 60' & while :; do sleep 0.1; done";
    let output = project.run(&["--load", load, "--", "serve"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(project.read("served"), "yes\n", "the program was there when the load was stopped");
    for one in ["inner", "stubborn", "pid"] {
        assert!(!project.runs(one), "{one}");
    }
    assert!(stdout(&output).contains("  stock shop.rs:12"));
}
