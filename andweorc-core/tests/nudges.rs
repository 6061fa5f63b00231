//! The thread that tells others to pay looks often once somebody lagged, and rarely as long as nobody did. A process of its own, in which nobody else lags.
#![cfg(not(loom))]

use andweorc_core::clock;
use andweorc_core::experiment::{Experimenter, Lengths};
use andweorc_core::profile::TargetKind;
use andweorc_core::target::{Target, target};
use andweorc_core::thread;
use andweorc_core::time::Speedup;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

/// How often the thread has slept so far.
fn sleeps() -> u64 {
    fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| task.unwrap().path())
        // A thread may end meanwhile.
        .filter(|task| {
            fs::read_to_string(task.join("comm")).is_ok_and(|it| it.trim() == "andweorc-nudge")
        })
        .map(|task| fs::read_to_string(task.join("status")).unwrap())
        .map(|status| {
            let line = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
            line.unwrap().trim().parse::<u64>().unwrap()
        })
        .sum()
}

/// How many times a second it looks during an experiment, a baseline when there is no target.
fn looks(experimenter: &mut Experimenter, target: Option<&'static Target>) -> f64 {
    let [settle, measure, recover] = [1, 500, 1].map(Duration::from_millis);
    let speedup = target.map_or(Speedup::ZERO, |_| Speedup::new(0.5).unwrap());
    let (before, begun) = (sleeps(), clock::now());
    experimenter.hold(target, speedup, Lengths { settle, measure, recover });
    (sleeps() - before) as f64 / (clock::now() - begun).as_secs_f64()
}

#[test]
fn it_looks_often_once_somebody_lagged() {
    let mut experimenter = Experimenter::new().expect("the only one in this process");
    let held = target(TargetKind::Span, "held", None, None);
    // It looks at most 63 times a second, sleeps once for each look, and once before it is told to.
    let rarely = |looks: f64| looks < 80.0;
    assert!(rarely(looks(&mut experimenter, None)));
    assert!(rarely(looks(&mut experimenter, Some(held))), "nobody owes anything");
    let done = AtomicBool::new(false);
    scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let entered = thread::enter(held, clock::now());
                sleep(Duration::from_millis(5));
                thread::exit(entered, clock::now());
            }
        });
        scope.spawn(|| {
            thread::register().expect("there is room for two threads");
            while !done.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
        });
        // On a machine that has no time for it it looks rarely whatever it wants.
        let often = |looks: f64| looks > 160.0;
        let lags = (0..20).any(|_| often(looks(&mut experimenter, Some(held))));
        done.store(true, Ordering::SeqCst);
        assert!(lags, "somebody lags");
        let after = (0..20).any(|_| often(looks(&mut experimenter, None)));
        assert!(after, "in baselines too");
    });
}
