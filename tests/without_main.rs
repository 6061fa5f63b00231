//! `ANDWEORC_ENABLED=1` in programs without `#[andweorc::main]`: the layer, the subscriber and the
//! builder of a runtime start the session. It ends with the program, whatever that does, and gives
//! way to one that the program starts itself.
//!
//! The programs are this test binary, run again: [`child`] is what they do.

#[path = "without_main/child.rs"]
mod child;
#[path = "switch/parent.rs"]
#[allow(dead_code, reason = "shared with the tests of the switch, which use all of it")]
mod parent;

use andweorc_profile::{Profile, Run};
use child::DONE;
use nix::sys::signal::Signal;
use parent::{Ended, Program, reason};
use std::os::unix::process::ExitStatusExt;

/// A budget that no program lives to see.
const LONGER: &str = "60s";

/// The programs. Its own exit code tells that it came to its end.
#[test]
#[ignore = "the program that the other tests run"]
fn child() {
    child::main();
}

/// Asserts that the program ended with the status that it has without andweorc, and that one report
/// was printed.
fn assert_profiled(program: &Program, ended: &Ended) -> Run {
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
    assert_eq!(ended.stderr.matches("profile: ").count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains("before its report was ready"), "{ended:?}");
    program.profile()
}

fn assert_experimented(program: &Program, ended: &Ended) -> Run {
    let run = assert_profiled(program, ended);
    assert!(!run.experiments.is_empty() && !run.torn, "{run:?}");
    run
}

#[test]
fn runtime_built_by_hand_takes_part() {
    let program = Program::new("builder").enabled().var("ANDWEORC_DURATION", LONGER);
    let run = assert_experimented(&program, &program.run());
    assert_eq!(reason(&run), "the program exited");
}

#[test]
fn layer_and_subscriber_start_the_session_under_tokios_own_main() {
    for name in ["layer", "subscriber"] {
        let program = Program::new(name).enabled().var("ANDWEORC_DURATION", LONGER);
        let run = assert_experimented(&program, &program.run());
        assert_eq!(reason(&run), "the program exited");
        assert!(run.points.iter().any(|point| point.name == "request"), "{run:?}");
    }
}

#[test]
fn session_that_ends_by_itself_prints_its_report_while_the_program_goes_on() {
    let program = Program::new("endless").enabled().var("ANDWEORC_DURATION", "2s");
    let mut process = program.start();
    process.await_stderr("profile: ");
    assert_eq!(reason(&program.profile()), "time");
    process.signal(Signal::SIGTERM);
    let ended = process.wait();
    assert_eq!(ended.status.signal(), Some(Signal::SIGTERM as i32), "{ended:?}");
}

#[test]
fn signals_end_the_profile_first() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let program = Program::new("endless").enabled().var("ANDWEORC_DURATION", LONGER);
        let mut process = program.start();
        program.await_experiment(&mut process);
        process.signal(signal);
        let ended = process.wait();
        assert_eq!(ended.status.signal(), Some(signal as i32), "{ended:?}");
        assert!(ended.stderr.contains("profile: "), "{ended:?}");
        assert_eq!(reason(&program.profile()), format!("signal {}", signal.as_str()));
    }
}

#[test]
fn exit_on_any_thread_prints_the_report_and_keeps_its_status() {
    let program = Program::new("exits elsewhere").enabled().var("ANDWEORC_DURATION", LONGER);
    let run = assert_profiled(&program, &program.run());
    assert_eq!(reason(&run), "the program exited");
}

#[test]
fn short_program_gets_a_report_that_says_so() {
    let program = Program::new("short").enabled();
    let ended = program.run();
    let run = assert_profiled(&program, &ended);
    assert!(run.experiments.is_empty() && ended.stderr.contains("watched for"), "{ended:?}");
}

#[test]
fn report_that_cannot_be_printed_does_not_hold_up_the_exit() {
    let program = Program::new("nobody reads").enabled().var("ANDWEORC_DURATION", LONGER);
    let ended = program.run();
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
    assert_eq!(reason(&program.profile()), "the program exited");
}

#[test]
fn child_of_fork_that_exits_leaves_the_session_alone() {
    let program = Program::new("forks").enabled().var("ANDWEORC_DURATION", LONGER);
    let run = assert_experimented(&program, &program.run());
    assert_eq!(reason(&run), "the program exited");
}

#[test]
fn session_in_code_is_not_refused_whichever_comes_first() {
    for name in ["session after", "session after experiments", "session before"] {
        let program = Program::new(name).enabled().var("ANDWEORC_DURATION", LONGER);
        let ended = program.run();
        assert_eq!(ended.status.code(), Some(DONE), "{name}: {ended:?}");
        let gave_way = ended.stderr.contains("gave way to one that the program started");
        assert_eq!(gave_way, name != "session before", "{name}: {ended:?}");
        let own = Profile::read(&program.directory().join(child::OWN)).unwrap();
        assert_eq!(reason(&own.runs[0]), "as the program likes");
    }
}

#[test]
fn session_in_code_may_write_to_the_same_profile() {
    let program = Program::new("session to the same file").enabled();
    let program = program.var("ANDWEORC_DURATION", LONGER);
    let ended = program.run();
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
    assert_eq!(reason(&program.profile()), "as the program likes");
}

#[test]
fn classic_experiments_are_not_refused_either() {
    let ended = Program::new("classic").enabled().var("ANDWEORC_DURATION", LONGER).run();
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
}

#[test]
fn main_that_comes_later_takes_the_session_over() {
    let program = Program::new("main after layer").enabled().var("ANDWEORC_DURATION", LONGER);
    let ended = program.run();
    let run = assert_experimented(&program, &ended);
    assert_eq!(reason(&run), "main returned");
}

#[test]
fn one_session_a_process() {
    let program = Program::new("many starts").enabled().var("ANDWEORC_DURATION", "1s");
    assert_profiled(&program, &program.run());
}

#[test]
fn wrong_setting_is_told_once_and_the_program_runs_unprofiled() {
    let plain = Program::new("many starts").run();
    let ended = Program::new("many starts").enabled().var("ANDWEORC_SPEEDUPS", "25").run();
    ended.assert_same_as(&plain);
    assert_eq!(ended.stderr.matches("andweorc: ").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("not profiling: ANDWEORC_SPEEDUPS is `25`"), "{ended:?}");
}

#[test]
fn nothing_is_started_where_it_is_not_enabled() {
    for off in [None, Some("0")] {
        let program = Program::new("looks around");
        let program = off.into_iter().fold(program, |it, off| it.var("ANDWEORC_ENABLED", off));
        let ended = program.run();
        assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
        assert_eq!(ended.stderr, "", "{ended:?}");
        assert!(program.directory().read_dir().unwrap().next().is_none(), "it wrote something");
    }
}

#[test]
fn program_in_which_nothing_starts_it_is_told() {
    let plain = Program::new("nothing starts it").run();
    let program = Program::new("nothing starts it").enabled();
    let ended = program.run();
    ended.assert_same_as(&plain);
    assert_eq!(plain.stderr, "");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("nothing in the program has switched profiling on"), "{ended:?}");
    assert!(ended.stderr.contains("#[andweorc::main]"), "{ended:?}");
}
