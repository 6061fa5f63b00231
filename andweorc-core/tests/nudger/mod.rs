//! How often the thread looks that tells others to pay.

use andweorc_core::clock;
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::target::target;
use andweorc_core::time::Speedup;
use andweorc_profile::TargetKind;
use std::fs;

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

/// Looks per second, in a baseline and in an experiment.
fn looks(experimenter: &mut Experimenter) -> [f64; 2] {
    let held = target(TargetKind::Span, "held", None, None);
    [(None, 0.0), (Some(held), 0.5)].map(|(target, speedup)| {
        let (before, begun) = (sleeps(), clock::now());
        let speedup = Speedup::new(speedup).unwrap();
        experimenter.run(target, speedup, Phases::from_millis(1, 500, 1)).record();
        (sleeps() - before) as f64 / (clock::now() - begun).as_secs_f64()
    })
}

/// Asserts that the thread that tells others to pay looks rarely, and often after `then`.
pub(crate) fn looks_rarely_and_then_often(then: impl FnOnce()) {
    let mut experimenter = Experimenter::new().expect("the only one in this process");
    // It looks at most 63 times a second, sleeps once for each look, and once before it is told to.
    let rarely = looks(&mut experimenter);
    assert!(rarely.iter().all(|&looks| looks < 80.0), "{rarely:?} looks a second");
    then();
    // On a machine that has no time for it, it looks rarely whatever it wants.
    let often = (0..20).any(|_| looks(&mut experimenter).iter().all(|&looks| looks > 160.0));
    assert!(often, "it looks as rarely as before");
}
