use super::*;
use crate::clock;
use crate::point::{Point, point};
use crate::target::{target, targets};
use crate::thread::{self, Polled, ledger};
use crate::time::{Real, Virtual};
use crate::wait::{Cause, Ended};
use andweorc_profile::PointKind;
use andweorc_profile::TargetKind;

/// Works for so long, CPU time.
fn work(time: Nanos) {
    let begun = clock::thread_cpu();
    while clock::thread_cpu() - begun < time {}
}

/// Held by tests that need the visits of contexts, which each new [`Sampling`] forgets.
pub(super) static SAMPLINGS: Mutex<()> = Mutex::new(());

/// One poll of a task whose wait ended as `by` says, and which hits a point or not. Returns its
/// context.
fn poll(task: &'static Target, polled: Polled, by: Cause, hits: Option<&Point>) -> u32 {
    let ended = Some(Ended::new(Real(0), Real(1), by));
    let now = clock::now();
    let caught_up = thread::Poll::caught_up(Virtual(0), now);
    let mut poll =
        thread::Poll::begin_on(caught_up, task, polled, (Virtual::NEVER, Virtual(0)), ended, now);
    let context = thread::sampled(Nanos::ZERO, &|| None).expect("no one writes the account");
    hits.inspect(|point| point.hit());
    poll.end(false, clock::now());
    context
}

#[test]
fn polls_of_one_task_are_contexts_by_their_place_in_its_round() {
    let _alone = lock(&SAMPLINGS);
    thread::enable();
    // Whether shares are learned just now does not matter.
    target_fraction::set_learns(true);
    target_fraction::set_learns(false);
    std::thread::spawn(|| {
        let task = target(TargetKind::Task, "turns", None, None);
        let done = point(PointKind::Progress, "turns", None, None, true);
        let own = 0_u64;
        let mut contexts = Vec::new();
        for _ in 0..4 {
            for (by, hits) in
                [(Cause::Outside, Some(done)), (Cause::Task, None), (Cause::Outside, None)]
            {
                let polled = Polled::of(&own, contexts.is_empty());
                contexts.push(poll(task, polled, by, hits));
            }
        }
        // The first round begins anywhere.
        let rounds: Vec<_> = contexts[3..].chunks(3).collect();
        assert!(rounds.iter().all(|round| *round == rounds[0]), "{contexts:x?}");
        let [hit, locked, answered] = rounds[0] else { unreachable!("it is three polls") };
        assert!(hit != locked && locked != answered && hit != answered, "{contexts:x?}");
        assert_eq!(poll(task, Polled::ANY, Cause::Outside, None), task.id());
    })
    .join()
    .unwrap();
}

#[test]
fn sample_after_an_act_in_a_poll_has_another_context() {
    let _alone = lock(&SAMPLINGS);
    thread::enable();
    target_fraction::set_learns(true);
    std::thread::spawn(|| {
        let task = target(TargetKind::Task, "acts", None, None);
        let span = target(TargetKind::Span, "acts: inside", None, None);
        let (own, now) = (0_u64, clock::now());
        let here = || thread::sampled(Nanos::ZERO, &|| None).expect("no one writes the account");
        let begin = |polled| {
            thread::Poll::begin_on(None, task, polled, (Virtual::NEVER, Virtual(0)), None, now)
        };
        let acts_of = |polled| {
            let mut poll = begin(polled);
            let act = |number| {
                if number > 0 {
                    thread::before_wake();
                }
                here()
            };
            let contexts: Vec<u32> = (0..6).map(act).collect();
            poll.end(false, clock::now());
            contexts
        };
        let contexts = acts_of(Polled::of(&own, true));
        assert!((1..4).all(|act| !contexts[..act].contains(&contexts[act])), "{contexts:x?}");
        assert!(contexts[4..].iter().all(|it| *it == contexts[3]), "{contexts:x?}");
        assert!(contexts.iter().all(|&it| target_fraction::visits(it) > 0));
        assert_eq!(acts_of(Polled::ANY), [task.id(); 6]);

        let mut poll = begin(Polled::of(&own, true));
        let visit = thread::enter(span, now);
        let before = here();
        thread::before_wake();
        let inside = here();
        thread::exit(visit, now);
        assert_ne!(inside, before);
        assert_eq!(here() - task.id(), inside - span.id(), "the same part of the poll");
        let around = here();
        let mut inner = begin(Polled::of(&0_u64, true));
        thread::before_wake();
        thread::before_wake();
        inner.end(false, clock::now());
        assert_eq!(here(), around, "what the task inside did is no act of the one around it");
        let [second, third] = [(); 2].map(|()| {
            thread::before_wake();
            here()
        });
        assert!(around != second && second != third, "nor does it count as one");
        poll.end(false, clock::now());
        assert_eq!(here(), 0);
    })
    .join()
    .unwrap();
    target_fraction::set_learns(false);
}

#[test]
fn a_target_in_short_visits_needs_no_fine_samples() {
    let _alone = lock(&SAMPLINGS);
    let symbols = Symbols::of_this_program().unwrap();
    let mut finder = Finder::new(symbols, addresses::table());
    let new = |kind, name| target(kind, name, None, None);
    let [short, long] = ["short", "long"].map(|name| new(TargetKind::Task, name));
    let [one, other] = ["one", "other"].map(|name| new(TargetKind::Line, name));
    for (context, visits) in [(short, 1000), (long, 10)] {
        (0..visits).for_each(|_| target_fraction::visited(context.id()));
        finder.saw(context.id(), 100, &[(one, 30), (other, if visits == 10 { 2 } else { 60 })]);
    }
    // The visits of the long ones are half of it inside of one line, and hardly ever inside of the
    // other.
    assert_eq!(finder.by_samples(one), 0.5);
    assert_eq!(finder.by_samples(other), 0.0);
    // A plain thread: it has no visits, and no share even if it is always there.
    finder.saw(0, 100, &[(other, 100)]);
    assert_eq!(finder.by_samples(other), 100.0 / 162.0);
}

#[test]
fn a_thread_with_an_account_is_sampled() {
    let _alone = lock(&SAMPLINGS);
    thread::enable();
    let symbols = Symbols::of_this_program().unwrap().with_scope("re:.".parse().unwrap());
    let sampling = match Sampling::start(symbols, Event::default()) {
        Ok(sampling) => sampling,
        Err(error) => return println!("skipped: {error}"),
    };
    sampling.count_functions_alone();
    std::thread::spawn(|| {
        thread::register().unwrap();
        check().unwrap();
        thread::register().expect("once is enough");
        work(Nanos::from_millis(100));
    })
    .join()
    .unwrap();
    let found = sampling.take();
    assert!(found.samples > 0, "100 ms of work and not one sample");
    let of = |kind| targets().into_iter().filter(move |target| target.kind() == kind);
    let alone: u64 = of(TargetKind::FunctionSelf).map(|target| target.busy_ns()).sum();
    // What was drained before functions were to be counted alone has no such target.
    let own: u64 = of(TargetKind::Function).map(|target| target.own_ns()).sum();
    assert!(alone > 0 && alone <= own, "{alone} of {own}");
    assert!(ledger().global_delay(clock::now()) >= Nanos::ZERO);
}
