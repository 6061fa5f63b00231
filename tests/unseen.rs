//! Spans that do not get to andweorc, or never end, are named in the report with the cause.
//!
//! The programs are this test binary, run again: [`child`] is what they do.

#[path = "unseen/child.rs"]
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

/// The notes of the profile of a program that came to its end, all of which are in the report.
fn notes(program: &Program) -> Vec<String> {
    let ended = program.run();
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
    let notes: Vec<_> = program.profile().notes.into_iter().map(|note| note.text).collect();
    // The report breaks its lines at 80 columns.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let report = words(&ended.stderr);
    assert!(notes.iter().all(|note| report.contains(&words(note))), "{notes:?}: {ended:?}");
    notes
}

/// Asserts that a program notes one thing with all these parts, and not what parts of `but` are in.
fn assert_told(program: &Program, parts: &[&str], but: &[&str]) {
    let notes = notes(program);
    let told = |note: &&String| parts.iter().all(|part| note.contains(part));
    assert_eq!(notes.iter().filter(told).count(), 1, "{parts:?}: {notes:#?}");
    let refuted = |note: &String| but.iter().any(|part| note.contains(part));
    assert!(!notes.iter().any(refuted), "{but:?}: {notes:#?}");
}

/// Profiled, with RUST_LOG as given.
fn program(name: &'static str, rust_log: &str) -> Program {
    Program::new(name).enabled().var("RUST_LOG", rust_log)
}

const WHOLE: &str = "a filter of the whole subscriber";
const ADVICE: &str = "fmt::layer().with_filter(..)";
const GENERIC: &str = "mark a unit of work";

#[test]
fn global_filter_by_level_is_the_cause() {
    for name in ["filter before", "filter after"] {
        let parts = [WHOLE, "more verbose than `warn`", "RUST_LOG is `warn`", ADVICE];
        assert_told(&program(name, "warn"), &parts, &[GENERIC]);
        // Nothing set is errors only.
        let parts = [WHOLE, "more verbose than `error`", ADVICE];
        assert_told(&program(name, ""), &parts, &[GENERIC]);
    }
    let parts = [WHOLE, "more verbose than `warn`", "with_max_level"];
    assert_told(&program("max level of fmt", ""), &parts, &[GENERIC]);
}

#[test]
fn global_filter_by_target_is_the_cause_wherever_it_is_added() {
    for name in ["filter before", "filter after"] {
        let parts = [WHOLE, "refuses `request`", "RUST_LOG is `info,unseen=warn`", ADVICE];
        assert_told(&program(name, "info,unseen=warn"), &parts, &[GENERIC]);
    }
}

#[test]
fn andweorcs_own_filter_is_told_apart() {
    let parts = ["andweorc's own filter refuses all", "`request`", "with_spans"];
    assert_told(&program("own filter", ""), &parts, &[WHOLE, GENERIC]);
}

#[test]
fn layer_that_is_not_installed_is_told() {
    let parts = ["in no subscriber that was installed", ".init()"];
    assert_told(&program("never installed", ""), &parts, &[WHOLE, GENERIC]);
    let parts = ["default of some threads only", ".init()"];
    assert_told(&program("on one thread", ""), &parts, &[WHOLE, GENERIC]);
    let parts = ["default of a scope that has ended", ".init()"];
    assert_told(&program("in a scope", ""), &parts, &[WHOLE, GENERIC]);
}

#[test]
fn hidden_spans_are_told_beside_points_that_were_hit() {
    let parts = ["no span was seen", WHOLE, "more verbose than `warn`"];
    assert_told(&program("filter beside points", "warn"), &parts, &["no progress point was hit"]);
}

#[test]
fn nothing_is_told_where_spans_are_seen_or_there_are_none() {
    let no_spans = ["no span was seen"];
    assert!(notes(&program("filter before", "info")).iter().all(|it| !it.contains(no_spans[0])));
    assert_told(&program("no spans", ""), &["no progress point was hit", GENERIC], &no_spans);
}

#[test]
fn spans_that_are_never_closed_are_named() {
    let parts =
        ["`request` was entered ", " times and never closed", "a guard held across an await"];
    assert_told(&program("never closed", ""), &parts, &[GENERIC]);
}

#[test]
fn spans_that_are_never_entered_are_named() {
    let parts = ["`request`", "closed and never entered", ".instrument(..)"];
    assert_told(&program("never entered", ""), &parts, &[GENERIC]);
    let parts = ["`request`", "neither left nor closed"];
    assert_told(&program("never left", ""), &parts, &[GENERIC]);
}

#[test]
fn intervals_that_are_never_ended_are_named() {
    let parts = ["`query`", "no interval went from `begin!` to `end!`"];
    assert_told(&program("never ended", ""), &parts, &[GENERIC]);
}

#[test]
fn wanted_names_that_are_known_and_idle_are_told_apart_from_unknown_ones() {
    let wanted = program("never closed beside points", "")
        .var("ANDWEORC_DURATION", "60s")
        .var("ANDWEORC_POINTS", "request,unit,nonsense")
        .var("ANDWEORC_TARGETS", "early,target,nonsense");
    let notes = notes(&wanted);
    for told in [
        "ANDWEORC_POINTS: `request` was not hit",
        "no point is named `nonsense` (points seen: ",
        "ANDWEORC_TARGETS: `early` did not run",
        "no target is named `nonsense` (targets seen: ",
    ] {
        assert!(notes.iter().any(|note| note.starts_with(told)), "{told}: {notes:#?}");
    }
}

#[test]
fn a_run_in_which_nothing_has_a_wanted_name_ends_soon_and_says_what_may_be_meant() {
    let wanted = |targets, points| {
        let program = program("without end", "")
            .var("ANDWEORC_DURATION", "10m")
            .var("ANDWEORC_TARGETS", targets)
            .var("ANDWEORC_POINTS", points)
            .var("CARGO_ANDWEORC_OPTIONS", "ANDWEORC_TARGETS");
        program.await_end(&mut program.start());
        let run = program.profile();
        assert_eq!(parent::reason(&run), "nothing has a name that was asked for");
        assert!(run.experiments.is_empty());
        run.notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
    };
    let targets = wanted("reqest,span:x", "request");
    let told = "no target is named `reqest`, `span:x`, did you mean `request`? (targets seen: ";
    assert!(targets.iter().any(|note| note.starts_with(told)), "{targets:#?}");
    assert!(targets.iter().any(|note| note.ends_with(": check --targets")), "{targets:#?}");
    let points = wanted("request", "reqest");
    let told = "no point is named `reqest`, did you mean `request`? (points seen: ";
    assert!(points.iter().any(|note| note.starts_with(told)), "{points:#?}");
    assert!(points.iter().any(|note| note.ends_with(": check ANDWEORC_POINTS")), "{points:#?}");
}

#[test]
fn a_program_without_load_is_told_while_it_runs() {
    let program = program("idle", "").var("ANDWEORC_DURATION", "10m");
    let mut process = program.start();
    program.await_run(&mut process, |run| !run.notes.is_empty());
    let run = program.profile();
    assert!(run.notes[0].text.starts_with("no request seen in the first 3 s"), "{:?}", run.notes);
    assert_eq!(run.end, None, "it waits for load");
}
