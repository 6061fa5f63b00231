//! Advice of a run when the program was built so that samples can't be charged to lines, or not
//! even to functions.
//!
//! The programs are this test binary, stripped of more and more: [`program`] is what they do.
#![cfg(not(loom))]

use andweorc_core::point::point;
use andweorc_core::session::Session;
use andweorc_core::settings::Settings;
use andweorc_core::thread;
use andweorc_profile::{PointKind, Profile, Run};
use std::hint::black_box;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Inlined into `hot`.
#[inline(always)]
fn helper(mut x: u64, mut left: u64) -> u64 {
    while left > 0 {
        x ^= (x << 7) ^ left;
        left -= 1;
    }
    x
}

#[inline(never)]
fn hot(rounds: u64) -> u64 {
    helper(black_box(1), rounds)
}

#[test]
#[ignore = "the program that the other test runs"]
fn program() {
    let Ok(wanted) = std::env::var("STRIPPED_TEST_TARGETS") else { return };
    let mut settings = Settings::default();
    settings.out = Some("profile.jsonl".into());
    let seconds = std::env::var("STRIPPED_TEST_SECONDS").unwrap();
    settings.duration = Duration::from_secs(seconds.parse().unwrap());
    settings.targets = wanted.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
    let item = point(PointKind::Progress, "item", None, None, true);
    let stop = AtomicBool::new(false);
    let session = Session::start(settings).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            thread::enable();
            thread::register();
            while !stop.load(Ordering::SeqCst) {
                black_box(hot(100_000));
                item.hit();
                thread::catch_up();
            }
        });
        session.wait();
        stop.store(true, Ordering::SeqCst);
    });
}

/// Starts the program that was built so, with these targets, for so long, in a folder of its own.
fn start(program: &Path, wanted: &str, seconds: u32) -> (Child, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let child = Command::new(program)
        .args(["program", "--exact", "--ignored"])
        .current_dir(folder.path())
        .env("STRIPPED_TEST_TARGETS", wanted)
        .env("STRIPPED_TEST_SECONDS", seconds.to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    (child, folder)
}

#[test]
fn the_advice_is_that_for_what_was_done_to_the_program() {
    let built = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let strip = |how: &str| {
        let path = folder.path().join(how);
        let status = Command::new("objcopy").arg(how).arg(&built).arg(&path).status();
        status.is_ok_and(|it| it.success()).then_some(path)
    };
    let (Some(symbols), Some(stripped)) = (strip("--strip-debug"), strip("--strip-all")) else {
        return println!("skipped: there is no objcopy");
    };
    const NO_LINES: &str = "has no line information";
    const STRIPPED: &str = "is stripped";
    let cases = [
        (&built, "functions", [None, None]),
        (&built, "lines", [None, None]),
        (&symbols, "", [Some(NO_LINES), None]),
        (&symbols, "lines", [Some(NO_LINES), Some("ANDWEORC_TARGETS, `lines`")]),
        (&symbols, "functions", [Some(NO_LINES), Some("inlined functions are not seen")]),
        (&symbols, "function:stripped::helper", [Some(NO_LINES), Some("no target is named")]),
        (&stripped, "", [Some(STRIPPED), Some("`strip`")]),
        (&stripped, "lines", [Some(STRIPPED), Some("`strip`")]),
        (&stripped, "functions", [Some(STRIPPED), Some("ANDWEORC_TARGETS, `functions`")]),
        (&stripped, "function:stripped::hot", [Some(STRIPPED), Some("no target is named")]),
    ];
    let mut left = cases.to_vec();
    let mut wrong = Vec::new();
    // A machine that is busy with other things may need longer to come to the first experiment.
    for seconds in [4, 12, 36] {
        let started: Vec<_> =
            left.into_iter().map(|case| (case, start(case.0, case.1, seconds))).collect();
        left = Vec::new();
        wrong.clear();
        for (case, (mut child, folder)) in started {
            assert!(child.wait().unwrap().success());
            let (program, wanted, expected) = case;
            let profile = Profile::read(&folder.path().join("profile.jsonl")).unwrap();
            let run = &profile.runs[0];
            let told = |words: &str| run.notes.iter().any(|note| note.text.contains(words));
            if told("SIGPROF") || told("by cpu timer") {
                println!("skipped: {:?}", run.notes);
                continue;
            }
            let other = [NO_LINES, STRIPPED].iter().any(|it| told(it) && expected[0] != Some(it));
            let finds_hot = wanted == "functions" && program != &stripped;
            // Without a choice, functions are targets where the run has time for them.
            let may_find = wanted.is_empty() && program != &stripped;
            let is_right = !other
                && expected.iter().flatten().all(|words| told(words))
                && (may_find || finds_hot == tested(run).contains(&"stripped::hot"));
            if !is_right {
                wrong.push(format!(
                    "{}, `{wanted}`: {:?}, {:?}",
                    program.display(),
                    run.notes,
                    tested(run)
                ));
                left.push(case);
            }
        }
        if left.is_empty() {
            break;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The names of the targets of experiments.
fn tested(run: &Run) -> Vec<&str> {
    let tested = |id| run.experiments.iter().any(|it| it.target == Some(id));
    run.targets.iter().filter(|it| tested(it.id)).map(|it| it.name.as_str()).collect()
}
