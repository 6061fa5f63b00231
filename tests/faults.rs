//! Behaviour of a profiled program when something goes wrong; docs/book/src/reference/safety.md is
//! the same in words.
//!
//! The programs are this test binary, run again: [`child`] is what they do.

#[path = "faults/child.rs"]
mod child;
#[path = "switch/parent.rs"]
#[allow(dead_code, reason = "shared with the tests of the switch, which use all of it")]
mod parent;

use andweorc_profile::ExperimentRecord;
use child::{DONE, STOP, was_busy};
use nix::sys::signal::Signal;
use parent::{Ended, Program, once, reason, stopped_for};
use std::os::unix::process::ExitStatusExt;
use std::thread::sleep;
use std::time::Instant;

/// A budget that most programs do not live to see, and that still leaves short experiments.
const LONGER: &str = "6s";

/// The programs. Its own exit code tells that it came to its end.
#[test]
#[ignore = "the program that the other tests run"]
fn child() {
    child::main();
}

/// Asserts that the program came to its end with all its checks passed.
fn assert_done(ended: &Ended) {
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
}

/// The number that the program printed under this name.
fn printed(ended: &Ended, name: &str) -> f64 {
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}: {ended:?}"))
}

#[test]
fn after_the_panic_of_a_target_nothing_delays_any_more() {
    let ended = Program::new("target panics").run();
    assert_done(&ended);
    assert!(printed(&ended, "saved_ms") > 1.0, "it panicked inside the target: {ended:?}");
    assert_eq!(printed(&ended, "growth_ns"), 0.0, "{ended:?}");
}

#[test]
fn a_panic_of_main_still_ends_the_profile_in_order() {
    let program = Program::new("main panics").enabled().var("ANDWEORC_DURATION", LONGER);
    let ended = program.run();
    // The exit code of a panic.
    assert_eq!(ended.status.code(), Some(101), "{ended:?}");
    assert!(ended.stderr.contains("as meant") && ended.stderr.contains("profile: "), "{ended:?}");
    let run = program.profile();
    assert_eq!(reason(&run), "main panicked");
    assert!(!run.experiments.is_empty() && !run.torn, "{run:?}");
}

#[test]
fn an_aborted_program_leaves_what_was_written() {
    let program = Program::new("aborts").enabled().var("ANDWEORC_DURATION", LONGER);
    let ended = program.run();
    assert_eq!(ended.status.signal(), Some(Signal::SIGABRT as i32), "{ended:?}");
    let run = program.profile();
    assert!(run.end.is_none() && !run.experiments.is_empty(), "{run:?}");
}

#[test]
fn where_files_may_not_grow_the_program_goes_on_and_the_loss_is_told() {
    let program = Program::new("small files").enabled();
    let ended = program.run();
    assert_done(&ended);
    let told =
        format!("records could not be written to {}: File too large", program.out().display());
    assert!(ended.stderr.contains(&told), "{ended:?}");
}

#[test]
fn a_disk_that_was_full_for_a_while_leaves_a_readable_profile() {
    let ended = Program::new("small disk").run();
    assert_done(&ended);
}

#[test]
fn a_profile_that_cannot_be_written_leaves_the_program_alone() {
    let plain = Program::new("works").run();
    for out in ["/", "/dev/null", "/proc/version/x", "/sys/kernel/x.jsonl"] {
        let ended = Program::new("works").enabled().var("ANDWEORC_OUT", out).run();
        ended.assert_same_as(&plain);
        assert!(ended.stderr.starts_with("andweorc: not profiling: "), "{ended:?}");
        assert!(ended.stderr.contains(out), "{ended:?}");
    }
}

#[test]
fn without_file_descriptors_threads_are_sampled_by_timers() {
    assert_done(&Program::new("no descriptors").run());
}

#[test]
fn where_the_kernel_tells_no_waits_the_report_says_what_they_cost() {
    // Whether somebody waits behind the target in three experiments is up to the scheduler.
    once(|| {
        let program = Program::new("waits untold").enabled().var("ANDWEORC_DURATION", "30s");
        let ended = program.run();
        assert_done(&ended);
        // The report breaks its lines at 80 columns.
        let told = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").contains("no /proc/thread-self/schedstat")
        };
        let noted = program.profile().notes.iter().any(|note| told(&note.text));
        assert_eq!(noted, told(&ended.stderr), "{ended:?}");
        (noted, format!("{ended:?}"))
    });
}

#[test]
fn a_stop_for_seconds_spoils_the_experiment_and_is_not_paid_for() {
    // A machine that stops the program itself ends the experiment before, or takes time after it.
    once(|| {
        let mut process = Program::new("is stopped").start();
        process.await_stderr("ready");
        process.signal(Signal::SIGSTOP);
        let began = Instant::now();
        sleep(STOP);
        process.signal(Signal::SIGCONT);
        let stopped = began.elapsed().as_secs_f64() * 1e3;
        let ended = process.wait();
        assert_done(&ended);
        let discarded = ended.stdout.lines().find_map(|line| line.strip_prefix("spoiled="));
        let seen = discarded.and_then(stopped_for) >= Some(STOP.as_secs_f64() - 0.1);
        // Half of the stop would be a debt of a second.
        let paid = printed(&ended, "longest_gap_ms") - stopped;
        let told = format!("{paid} ms longer than the stop of {stopped} ms: {ended:?}");
        (seen && paid < 400.0 && printed(&ended, "saved_ms") < 600.0, told)
    });
}

#[test]
fn an_experiment_without_progress_is_ended_early() {
    assert_done(&Program::new("gets stuck").run());
}

#[test]
fn target_times_are_measured_once_there_is_load() {
    let program = Program::new("load comes late").enabled().var("ANDWEORC_DURATION", LONGER);
    assert_done(&program.run());
    let run = program.profile();
    let [samples] = run.samples.as_slice() else { panic!("observed once: {run:?}") };
    let ran = samples.targets.iter().filter(|time| time.waits.is_none()).map(|time| time.busy_ns);
    assert!(ran.sum::<u64>() > samples.real_ns / 3, "idle for most of that: {samples:?}");
}

#[test]
fn an_experiment_that_slows_the_program_too_much_is_ended_and_not_tried_again() {
    let program = Program::new("saturates")
        .enabled()
        .var("ANDWEORC_SPEEDUPS", "0.9")
        .var("ANDWEORC_TARGETS", "target")
        // Far below what it does, also where the target does not always get a processor.
        .var("ANDWEORC_MAX_SLOWDOWN", "1.01")
        .var("ANDWEORC_DURATION", LONGER);
    assert_done(&program.run());
    let run = program.profile();
    let tried: Vec<_> = run.experiments.iter().filter(|it| it.target.is_some()).collect();
    assert_eq!(
        tried.last().unwrap().discarded.as_deref(),
        Some("it slowed the program by more than a factor of 1.01"),
        "{run:?}"
    );
    assert!(run.notes.iter().any(|it| it.text.contains("ANDWEORC_MAX_SLOWDOWN")), "{run:?}");
    assert_eq!(reason(&run), "nothing left to test");

    let program = program.var("ANDWEORC_MAX_SLOWDOWN", "1000");
    assert_done(&program.run());
    let run = program.profile();
    // One: where a pause ends late by tens of ms, the credit for that looks as if the program were
    // slowed.
    let to_its_end =
        |it: &ExperimentRecord| it.target.is_some() && it.discarded.as_deref().is_none_or(was_busy);
    assert!(run.experiments.iter().any(to_its_end), "{run:?}");
}

#[test]
fn a_child_of_fork_is_neither_delayed_nor_profiled() {
    let program = Program::new("forks").enabled().var("ANDWEORC_DURATION", "30s");
    let ended = program.run();
    assert_done(&ended);
    let run = program.profile();
    assert!(run.end.is_some() && !run.experiments.is_empty(), "{run:?}");
}

#[test]
fn a_child_of_fork_that_returns_from_main_ends() {
    let program = Program::new("forks and returns").enabled().var("ANDWEORC_DURATION", LONGER);
    let ended = program.run();
    assert_done(&ended);
    assert_eq!(ended.stderr.matches("profile: ").count(), 1, "{ended:?}");
    assert_eq!(reason(&program.profile()), "main returned");
}

#[test]
fn exec_leaves_what_was_written() {
    let program = Program::new("execs").enabled().var("ANDWEORC_DURATION", LONGER);
    let ended = program.run();
    assert_done(&ended);
    let run = program.profile();
    assert!(run.end.is_none() && !run.experiments.is_empty(), "{run:?}");
}

#[test]
fn two_programs_never_write_one_profile() {
    let program = Program::new("starts another").enabled().var("ANDWEORC_DURATION", "30s");
    let ended = program.run();
    assert_done(&ended);
    let run = program.profile();
    assert!(run.end.is_some() && !run.experiments.is_empty() && !run.torn, "{run:?}");
}

#[test]
fn a_second_session_is_refused_and_the_first_goes_on() {
    assert_done(&Program::new("two sessions").run());
}

#[test]
fn a_session_outlives_a_runtime_and_goes_on_in_the_next() {
    assert_done(&Program::new("two runtimes, one session").run());
}

#[test]
fn the_second_runtime_of_main_is_not_delayed() {
    let program = Program::new("two runtimes").enabled().var("ANDWEORC_DURATION", "30s");
    let ended = program.run();
    assert_done(&ended);
    assert_eq!(printed(&ended, "growth_ns"), 0.0, "{ended:?}");
    assert_eq!(ended.stderr.matches("profile: ").count(), 1, "{ended:?}");
    assert_eq!(reason(&program.profile()), "main returned");
}
