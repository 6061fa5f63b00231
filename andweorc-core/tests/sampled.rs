//! A run on a program of plain threads in which nothing is timed.

use andweorc_core::point::point;
use andweorc_core::session::Session;
use andweorc_core::settings::Settings;
use andweorc_core::thread;
use andweorc_profile::{PointKind, Profile, TargetKind, TargetRecord};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Nothing but operators: what is called would be another function.
#[inline(never)]
fn hot(rounds: u64) -> u64 {
    let (mut x, mut left) = (black_box(1u64), rounds);
    while left > 0 {
        x ^= (x << 7) ^ left;
        left -= 1;
    }
    x
}

#[test]
fn lines_and_functions_are_found_and_these_tested_when_nothing_is_timed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sampled.jsonl");
    let mut settings = Settings::default();
    settings.out = Some(path.clone());
    settings.duration = Duration::from_secs(6);
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
        let outcome = session.wait();
        stop.store(true, Ordering::SeqCst);
        println!("{}", outcome.report());
    });
    let profile = Profile::read(&path).unwrap();
    let run = &profile.runs[0];
    let notes: Vec<&str> = run.notes.iter().map(|note| note.text.as_str()).collect();
    let told = |words: &str| notes.iter().any(|note| note.contains(words));
    if told("by cpu timer") {
        return println!("skipped: {notes:?}");
    }
    assert!(told("sampled by perf task-clock"), "{notes:?}");
    let here = run.targets.iter().find(|target| {
        target.kind == TargetKind::Function
            && target.name.ends_with("hot")
            && run.experiments.iter().any(|it| it.target == Some(target.id))
    });
    assert!(here.is_some(), "the function was not tested: {:?}", run.targets);
    let is_line = |it: &TargetRecord| {
        it.kind == TargetKind::Line
            && it.file.as_ref().is_some_and(|file| file.ends_with("tests/sampled.rs"))
    };
    assert!(run.targets.iter().any(is_line), "no line of this file: {:?}", run.targets);
    let delayed = run.experiments.iter().filter(|it| it.target == here.map(|it| it.id));
    assert!(delayed.map(|it| it.delay_ns).sum::<u64>() > 0, "samples were credited");
}
