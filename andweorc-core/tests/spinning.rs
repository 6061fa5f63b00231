//! A run on two plain threads of which one waits for the other by spinning.

use andweorc_core::point::point;
use andweorc_core::session::Session;
use andweorc_core::settings::Settings;
use andweorc_core::thread;
use andweorc_profile::estimate::{TargetSummary, analyse};
use andweorc_profile::{PointKind, Profile, Run};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// How long the tries last, in seconds. On a machine that is busy with something else experiments
/// are discarded, or say too little: the next try has more of them.
const TRIES: [u64; 3] = [15, 30, 60];

/// Nothing but operators: what is called would be another function.
#[inline(never)]
fn make(rounds: u64) -> u64 {
    let (mut x, mut left) = (black_box(1u64), rounds);
    while left > 0 {
        x ^= (x << 7) ^ left;
        left -= 1;
    }
    x
}

#[inline(never)]
fn take(rounds: u64) -> u64 {
    let (mut x, mut left) = (black_box(2u64), rounds);
    while left > 0 {
        x ^= (x << 9) ^ left;
        left -= 1;
    }
    x
}

#[inline(never)]
fn wait_by_spinning(made: &AtomicU64, taken: u64, stop: &AtomicBool) {
    while made.load(SeqCst) == taken && !stop.load(SeqCst) {
        spin_loop();
    }
}

/// A machine that disturbs more experiments of a run is busy with something else.
const MOST_DISCARDED: usize = 2;

/// Profiles the threads for so long.
fn profiled(seconds: u64) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spinning.jsonl");
    let mut settings = Settings::default();
    settings.out = Some(path.clone());
    settings.duration = Duration::from_secs(seconds);
    settings.targets = vec!["functions".to_owned()];
    let item = point(PointKind::Progress, "item", None, None, true);
    let (made, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let session = Session::start(settings).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            thread::enable();
            thread::register();
            while !stop.load(SeqCst) {
                black_box(make(60_000));
                thread::catch_up();
                made.fetch_add(1, SeqCst);
            }
        });
        scope.spawn(|| {
            thread::enable();
            thread::register();
            for taken in 0.. {
                wait_by_spinning(&made, taken, &stop);
                if stop.load(SeqCst) {
                    break;
                }
                black_box(take(20_000));
                item.hit();
                thread::catch_up();
            }
        });
        let outcome = session.wait();
        stop.store(true, SeqCst);
        println!("{}", outcome.report());
    });
    Profile::read(&path).unwrap().runs.remove(0)
}

fn is(target: &TargetSummary, name: &str) -> bool {
    target.name.rsplit("::").next() == Some(name)
}

#[test]
fn work_fills_no_time_and_a_loop_that_waits_for_it_does() {
    let mut told = Vec::new();
    for seconds in TRIES {
        let run = profiled(seconds);
        let notes: Vec<&str> = run.notes.iter().map(|note| note.text.as_str()).collect();
        if notes.iter().any(|note| note.contains("by cpu timer")) {
            return println!("skipped: {notes:?}");
        }
        let is_recorded = run.experiments.iter().any(|one| one.sampled.len() > 1);
        assert!(is_recorded, "samples are recorded of the targets: {run:?}");
        let analysis = analyse(std::slice::from_ref(&run));
        let fills = |name| analysis.targets.iter().any(|it| is(it, name) && it.fills_time);
        assert!(!fills("make") && !fills("take"), "{:#?}", analysis.targets);
        if fills("wait_by_spinning") {
            return;
        }
        told.push((analysis.cores_used, analysis.cores_used_by_others, analysis.discarded));
    }
    // Others may begin only after the run has looked at what they use: its experiments tell then.
    let is_busy = |others: Option<f64>, discarded| {
        discarded > MOST_DISCARDED || others.is_none_or(|others| others > 0.1)
    };
    if told.iter().all(|&(_, others, discarded)| is_busy(others, discarded)) {
        return println!("skipped: the machine is busy with something else: {told:?}");
    }
    panic!("a loop that spins does not seem to fill time: {told:?}");
}
