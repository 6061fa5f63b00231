//! Switching profiling on changes what a program prints to stderr and nothing else; whatever ends
//! it, its profile is whole.
//!
//! The programs are this test binary, run again: [`child`] is what they do.

#[path = "switch/child.rs"]
mod child;
#[path = "switch/parent.rs"]
#[allow(dead_code, reason = "shared with the tests of faults and of the machine")]
mod parent;

use nix::sys::signal::Signal;
use parent::{Program, reason};
use std::os::unix::process::ExitStatusExt;

/// A budget that is not over when a signal comes.
const LONGER: &str = "30s";

/// The programs. Its own exit code tells that it came to its end.
#[test]
#[ignore = "the program that the other tests run"]
fn child() {
    child::main();
}

#[test]
fn a_program_does_the_same_when_it_is_profiled() {
    let plain = Program::new("pipeline").run();
    assert_eq!(plain.status.code(), Some(child::DONE), "{plain:?}");
    assert!(plain.stdout.contains("checksum"), "{plain:?}");
    assert_eq!(plain.stderr, "");

    let program = Program::new("pipeline").enabled();
    let profiled = program.run();
    profiled.assert_same_as(&plain);
    let run = program.profile();
    assert!(!run.experiments.is_empty(), "{run:?}");
    assert!(["main returned", "settled", "time"].contains(&reason(&run)), "{run:?}");
    assert!(run.points.iter().any(|point| point.name == "item"), "{run:?}");
    assert!(run.targets.iter().any(|target| target.name == "mix"), "{run:?}");
    let locked = include_str!("../Cargo.lock");
    let tokio = run.header.tokio.as_ref().expect("it is from a registry");
    assert!(locked.contains(&format!("name = \"tokio\"\nversion = \"{tokio}\"\n")), "{tokio}");
    let out = program.out();
    assert!(profiled.stderr.contains(&format!("profile: {}", out.display())), "{profiled:?}");
}

#[test]
fn under_the_command_it_says_what_it_does_and_leaves_the_report_to_it() {
    let plain = Program::new("pipeline").run();
    let program = Program::new("pipeline").enabled();
    let status = program.directory().join("status");
    let program = program.var("CARGO_ANDWEORC_STATUS", &status.display().to_string());
    let profiled = program.run();
    profiled.assert_same_as(&plain);
    assert_eq!(profiled.stderr, "");
    assert!(!program.profile().experiments.is_empty());
    let said = std::fs::read_to_string(status).unwrap();
    assert!(said == "done" || said == "baseline" || said.ends_with("% faster"), "{said}");
}

#[test]
fn switched_off_it_is_off() {
    let plain = Program::new("short").run();
    for off in ["0", "false", "off", ""] {
        let program = Program::new("short").enabled().var("ANDWEORC_ENABLED", off);
        let run = program.run();
        run.assert_same_as(&plain);
        assert_eq!(run.stderr, "");
        assert!(!program.out().exists());
    }
}

#[test]
fn a_bad_setting_is_told_and_the_program_runs_unprofiled() {
    let plain = Program::new("short").run();
    assert_eq!(plain.status.code(), Some(child::DONE), "{plain:?}");
    for (name, value, told) in [
        ("ANDWEORC_DURATION", "soon", "ANDWEORC_DURATION is `soon`, which is not a time"),
        ("ANDWEORC_DURATON", "2s", "ANDWEORC_DURATON (did you mean ANDWEORC_DURATION?)"),
        ("ANDWEORC_FOO", "1", "no setting is named ANDWEORC_FOO"),
        ("ANDWEORC_SPEEDUPS", "25", "ANDWEORC_SPEEDUPS is `25`, which is not a list of fractions"),
        (
            "ANDWEORC_ENABLED",
            "maybe",
            "ANDWEORC_ENABLED is `maybe`, which is not `1` (on) or `0` (off)",
        ),
        ("ANDWEORC_OUT", "/proc/x/y.jsonl", "/proc/x"),
    ] {
        let program = Program::new("short").enabled().var(name, value);
        let run = program.run();
        run.assert_same_as(&plain);
        assert!(run.stderr.starts_with("andweorc: not profiling: "), "{name}={value}: {run:?}");
        assert!(run.stderr.contains(told), "{name}={value}: {run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{name}={value}: {run:?}");
        assert!(!program.out().exists(), "{name}={value}");
    }
}

#[test]
fn a_target_that_nobody_has_seen_is_named_with_those_seen() {
    let program = Program::new("pipeline").enabled().var("ANDWEORC_TARGETS", "nosuch");
    let run = program.run();
    assert_eq!(run.status.code(), Some(child::DONE), "{run:?}");
    let told = |text: &str| text.contains("no target is named `nosuch`") && text.contains("`mix`");
    assert!(told(&run.stderr), "{run:?}");
    let run = program.profile();
    assert!(run.notes.iter().any(|note| told(&note.text)), "{run:?}");
    assert!(run.experiments.is_empty(), "{run:?}");
}

#[test]
fn a_point_that_nobody_has_seen_is_named_with_those_seen() {
    let program = Program::new("pipeline").enabled().var("ANDWEORC_POINTS", "nosuch");
    let run = program.run();
    assert_eq!(run.status.code(), Some(child::DONE), "{run:?}");
    assert!(run.stderr.contains("`nosuch`") && run.stderr.contains("`item`"), "{run:?}");
}

#[test]
fn a_program_without_points_is_told_how_to_mark_one() {
    let program = Program::new("pointless").enabled();
    let run = program.run();
    assert_eq!(run.status.code(), Some(child::DONE), "{run:?}");
    assert!(run.stderr.contains("andweorc::progress!(\"name\")"), "{run:?}");
    assert!(run.stderr.contains("andweorc::layer()"), "{run:?}");
    let run = program.profile();
    assert!(["main returned", "time"].contains(&reason(&run)), "{run:?}");
    assert!(run.experiments.is_empty(), "{run:?}");
}

#[test]
fn a_signal_ends_the_program_after_the_report() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let program = Program::new("endless").enabled().var("ANDWEORC_DURATION", LONGER);
        let mut process = program.start();
        program.await_experiment(&mut process);
        process.signal(signal);
        let ended = process.wait();
        assert_eq!(ended.status.signal(), Some(signal as i32), "{ended:?}");
        assert!(ended.stderr.contains("profile: "), "{ended:?}");
        let run = program.profile();
        assert_eq!(reason(&run), format!("signal {}", signal.as_str()));
        assert!(!run.torn && !run.experiments.is_empty(), "{run:?}");
    }
}

#[test]
fn a_program_that_handles_the_signal_ends_as_it_likes() {
    let program = Program::new("handles SIGTERM").enabled().var("ANDWEORC_DURATION", LONGER);
    let mut process = program.start();
    program.await_experiment(&mut process);
    process.signal(Signal::SIGTERM);
    let ended = process.wait();
    assert_eq!(ended.status.code(), Some(child::HANDLED), "{ended:?}");
    assert!(ended.stdout.contains("handled"), "{ended:?}");
    assert!(ended.stderr.contains("profile: "), "{ended:?}");
    let run = program.profile();
    assert!(["signal SIGTERM", "main returned"].contains(&reason(&run)), "{run:?}");
}

#[test]
fn a_program_whose_time_is_up_still_ends_by_the_signal() {
    let program = Program::new("endless").enabled().var("ANDWEORC_DURATION", "1s");
    let mut process = program.start();
    program.await_end(&mut process);
    // The report is printed and the handlers are gone after it.
    process.await_stderr("profile: ");
    process.signal(Signal::SIGTERM);
    let ended = process.wait();
    assert_eq!(ended.status.signal(), Some(Signal::SIGTERM as i32), "{ended:?}");
    assert_eq!(reason(&program.profile()), "time");
}

#[test]
fn a_signal_that_comes_while_the_report_is_printed_ends_the_program() {
    let program = Program::new("is told to end while it prints").enabled();
    let program = program.var("ANDWEORC_DURATION", LONGER);
    let ended = program.run();
    assert_eq!(ended.status.signal(), Some(Signal::SIGTERM as i32), "{ended:?}");
    assert_eq!(reason(&program.profile()), "main returned");
}

#[test]
fn a_killed_program_leaves_what_was_written() {
    let program = Program::new("endless").enabled().var("ANDWEORC_DURATION", LONGER);
    let mut process = program.start();
    program.await_experiment(&mut process);
    process.signal(Signal::SIGKILL);
    let ended = process.wait();
    assert_eq!(ended.status.signal(), Some(Signal::SIGKILL as i32), "{ended:?}");
    let run = program.profile();
    assert!(run.end.is_none() && !run.experiments.is_empty(), "{run:?}");
}

#[test]
fn the_profile_has_a_place_when_none_is_said() {
    let program = Program::new("short").enabled().without("ANDWEORC_OUT");
    let run = program.run();
    assert_eq!(run.status.code(), Some(child::DONE), "{run:?}");
    // By the name of the test's file: what cargo adds to that changes from build to build.
    let profile = program.directory().join("target/andweorc/switch.jsonl");
    assert!(profile.is_file(), "{run:?}");
}
