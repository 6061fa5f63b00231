//! Programs on tokio's driver, which notices late what comes from outside, and on a machine on which threads need time to wake up.
//!
//! They are predicted wrongly by the rules that ship, and each cause has a rule here that helps.

use crate::catalogue::handlers_of;
use crate::measure::{Comparison, Errors, Truth, in_parallel};
use crate::program::*;
use crate::rules::{Arrivals, Releases, Rules, SHIPPED};
use crate::{errors, percent};

/// In percent.
const SPEEDUPS: [u32; 2] = [25, 75];

/// What is held comes back as it came: through the driver.
const THROUGH_DRIVER: Rules = Rules {
    name: "held wakes come back through the driver",
    releases: Releases::ThroughDriver,
    ..SHIPPED
};

const FOLLOWING: Rules =
    Rules { name: "and requests follow each other", requests_follow: true, ..THROUGH_DRIVER };

const KNOWN: Rules =
    Rules { name: "and it is known when all came", arrivals: Arrivals::Known, ..FOLLOWING };

const NOTICED: Rules =
    Rules { name: "but noticed is arrived", arrivals: Arrivals::Noticed, ..FOLLOWING };

/// Four handlers, each of which waits for the world outside with the lock held.
fn lock_over_a_wait() -> Program {
    let mut p = Program::new("lock held over a wait", 2).late_looks();
    let lock = p.semaphore(1);
    let mut ops = vec![span("check", 300.0)];
    ops.extend(locked(lock, &[span("stock", 300.0), wait("journal", 400.0)]));
    ops.extend([wait("bank", 1000.0), Op::Progress]);
    p.tasks("handler", 4, &ops);
    p.targets(&[Target::Span("stock"), Target::Span("check")]).units(600).seeds(4)
}

/// Four connections, and a query for each request.
fn requests(name: Tag, think: Op) -> Program {
    let mut p = Program::new(name, 2).late_looks();
    let ops = [
        think,
        Op::Begin,
        span("parse", 150.0),
        wait("db", 1500.0),
        span("render", 400.0),
        Op::End,
        Op::Progress,
    ];
    p.tasks("connection", 4, &ops);
    p.targets(&[Target::Span("parse"), Target::Span("render")]).units(600).seeds(4)
}

fn all() -> Vec<Program> {
    vec![
        lock_over_a_wait(),
        requests("requests with spare time", wait("think", 500.0)),
        handlers_of("late handlers, low load", 2, 3, 6000.0).late_looks(),
        handlers_of("late handlers, medium load", 2, 6, 2500.0).late_looks(),
        handlers_of("late handlers, saturating load", 2, 14, 500.0).late_looks(),
        requests("requests of unseen connections", unseen("think", 500.0)),
    ]
}

/// Each program by each of the rules.
fn compare(programs: &[Program], rules: &[Rules]) -> Vec<Vec<Vec<Comparison>>> {
    in_parallel(programs, |program| {
        let truth = Truth::of(program, &SPEEDUPS.map(percent), SHIPPED).unwrap();
        let by = |rules: &Rules| truth.compare(*rules, |_| true).unwrap();
        rules.iter().map(by).collect()
    })
}

/// Three causes, from the greatest on.
///
/// 1. A wake that was held is passed on by a thread that is no worker, and tokio gets the worker going for it that fell asleep last. One that
///    comes through the driver goes to the worker that sleeps there, and while that is busy nobody looks: the next one lies there until it is done. So
///    wakes that are held have workers run side by side where the program would have one do everything. Passed on through the driver they are noticed when
///    they would have been.
/// 2. A request to a connection that nobody profiles begins at V: the wait for it was not stretched. It should go on from the clock of the
///    request before.
/// 3. When that came which was noticed late is a guess. What is left is hardly more than that.
#[test]
fn what_comes_late_is_predicted_once_it_comes_back_through_the_driver() {
    let (programs, rules) = (all(), [SHIPPED, THROUGH_DRIVER, FOLLOWING, KNOWN, NOTICED]);
    let compared = compare(&programs, &rules);
    for (program, by_rules) in programs.iter().zip(&compared) {
        println!("{}", program.name);
        for (n, Comparison { case, truth, .. }) in by_rules[0].iter().enumerate() {
            let what = format!("{} {}", case.target, case.speedup);
            print!("    {what:<18} {truth:>6.2}:");
            by_rules.iter().for_each(|all| print!(" {:>6.2}", all[n].predicted));
            println!();
        }
    }
    println!("{:<44} {:>6} {:>6} {:>6}", "rules, with late looks", "mean", "p95", "worst");
    let of = |n: usize| errors(compared.iter().flat_map(|by_rules| &by_rules[n]));
    for (n, rules) in rules.iter().enumerate() {
        let Errors { mean, p95, worst, .. } = of(n);
        println!("{:<44} {mean:>6.2} {p95:>6.2} {worst:>6.2}", rules.name);
    }
    let [shipped, through_driver, following, known, noticed] = [0, 1, 2, 3, 4].map(of);
    assert!(shipped.worst > 15.0, "it was the lock that is held over a wait: {shipped:?}");
    assert!(2.0 * through_driver.mean < shipped.mean, "{through_driver:?}");
    assert!(following.mean < through_driver.mean, "{following:?}");
    assert!(following.mean <= 1.0 && following.worst <= 6.0, "{following:?}");
    assert!(known.mean <= 0.6 && known.worst <= 2.0, "{known:?}");
    assert!(noticed.mean > 2.0 * following.mean && noticed.worst > 10.0, "{noticed:?}");
}
