//! A program that adds the layer of andweorc as `docs/book/src/how-to/add.md` says writes the same
//! logs, line by line, profiled or not.
//!
//! The programs are this test binary, run again: [`child`] is what they do.

#[path = "logs/child.rs"]
mod child;
#[path = "switch/parent.rs"]
#[allow(dead_code, reason = "shared with the tests of the switch, which use all of it")]
mod parent;

use child::DONE;
use parent::Program;

/// The programs. Its own exit code tells that it came to its end.
#[test]
#[ignore = "the program that the other tests run"]
fn child() {
    child::main();
}

/// Values of RUST_LOG: not set, empty, a level, one for a target, a span.
const RUST_LOG: [Option<&str>; 6] =
    [None, Some(""), Some("info"), Some("debug"), Some("warn,logs=trace"), Some("[request]=debug")];

/// The lines that the program logs, without their times.
fn lines(program: &Program) -> Vec<String> {
    let ended = program.run();
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
    let is_log = |line: &&str| line.starts_with("20");
    let text = |line: &str| line.split_once(' ').unwrap().1.to_owned();
    ended.stdout.lines().filter(is_log).map(text).collect()
}

/// Asserts that the program logs the same `with` the layer as `without`, whatever RUST_LOG is.
/// Returns the number of lines for each value.
#[track_caller]
fn assert_same_logs(without: &'static str, with: &'static str) -> Vec<usize> {
    let counts = RUST_LOG.map(|rust_log| {
        let set = |program: Program| match rust_log {
            Some(level) => program.var("RUST_LOG", level),
            None => program,
        };
        let before = lines(&set(Program::new(without)));
        assert_eq!(lines(&set(Program::new(with))), before, "off, RUST_LOG {rust_log:?}");
        let profiled = set(Program::new(with)).enabled();
        assert_eq!(lines(&profiled), before, "on, RUST_LOG {rust_log:?}");
        assert!(profiled.profile().end.is_some(), "it was profiled");
        before.len()
    });
    counts.to_vec()
}

#[test]
fn logs_without_a_filter_of_their_own_keep_their_level() {
    let counts = assert_same_logs("fmt().init()", "a level, and andweorc");
    assert!(counts.iter().all(|count| *count == counts[0] && *count > 0), "{counts:?}");
    assert!(lines(&Program::new("fmt().init()")).iter().any(|it| it.contains("by the crate log")));
}

#[test]
fn logs_with_rust_log_keep_it() {
    let counts = assert_same_logs("fmt::init()", "RUST_LOG, and andweorc");
    assert!(counts[3] > counts[2] && counts[2] > counts[0], "{counts:?}");
    let again = assert_same_logs("with_env_filter", "RUST_LOG, and andweorc");
    assert_eq!(again, counts);
}

#[test]
fn logs_of_a_registry_with_a_global_filter_keep_it() {
    assert_same_logs("registry", "RUST_LOG, and andweorc");
}

/// The filter is given to the logs so that it hides no spans from andweorc.
#[test]
fn andweorc_sees_spans_that_the_logs_leave_out() {
    let program = Program::new("RUST_LOG, and andweorc").enabled().var("RUST_LOG", "error");
    let program = program.var("LOGS_TEST_MILLIS", "1500");
    assert_eq!(lines(&program).iter().filter(|line| !line.contains("ERROR")).count(), 0);
    let run = program.profile();
    assert!(!run.notes.iter().any(|note| note.text.contains("no span was seen")), "{run:?}");
    assert!(run.targets.iter().any(|target| target.name == "query"), "{run:?}");
}

#[test]
fn docs_say_what_is_tested_here() {
    let readme = include_str!("../docs/book/src/how-to/add.md");
    let child = include_str!("logs/child.rs");
    let flat = |text: &str| text.split_whitespace().collect::<String>();
    for form in [
        "fmt::layer().with_filter(LevelFilter::INFO)",
        "fmt::layer().with_filter(EnvFilter::from_default_env())",
        "registry().with(logs).with(andweorc::layer()).init();",
    ] {
        assert!(flat(readme).contains(form) && flat(child).contains(form), "{form}");
    }
}
