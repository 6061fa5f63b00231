//! Plain threads, which nobody has registered: from their first wake of a task on they take part,
//! as the engine that ships says.

use crate::engine::{Act, Engine};
use crate::percent;
use crate::program::*;
use crate::rules::{Rules, SHIPPED};
use crate::tables::{compare, errors_by, print_cases, print_errors};
use andweorc_core::engine::Stranger;

impl Engine<'_> {
    /// Whether a thread of which nothing is known yet, and which wakes a task, takes part from now
    /// on.
    pub(crate) fn takes_part(&mut self, i: usize) -> bool {
        let thread = &mut self.threads[i];
        if !thread.kind.is_to_be_asked(self.rules.plain_takes_part) {
            return false;
        }
        let stranger = Stranger { state: thread.state, has_polled: false, reads_real_time: false };
        let worker = thread.worker;
        let (state, kind) = stranger.kind(|| worker).take_part(true);
        thread.kind = kind;
        thread.state = state.unwrap_or(thread.state);
        state.is_some()
    }

    /// The thread pays before it acts on others, if it is a participant.
    pub(crate) fn catch_up(&mut self, i: usize) {
        let thread = &mut self.threads[i];
        thread.act = if thread.state.participates() { Act::Resumed } else { Act::Run };
    }
}

/// In percent.
const SPEEDUPS: [u32; 3] = [25, 50, 75];

const RULES: [Rules; 2] = [
    SHIPPED,
    Rules { name: "plain threads act for the world outside", plain_takes_part: false, ..SHIPPED },
];

/// More messages than any of these programs sends.
const UNBOUNDED: u32 = 1 << 20;

/// A plain thread that computes what a task goes on with.
fn feeds(name: Tag, threads: usize) -> Program {
    let mut p = Program::new(name, 2).exact();
    let made = p.channel(UNBOUNDED);
    p.strangers("thread", threads, &[span("compute", 103.0), Op::CatchUp, Op::Send(made)]);
    p.tasks("handler", 1, &[Op::Recv(made), span("handle", 80.0 / threads as f64), Op::Progress]);
    p.targets(&[Target::Span("compute"), Target::Span("handle")])
}

/// A task at its limit, which plain threads feed beside I/O of its own.
fn beside_io() -> Program {
    let mut p = Program::new("a thread, and a task that waits", 2);
    let made = p.channel(UNBOUNDED);
    p.strangers("thread", 1, &[span("compute", 140.0), Op::CatchUp, Op::Send(made)]);
    let ops = [Op::Recv(made), span("handle", 50.0), wait("disk", 60.0), Op::Progress];
    p.tasks("handler", 1, &ops);
    p.tasks("other", 1, &[span("other", 90.0), wait("net", 70.0)]);
    p.targets(&[Target::Span("compute"), Target::Span("handle"), Target::Span("other")])
}

/// A plain thread that computes for tasks owes delay as they do. If it acted for the world outside
/// it would pay none, and do more in each virtual second the more the tasks are sped up.
#[test]
fn plain_threads_that_wake_tasks_take_part() {
    let programs = [feeds("a thread that feeds a task", 1), feeds("two that do", 2), beside_io()];
    let compared = compare(&programs, &SPEEDUPS.map(percent), &RULES);
    print_cases(&programs, &compared);
    let all = print_errors("rules, plain threads", &RULES, |n| errors_by(&compared, n));
    assert!(all[0].mean < 0.2 && all[0].worst < 1.0, "{:?}", all[0]);
    assert!(all[1].worst > 10.0, "{:?}", all[1]);
}
