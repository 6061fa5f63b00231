//! limits
use crate::program::*;

pub(crate) fn limits() -> Vec<Program> {
    let mut both = Program::new("join of two waits", 2);
    both.tasks("asker", 3, &[Op::ExternalAll(vec![external("short", 500.0), external("long", 1000.0)]), span("use", 100.0), Op::Progress]);
    both.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);

    let mut timeout = Program::new("select with timeout", 2);
    let ch = timeout.channel(4);
    timeout.tasks("producer", 1, &[span("make", 300.0), wait("net", 500.0), Op::Send(ch)]);
    timeout.tasks("consumer", 1, &[Op::Select(vec![
        (Branch::External(external("timeout", 900.0)), vec![span("late", 400.0)]),
        (Branch::Recv(ch), vec![span("use", 100.0), Op::Progress]),
    ])]);
    timeout.tasks("other", 1, &[span("other", 200.0), wait("pause", 200.0)]);

    let mut shared = Program::new("saturated server", 2);
    let db = shared.server(1);
    shared.tasks("handler", 6, &[span("parse", 100.0), ask(db, "db", 150.0), span("render", 100.0), Op::Progress]);
    let mut half = Program::new("server at half load", 2);
    let db = half.server(1);
    half.tasks("handler", 4, &[span("parse", 100.0), ask(db, "db", 80.0), span("render", 200.0), wait("client", 300.0), Op::Progress]);

    vec![
        both.targets(&[Target::Span("use"), Target::Span("other")]),
        timeout.targets(&[Target::Span("make"), Target::Span("other"), Target::Span("use")]),
        shared.targets(&[Target::Span("parse"), Target::Wait("db")]),
        half.targets(&[Target::Span("parse"), Target::Wait("db")]),
    ]
}
