//! Each pattern in a made-up profile that has it, and in those that nearly do.

use super::*;
use crate::estimate::tests::{closed, push};
use crate::estimate::{Load, Metric, Ranking, analyse};
use crate::report::{Looks, text};
use crate::{Record, SamplesRecord, TargetKind, TargetRecord, WaitTime, WallRecord, WallStack};

const MS: u64 = 1_000_000;

/// A run of a second on two processors, of which it uses one and a half, with these targets,
/// and experiments on the first that bring `change` % when it is twice as fast.
fn run(targets: &[(TargetKind, &str, TargetTime)], change: u64) -> Run {
    let mut run = closed();
    run.header.cores = 2;
    run.samples.clear();
    run.targets.retain(|it| it.kind == TargetKind::Probe);
    for (kind, name, time) in targets {
        let record = TargetRecord::new(time.target, *kind, *name);
        run.push(Record::Target(record));
    }
    run.push(Record::Samples(SamplesRecord {
        real_ns: 1000 * MS,
        cpu_ns: 1500 * MS,
        others_ns: None,
        source: "timed".into(),
        targets: targets.iter().map(|(_, _, time)| time.clone()).collect(),
        lost: 0,
    }));
    push(&mut run, None, 0.0, 10_000, 1_000);
    for off in [0, 3, 6] {
        push(&mut run, Some(targets[0].2.target), 0.5, 100 * (100 + change) + off, 1_000);
        push(&mut run, None, 0.0, 10_000 + off, 1_000);
    }
    run
}

fn time(target: u32, busy_ms: u64, count: u64, waits: Option<WaitTime>) -> TargetTime {
    TargetTime { target, busy_ns: busy_ms * MS, count, waits }
}

fn wait(outside_ms: u64, task_ms: u64, queue_ms: u64) -> Option<WaitTime> {
    let ns = |ms| ms * MS;
    Some(WaitTime {
        outside_ns: ns(outside_ms),
        timer_ns: None,
        task_ns: ns(task_ms),
        queue_ns: ns(queue_ms),
    })
}

fn found(run: Run) -> Vec<(Pattern, String)> {
    let runs = [run];
    let analysis = analyse(&runs);
    advice(&runs, &analysis).into_iter().map(|one| (one.pattern, one.target)).collect()
}

#[test]
fn wait_with_a_lock_held_is_found_by_what_it_brings() {
    let journal = (TargetKind::Wait, "journal", time(71, 460, 700, wait(460, 0, 0)));
    let handler = (TargetKind::Wait, "handle", time(72, 7000, 3000, wait(2000, 5000, 10)));
    // Twice as fast, of a cycle of 1000 ms 230 are spared: +30 %.
    let is = vec![(Pattern::SerialWait, "wait:journal".to_owned())];
    let held = run(&[journal.clone(), handler.clone()], 27);
    assert_eq!(found(held.clone()), is);
    let held = [held];
    let report = text(&held, &analyse(&held), Looks::default());
    assert!(report.contains("ADVICE\n  wait:journal: One task at a time"), "{report}");
    assert_eq!(found(run(&[journal.clone(), handler.clone()], 3)), [], "side by side");
    let alone = (TargetKind::Wait, "handle", time(72, 7000, 3000, wait(7000, 0, 10)));
    assert_eq!(found(run(&[journal, alone], 27)), [], "nobody waits for another");
    let many = (TargetKind::Wait, "journal", time(71, 4600, 7000, wait(4600, 0, 0)));
    assert_eq!(found(run(&[many, handler], 60)), [], "many at a time");
}

#[test]
fn one_task_without_time_to_spare_is_found() {
    let actor = (TargetKind::Task, "actor", time(71, 930, 700, None));
    let waits = |ms| (TargetKind::Wait, "actor", time(72, ms, 700, wait(0, ms, 0)));
    let is = vec![(Pattern::BusyTask, "task:actor".to_owned())];
    assert_eq!(found(run(&[actor.clone(), waits(60)], 60)), is);
    assert_eq!(found(run(&[actor.clone(), waits(60)], 0)), [], "it brings nothing");
    assert_eq!(found(run(&[actor, waits(9000)], 60)), [], "ten tasks");
}

#[test]
fn tasks_that_are_ready_for_long_while_processors_are_idle_are_found() {
    let work = (TargetKind::Task, "work", time(71, 300, 700, None));
    let late = |ms| (TargetKind::Wait, "handle", time(72, 2000, 1000, wait(900, 0, ms)));
    let is = vec![(Pattern::LateWorkers, "wait:handle".to_owned())];
    assert_eq!(found(run(&[work.clone(), late(900)], 0)), is);
    assert_eq!(found(run(&[work.clone(), late(90)], 0)), []);
    let mut busy = run(&[work, late(900)], 0);
    busy.samples[0].others_ns = Some(400 * MS);
    assert_eq!(found(busy), [], "no processor is idle");
}

#[test]
fn small_polls_are_found_where_processors_are_short() {
    let mut short = {
        let items = (TargetKind::Task, "item", time(71, 600, 200_000, None));
        run(&[items], 25)
    };
    assert_eq!(found(short.clone()), [], "processors are not known to be short");
    short.header.cores = 1;
    for one in &mut short.experiments {
        one.cpu_ns = Some(one.points[0].count * 100_000);
    }
    short.samples[0].cpu_ns = 1000 * MS;
    assert_eq!(found(short), [(Pattern::SmallPolls, "task:item".to_owned())]);
}

/// The run, with so many requests open at a time.
fn with_open(mut run: Run, requests: u64) -> Run {
    for point in run.experiments.iter_mut().flat_map(|one| &mut one.points) {
        // 10,000 a second.
        point.latency = vec![(requests * 100_000, point.count)];
    }
    run
}

#[test]
fn small_pool_is_found_by_a_wait_that_brings_what_a_part_of_so_many_servers_does() {
    let query = (TargetKind::Wait, "query", time(71, 1900, 950, wait(1890, 0, 10)));
    let acquire = |ms| (TargetKind::Wait, "acquire", time(72, ms, 950, wait(0, ms, 0)));
    let is = vec![(Pattern::PoolTooSmall, "wait:query".to_owned())];
    let queued = [query.clone(), acquire(14_000)];
    // Of two servers, each in it for 95 % of its time: +90 %.
    assert_eq!(found(with_open(run(&queued, 80), 16)), is);
    assert_eq!(found(with_open(run(&queued, 7), 16)), [], "what 16 side by side bring");
    assert_eq!(found(with_open(run(&queued, 80), 2)), [], "two requests need no more");
    assert_eq!(found(run(&queued, 80)), [], "nobody knows how many are open");
    let alone = [query, acquire(200)];
    assert_eq!(found(with_open(run(&alone, 80), 16)), [], "nobody waits for a member");
    let inside = (TargetKind::Wait, "query", time(71, 1900, 950, wait(900, 1000, 0)));
    assert_eq!(found(with_open(run(&[inside, acquire(14_000)], 80), 16)), [], "for tasks itself");
}

#[test]
fn change_that_is_hardly_known_is_told_by_its_surer_end() {
    let work = (TargetKind::Span, "work", time(71, 600, 1000, None));
    let analysis = analyse(&[run(&[work], 60)]);
    let known = analysis.targets[0].ranking_effect().unwrap();
    assert_eq!(brings(known), "+60 %");
    let wide = Effect { ci_low: Some(28.0), ci_high: Some(180.0), ..known.clone() };
    assert_eq!(brings(&wide), "at least +28 %");
    let latency = Effect { metric: Metric::Mean, effect_pct: -12.0, ..known.clone() };
    assert_eq!(brings(&latency), "-12 % mean latency");
}

#[test]
fn text_of_a_small_pool_has_its_evidence() {
    let query = (TargetKind::Wait, "query", time(71, 1900, 950, wait(1890, 0, 10)));
    let acquire = (TargetKind::Wait, "acquire", time(72, 14_000, 950, wait(0, 14_000, 0)));
    let run = [with_open(run(&[query, acquire], 80), 16)];
    let [one] = &advice(&run, &analyse(&run))[..] else { panic!("one pattern") };
    let evidence = "1.9 tasks at a time wait in it on average, while 14 wait for other tasks: 50 % \
                    faster it brings +80 %, what a part of 2 servers would (+90 %), and 16 requests \
                    side by side would not (+6 %). Is it a pool of 2?";
    assert!(one.text.starts_with(evidence), "{}", one.text);
}

/// Waits for a timer of so many us each, which bring 30 % when they are half as long.
fn slept(each_us: u64) -> (TargetKind, &'static str, TargetTime) {
    let ns = 1000 * each_us * 1000;
    let waits = WaitTime { outside_ns: ns, timer_ns: Some(ns), task_ns: 0, queue_ns: 1000 };
    let time = TargetTime { target: 71, busy_ns: ns, count: 1000, waits: Some(waits) };
    (TargetKind::Wait, "throttle", time)
}

#[test]
fn sleeps_that_take_the_grain_of_timers_are_found() {
    let is = vec![(Pattern::TimerGranularity, "wait:throttle".to_owned())];
    assert_eq!(found(run(&[slept(1200)], 30)), is);
    assert_eq!(found(run(&[slept(550)], 30)), is, "begun between two ticks");
    assert_eq!(found(run(&[slept(1200)], 0)), [], "it brings nothing");
    assert_eq!(found(run(&[slept(2100)], 30)), [], "1 ms was asked for, or more");
    assert_eq!(found(run(&[slept(200)], 30)), [], "a finer timer than tokio's");
    let (kind, name, mut socket) = slept(1200);
    socket.waits.as_mut().unwrap().timer_ns = Some(0);
    assert_eq!(found(run(&[(kind, name, socket.clone())], 30)), [], "an answer from outside");
    socket.waits.as_mut().unwrap().timer_ns = None;
    assert_eq!(found(run(&[(kind, name, socket)], 30)), [], "not told from an answer");
}

#[test]
fn tasks_that_begin_for_very_little_are_told_from_small_polls() {
    let short = |waits| {
        let item = (TargetKind::Task, "item", time(71, 600, 200_000, None));
        let waited = (TargetKind::Wait, "item", time(72, 100, waits, wait(0, 100, 0)));
        let mut run = run(&[item, waited], 25);
        run.header.cores = 1;
        for one in &mut run.experiments {
            one.cpu_ns = Some(one.points[0].count * 100_000);
        }
        run.samples[0].cpu_ns = 1000 * MS;
        run
    };
    let named = |pattern| vec![(pattern, "task:item".to_owned())];
    assert_eq!(found(short(60_000)), named(Pattern::SpawnPerItem));
    assert_eq!(found(short(199_000)), named(Pattern::SmallPolls));
    let mut few = short(0);
    few.samples[0].targets[0].count = 20_000;
    assert_eq!(found(few), [], "30 us each are no little");
    let mut idle = short(60_000);
    idle.header.cores = 2;
    assert_eq!(found(idle), [], "processors are not short");
    let mut inside = short(60_000);
    inside.samples[0].targets[0].busy_ns = 700 * MS;
    assert_eq!(found(inside), [], "most of the CPU time is in tasks");
}

/// A run whose span `store` brings `change` % when it is twice as fast, with 15 baselines, one each
/// second, in which so many are open and so many end.
fn with_backlog(change: u64, levels: impl Fn(u64) -> (u64, u64)) -> Run {
    let store = (TargetKind::Span, "store", time(71, 600, 1000, None));
    let mut run = run(&[store], change);
    (0..9).for_each(|_| push(&mut run, None, 0.0, 10_000, 1_000));
    let baselines = run.experiments.iter_mut().filter(|one| one.target.is_none());
    for (one, at) in baselines.zip(0..) {
        let (open, ended) = levels(at);
        one.start_ns = 1000 * MS * at;
        one.points[0].count = ended;
        one.points[0].latency = vec![(open * 1000 * MS / ended, ended)];
    }
    run
}

#[test]
fn queue_that_grows_is_found_by_what_is_open_in_baselines() {
    let open = |change, open: fn(u64) -> u64| found(with_backlog(change, |at| (open(at), 10_000)));
    let is = vec![(Pattern::UnboundedBacklog, "point:request".to_owned())];
    assert_eq!(open(60, |at| 500 * (1 + at)), is);
    assert_eq!(open(0, |at| 500 * (1 + at)), [], "nothing would keep up");
    assert_eq!(open(60, |_| 5000), [], "a closed load");
    assert_eq!(open(60, |at| 500 * (1 + at.min(5))), [], "a queue that is full");
    assert_eq!(open(60, |at| 10 * (1 + at)), [], "what chance does");
    assert_eq!(open(60, |at| 500 * (1 + (at ^ 1))), [], "up and down");
    let slower = with_backlog(60, |at| (5000, 10_000 - 500 * at));
    assert_eq!(found(slower), [], "as many are open, and each takes longer");
    let mut short = with_backlog(60, |at| (500 * (1 + at), 10_000));
    short.experiments.truncate(short.experiments.len() - 9);
    assert_eq!(found(short), [], "six baselines tell no trend");
}

#[test]
fn queue_that_grows_is_ranked_by_throughput_where_the_load_is_not_known() {
    let unknown = |open: fn(u64) -> u64| {
        let mut run = with_backlog(60, |at| (open(at), 10_000));
        run.experiments.retain(|one| one.target.is_none_or(|target| target == 71));
        [run]
    };
    let steady = analyse(&unknown(|_| 5000));
    assert_eq!((steady.load, steady.ranked_by.metric), (None, Metric::Mean));
    let run = unknown(|at| 500 * (1 + at));
    let analysis = analyse(&run);
    assert_eq!(analysis.load, Some(Load::Closed));
    assert_eq!(analysis.ranked_by, Ranking::new(0, Metric::Throughput));
    let [one] = &advice(&run, &analysis)[..] else { panic!("one pattern") };
    assert!(one.text.contains("50 % faster `span:store` brings +60 %: make it"), "{}", one.text);
}

#[test]
fn span_that_is_held_over_an_await_is_found() {
    let store = (TargetKind::Span, "store", time(71, 600, 1000, None));
    let held = |held| {
        let mut run = run(std::slice::from_ref(&store), 0);
        let stack = WallStack { target: Some(71), count: 9, held, ..WallStack::default() };
        run.push(Record::Wall(WallRecord { stacks: vec![stack], ..WallRecord::default() }));
        run
    };
    assert_eq!(found(held(9)), [(Pattern::EnteredOverAwait, "span:store".to_owned())]);
    assert_eq!(found(held(0)), []);
    let one = [held(1)];
    let [one] = &advice(&one, &analyse(&one))[..] else { panic!("one pattern") };
    assert!(one.text.contains("as the poll ended, once: a guard"), "{}", one.text);
}
