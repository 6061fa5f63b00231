//! A task that waits for several things outside at once, and what rules help.

use crate::percent;
use crate::program::*;
use crate::rules::{GoOn, Joined, Raise, Rules, SHIPPED};
use crate::tables::{compare, errors, print_cases, print_errors};

/// In percent.
const SPEEDUPS: [u32; 3] = [25, 50, 75];

const fn joined(name: &'static str, raise: Raise, go_on: GoOn) -> Rules {
    Rules { name, joined: Joined { raise, go_on }, ..SHIPPED }
}

const RULES: [Rules; 6] = [
    SHIPPED,
    joined("what comes does not raise the hold", Raise::Never, GoOn::NoneBegan),
    joined("waits count as begun by each poll", Raise::Once, GoOn::Never),
    joined("neither, as shipped before", Raise::Never, GoOn::Never),
    joined("by the number of wakers", Raise::Once, GoOn::NoMore),
    joined("what comes in the queue does not raise it", Raise::WhileHeld, GoOn::NoneBegan),
];

/// So many tasks that wait for these at once, and merge what came. Beside them is one that nobody
/// waits for.
fn asking(name: Tag, tasks: usize, waits: &[(Tag, f64)]) -> Program {
    let mut p = Program::new(name, 2);
    let all = waits.iter().map(|&(tag, us)| external(tag, us)).collect();
    p.tasks("asker", tasks, &[Op::ExternalAll(all), span("merge", 300.0), Op::Progress]);
    p.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);
    p.targets(&[Target::Span("merge"), Target::Span("other"), Target::Task("asker")]).seeds(4)
}

/// Tasks that serve two peers outside as they come.
fn selecting(name: Tag, tasks: usize) -> Program {
    let mut p = Program::new(name, 2);
    let branches = vec![
        (Branch::Source(external("left", 700.0)), vec![span("left", 150.0), Op::Progress]),
        (Branch::Source(external("right", 1100.0)), vec![span("right", 250.0), Op::Progress]),
    ];
    p.tasks("server", tasks, &[Op::Select(branches)]);
    p.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);
    p.targets(&[Target::Span("left"), Target::Span("right"), Target::Span("other")]).seeds(4)
}

/// Tasks that ask with a timeout, and wait once more after the answer.
fn guarded(name: Tag, timeout: f64) -> Program {
    let mut p = Program::new(name, 2);
    let branches = vec![
        (Branch::External(external("db", 700.0)), Vec::new()),
        (Branch::External(external("timeout", timeout)), Vec::new()),
    ];
    let ops = [Op::Select(branches), wait("disk", 500.0), span("use", 200.0), Op::Progress];
    p.tasks("asker", 3, &ops);
    p.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);
    p.targets(&[Target::Span("use"), Target::Span("other")]).seeds(4)
}

const TWO: [(Tag, f64); 2] = [("near", 1000.0), ("far", 1600.0)];
const THREE: [(Tag, f64); 3] = [("near", 400.0), ("middle", 1000.0), ("far", 1600.0)];

fn all() -> Vec<Program> {
    vec![
        asking("join! of two, 1 task", 1, &TWO),
        asking("join! of two, 4 tasks", 4, &TWO),
        asking("join! of two, 8 tasks", 8, &TWO),
        asking("join! of three, 8 tasks", 8, &THREE),
        asking("join! of two, 4 tasks, late looks", 4, &TWO).late_looks(),
        asking("join! of two, 8 tasks, late looks", 8, &TWO).late_looks(),
        guarded("a timeout, and another wait", 9000.0),
        guarded("a tight timeout, and another wait", 900.0),
        selecting("select of two sources, 2 tasks", 2),
        selecting("select of two sources, 4 tasks", 4),
        selecting("select of two sources, 4 tasks, late looks", 4).late_looks(),
    ]
}

/// A task has one clock. What it waits for outside comes at real times that were fixed before, each
/// due later by what D grew since it was asked for. Two rules keep that, and both are needed.
///
/// 1. What comes while the task is held for another answer, or is in the queue for it, raises the
///    hold: otherwise all that came is found once the first is due. While it is held once:
///    otherwise what comes again and again would hold it for ever.
/// 2. A poll that began no wait leaves those that go on as they were: otherwise what D grew before
///    it is lost to them.
///
/// The first has a price: of an answer and a timeout the first counts, and the answer waits until
/// the timeout is due that ran out while it was held. The second goes by the wakers that the poll
/// cloned. How many there are does not tell: a timeout that ended makes place for another wait,
/// which would be stretched by what D grew before it began.
///
/// A loop over sources of its own (`select!`) is off by more, since it begins to listen anew in
/// each poll that did something.
#[test]
fn waits_at_once_are_predicted_once_each_is_held_and_goes_on() {
    let programs = all();
    let compared = compare(&programs, &SPEEDUPS.map(percent), &RULES);
    print_cases(&programs, &compared);
    let of = |wanted: &str, late: bool, rules: usize| {
        let programs = programs.iter().zip(&compared).filter(|(program, _)| {
            program.name.contains(wanted) && program.latencies.is_some() == late
        });
        errors(programs.flat_map(|(_, by_rules)| &by_rules[rules]))
    };
    for (what, late) in [
        ("join!", false),
        ("join!", true),
        ("a timeout", false),
        ("a tight timeout", false),
        ("select", false),
        ("select", true),
    ] {
        let looks = if late { ", late looks" } else { "" };
        print_errors(&format!("{what}{looks}"), &RULES, |n| of(what, late, n));
    }
    let [shipped, never, anew, neither, by_number, not_queued] = [0, 1, 2, 3, 4, 5];
    for one in [never, anew, neither] {
        assert!(of("join!", false, one).worst > 20.0, "{}", RULES[one].name);
    }
    assert!(of("join!", false, shipped).worst < 0.5);
    assert!(of("join!", false, not_queued).worst > 5.0);
    assert!(1.5 * of("join!", true, shipped).mean < of("join!", true, not_queued).mean);
    assert!(3.0 * of("join!", false, shipped).mean < of("join!", false, neither).mean);
    assert!(3.0 * of("join!", true, shipped).mean < of("join!", true, neither).mean);
    assert!(of("a timeout", false, by_number).worst > 10.0);
    assert!(of("a timeout", false, shipped).worst < 0.5);
    assert!(of("a tight timeout", false, neither).worst < 0.5);
    assert!(of("a tight timeout", false, shipped).worst > 5.0);
    assert!(of("select", false, shipped).mean < of("select", false, neither).mean);
}
