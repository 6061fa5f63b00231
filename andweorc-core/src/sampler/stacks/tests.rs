use super::*;
use crate::sampler::COARSE;
use crate::target::{Target, target};
use andweorc_sampling::queue::LONG;

/// Adds the frames of these names to chains of one address each. A name that begins with a star is
/// out of scope.
fn frames(names: &[&str]) -> Arc<[Frame]> {
    let frame = |name: &&str| {
        let function = name.trim_start_matches('*').into();
        Frame { function, is_own: !name.starts_with('*'), line: None }
    };
    names.iter().map(frame).collect()
}

/// The frames at each address of a program: how a thread starts, a handler with what is inlined
/// into it, and a function that it calls.
fn at(address: u64) -> Arc<[Frame]> {
    match address {
        1 => frames(&[
            "*std::sys::backtrace::__rust_begin_short_backtrace",
            "*std::sys::thread::unix::Thread::new::thread_start",
        ]),
        2 => frames(&["*tokio::runtime::task::raw::poll"]),
        3 => frames(&["shop::stock::update", "shop::handle"]),
        4 => frames(&["*alloc::vec::Vec::push"]),
        address if address >= 1000 => frames(&[&format!("shop::f{address}")]),
        _ => frames(&[]),
    }
}

fn name(of: &str) -> ThreadName {
    ThreadName::from(of.as_bytes())
}

fn kind(name: &str, kind: TargetKind) -> &'static Target {
    target(kind, name, None, None)
}

/// The chains of a group by the names of their functions, with their samples.
fn chains(record: &StacksRecord, group: &StackGroup) -> Vec<(String, u64)> {
    let mut names: Vec<String> = Vec::new();
    for node in &group.stacks {
        let around = node.parent.map(|parent| format!("{};", names[parent as usize]));
        names.push(around.unwrap_or_default() + &record.frames[node.frame as usize].name);
    }
    names.into_iter().zip(group.stacks.iter().map(|node| node.samples)).collect()
}

#[test]
fn chains_are_counted_by_task_span_and_thread() {
    let (task, span) =
        (kind("stacks: task", TargetKind::Task), kind("stacks: span", TargetKind::Span));
    let mut stacks = Stacks::default();
    let chain = [4, 3, 2, 1];
    let in_task = Sample::new(task.id(), COARSE, &chain);
    // The context has the number of the poll's phase above the id, as in runs with samples.
    let in_span =
        Sample::new(span.id() | target_fraction::in_phase(3), COARSE, &chain).of_task(task.id());
    let outside = Sample::new(0, COARSE, &chain);
    let on_timeline = Sample::new(site_timeline::IS_STEP | 7, COARSE, &chain).of_task(task.id());
    for (sample, thread) in [
        (&in_task, "worker"),
        (&in_span, "worker"),
        (&in_span, "worker"),
        (&outside, "worker"),
        (&outside, "main"),
        (&on_timeline, "main"),
    ] {
        stacks.count(sample, name(thread), at);
    }
    let record = stacks.into_record();
    let groups: Vec<_> = record
        .groups
        .iter()
        .map(|it| (it.thread.as_str(), it.task, it.span, chains(&record, it)))
        .collect();
    let all = |samples| {
        ["shop::handle", "shop::handle;shop::stock::update"]
            .map(|name| (name.to_owned(), 0))
            .into_iter()
            .chain([("shop::handle;shop::stock::update;alloc::vec::Vec::push".to_owned(), samples)])
            .collect::<Vec<_>>()
    };
    let (task, span) = (Some(task.id()), Some(span.id()));
    assert_eq!(
        groups,
        [
            ("worker", task, None, all(1)),
            ("worker", task, span, all(2)),
            ("worker", None, None, all(1)),
            ("main", None, None, all(2)),
        ]
    );
    let own = |name: &str| record.frames.iter().find(|it| it.name == name).unwrap().own;
    assert!(own("shop::handle") && !own("alloc::vec::Vec::push"));
    assert_eq!((record.samples, record.merged, record.cut_off, record.ended_early), (6, 0, 0, 0));
}

#[test]
fn chains_that_reach_no_start_are_marked_and_counted() {
    let mut stacks = Stacks::default();
    stacks.count(&Sample::new(0, COARSE, &[4, 3]), name("main"), at);
    stacks.count(&Sample::new(0, COARSE, &[3; LONG]), name("main"), at);
    // Code without a name, called by such with one.
    stacks.count(&Sample::new(0, COARSE, &[9, 3, 1]), name("main"), at);
    let record = stacks.into_record();
    let chains: Vec<_> = chains(&record, &record.groups[0])
        .into_iter()
        .filter(|(_, samples)| *samples > 0)
        .collect();
    let [early, cut, unknown] = [
        "[no frame pointers];shop::handle;shop::stock::update;alloc::vec::Vec::push",
        // A chain of one function that calls itself, and is inlined into another.
        &("[cut off]".to_owned() + &";shop::handle;shop::stock::update".repeat(LONG)),
        "shop::handle;shop::stock::update;[unknown]",
    ]
    .map(|chain| (chain.to_owned(), 1));
    assert_eq!(chains, [early, cut, unknown]);
    assert_eq!((record.samples, record.cut_off, record.ended_early), (3, 1, 1));
}

#[test]
fn chains_beyond_those_that_are_told_apart_are_merged_and_counted() {
    let mut stacks = Stacks::default();
    let many = MAX_NODES as u64 + 10;
    for address in 1000..1000 + many {
        stacks.count(&Sample::new(0, COARSE, &[address, 3, 1]), name("main"), at);
    }
    let record = stacks.into_record();
    let group = &record.groups[0];
    assert_eq!(group.stacks.len(), MAX_NODES);
    // Two of them are those around all others.
    assert_eq!((record.samples, record.merged), (many, 12));
    assert_eq!(group.stacks.iter().map(|node| node.samples).sum::<u64>(), many);
    assert_eq!(group.stacks[1].samples, 12, "they are their caller's");
}

#[test]
fn names_beyond_their_bytes_are_left_out_and_counted() {
    let mut stacks = Stacks::default();
    let long = |address: u64| -> Arc<[Frame]> {
        if address == 1 { at(1) } else { frames(&[&format!("shop::{address:0>50000}")]) }
    };
    for address in 2..32 {
        stacks.count(&Sample::new(0, COARSE, &[address, 1]), name("main"), long);
    }
    let record = stacks.into_record();
    let bytes: usize = record.frames.iter().map(|frame| frame.name.len()).sum();
    assert!(bytes <= MAX_NAMES && record.frames.len() > 20, "{bytes}");
    assert_eq!(record.samples, 30);
    assert!(record.merged >= 9, "{}", record.merged);
}

#[test]
fn code_that_came_into_the_place_of_other_code_is_looked_up_anew() {
    let mut stacks = Stacks::default();
    let sample = Sample::new(0, COARSE, &[3, 1]);
    stacks.count(&sample, name("main"), at);
    let changed = 3..4;
    stacks.forget(std::slice::from_ref(&changed));
    stacks.count(&sample, name("main"), |address| match address {
        3 => frames(&["shop::plugin"]),
        other => at(other),
    });
    let record = stacks.into_record();
    let chains = chains(&record, &record.groups[0]);
    assert_eq!(chains.last(), Some(&("shop::plugin".to_owned(), 1)), "{chains:?}");
}
