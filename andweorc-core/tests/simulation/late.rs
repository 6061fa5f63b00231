//! Programs on tokio's driver, which notices late what comes from outside, and on a machine on
//! which threads need time to wake up.
//!
//! Those that are predicted within the bounds of the catalogue are part of it; each of the others
//! has its cause here.

use crate::catalogue::handlers_of;
use crate::percent;
use crate::program::*;
use crate::rules::{Arrivals, LATE_ABLATIONS, Rules, SHIPPED};
use crate::tables::{compare, errors_by, print_cases, print_errors};

/// In percent.
const SPEEDUPS: [u32; 3] = [25, 75, 90];

const BY_THREAD: Rules = LATE_ABLATIONS[0];

const FOLLOWING: Rules =
    Rules { name: "and requests follow each other", requests_follow: true, ..SHIPPED };

const KNOWN: Rules =
    Rules { name: "and it is known when all came", arrivals: Arrivals::Known, ..FOLLOWING };

const GUESSED: Rules =
    Rules { name: "but nobody watches the sockets", arrivals: Arrivals::Guessed, ..FOLLOWING };

const NOTICED: Rules =
    Rules { name: "but noticed is arrived", arrivals: Arrivals::Noticed, ..FOLLOWING };

/// Four handlers, each of which waits for the world outside with the lock held.
fn lock_over_a_wait(name: Tag, wait: fn(Tag, f64) -> Op) -> Program {
    let mut p = Program::new(name, 2).late_looks();
    let lock = p.semaphore(1);
    let mut ops = vec![span("check", 300.0)];
    ops.extend(locked(lock, &[span("stock", 300.0), wait("journal", 400.0)]));
    ops.extend([wait("bank", 1000.0), Op::Progress]);
    p.tasks("handler", 4, &ops);
    p.targets(&[Target::Span("stock"), Target::Span("check")]).units(600).seeds(4)
}

/// Six handlers, of which two at a time may work and wait for the world outside.
fn semaphore_over_a_wait() -> Program {
    let mut p = Program::new("semaphore over a wait that varies", 2).late_looks();
    let permits = p.semaphore(2);
    let mut ops = vec![];
    ops.extend(locked(permits, &[span("fetch", 300.0), wait_spread("store", 600.0)]));
    ops.extend([span("encode", 200.0), Op::Progress]);
    p.tasks("handler", 6, &ops);
    p.targets(&[Target::Span("fetch"), Target::Span("encode")]).units(600).seeds(4)
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

fn low_load() -> Program {
    handlers_of("late handlers, low load", 2, 3, 6000.0).late_looks()
}

fn medium_load() -> Program {
    handlers_of("late handlers, medium load", 2, 6, 2500.0).late_looks()
}

/// Programs with late looks that are predicted well enough.
pub(crate) fn catalogue() -> Vec<Program> {
    let parts = [Target::Span("parse"), Target::Span("render")];
    vec![
        requests("requests with spare time", wait("think", 500.0)),
        low_load().targets(&parts),
        medium_load().targets(&parts),
        lock_over_a_wait("lock over a wait that varies", wait_spread),
        semaphore_over_a_wait(),
    ]
}

/// The rest.
fn beyond() -> Vec<Program> {
    let outside = [Target::Wait("db")];
    vec![
        lock_over_a_wait("lock held over a wait", wait),
        low_load().targets(&outside),
        medium_load().targets(&outside),
        handlers_of("late handlers, saturating load", 2, 14, 500.0).late_looks(),
        requests("requests of unseen connections", unseen("think", 500.0)),
    ]
}

/// Compares programs that the rules that ship are worse at. The causes:
///
/// 1. A request to a connection that nobody profiles begins at V: the wait for it was not
///    stretched. It should go on from the clock of the request before.
/// 2. When that came which was noticed late is a guess, where waits are all alike or nobody has
///    seen it come.
/// 3. A wait that is the target grows D until its end is noticed. What it grew too much is taken
///    back then, but who paid it meanwhile has lost the time. (Where it is known when all came, it
///    ends then.)
/// 4. The answer comes late by as much however fast it was, but what is measured is one wait: all
///    of it is made faster.
#[test]
fn event_noticed_late_is_predicted_once_its_arrival_is_known() {
    let (programs, rules) = (beyond(), [SHIPPED, BY_THREAD, FOLLOWING, KNOWN, GUESSED, NOTICED]);
    let compared = compare(&programs, &SPEEDUPS.map(percent), &rules);
    print_cases(&programs, &compared);
    let all = print_errors("rules, with late looks", &rules, |n| errors_by(&compared, n));
    let [shipped, by_thread, following, known, guessed, noticed] = all;
    assert!(by_thread.worst > 15.0, "it was the lock that is held over a wait: {by_thread:?}");
    assert!(shipped.mean < by_thread.mean, "{shipped:?}");
    assert!(following.mean < shipped.mean, "{following:?}");
    assert!(known.mean < following.mean, "{known:?}");
    assert!(following.mean < guessed.mean, "{guessed:?}");
    assert!(noticed.mean > 2.0 * following.mean && noticed.worst > 10.0, "{noticed:?}");
}
