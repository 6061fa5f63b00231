use super::*;
use crate::target::{Target, target};
use crate::thread::{enter, exit};
use crate::time::Real;
use andweorc_profile::TargetKind;
use std::sync::mpsc;

fn span(name: &str) -> &'static Target {
    target(TargetKind::Span, &format!("allocations: {name}"), None, None)
}

fn of(target: &Target) -> TargetAllocations {
    TABLE.read(target.id()).unwrap()
}

#[test]
fn block_is_that_of_the_innermost_target_and_churn_only_in_its_visit() {
    let (outer, inner) = (span("outer"), span("inner"));
    std::thread::spawn(move || {
        let visit = enter(outer, Real(0));
        let [in_outer, kept] = [10, 1].map(allocated);
        let nested = enter(inner, Real(1));
        let in_inner = allocated(200);
        exit(nested, Real(2));
        // The visit of the outer one goes on.
        freed(in_inner, 200);
        freed(in_outer, 10);
        exit(visit, Real(3));
        freed(kept, 1);
        let again = enter(outer, Real(4));
        let late = allocated(3000);
        exit(again, Real(5));
        let again = enter(outer, Real(6));
        freed(late, 3000);
        exit(again, Real(7));
    })
    .join()
    .unwrap();
    let (outer, inner) = (of(outer), of(inner));
    assert_eq!((outer.bytes, outer.count, outer.live_bytes), (3011, 3, 0));
    assert_eq!((outer.churned_bytes, outer.churned_count), (10, 1), "two outlived their visit");
    assert_eq!((inner.bytes, inner.churned_bytes, inner.churned_count), (200, 200, 1));
}

#[test]
fn block_freed_by_another_thread_is_no_churn() {
    let target = span("handed over");
    let (to, from) = mpsc::channel();
    let freer = std::thread::spawn(move || {
        let visit = enter(target, Real(0));
        from.iter().for_each(|mark| freed(mark, 8));
        exit(visit, Real(1));
    });
    std::thread::spawn(move || {
        let visit = enter(target, Real(0));
        (0..100).for_each(|_| to.send(allocated(8)).unwrap());
        exit(visit, Real(1));
    })
    .join()
    .unwrap();
    freer.join().unwrap();
    let of = of(target);
    assert_eq!((of.count, of.freed_count, of.live_bytes, of.churned_count), (100, 100, 0, 0));
}

#[test]
fn block_outside_of_all_targets_is_no_churn() {
    std::thread::spawn(|| {
        let mark = allocated(5);
        assert_eq!(mark.place(), Some(0));
        assert!(!mark.is_of(thread::visit(), number().unwrap()));
        freed(mark, 5);
    })
    .join()
    .unwrap();
}

#[test]
fn threads_of_our_own_are_left_out() {
    let marks = crate::own_thread::spawn("allocations", || [allocated(1), allocated(2)]).unwrap();
    assert_eq!(marks.join().unwrap(), [Mark::NONE; 2]);
    freed(Mark::NONE, 1);
}

#[test]
fn only_what_came_since_is_told() {
    let (busy, idle) = (span("busy"), span("idle"));
    let allocate = move |target, size| {
        let visit = enter(target, Real(0));
        let mark = allocated(size);
        exit(visit, Real(1));
        mark
    };
    let idles = allocate(idle, 7);
    let first = allocate(busy, 100);
    freed(idles, 7);
    let before = Snapshot::read();
    allocate(busy, 30);
    freed(first, 100);
    let record = Snapshot::read().since(&before, Some(4), 1_000).unwrap();
    assert_eq!((record.seq, record.real_ns), (Some(4), 1_000));
    let of = |target: &Target| record.targets.iter().find(|it| it.target == Some(target.id()));
    assert_eq!(of(idle), None, "it did nothing, and holds nothing");
    let busy = of(busy).unwrap();
    assert_eq!((busy.bytes, busy.count), (30, 1));
    assert_eq!((busy.freed_bytes, busy.live_bytes, busy.live_count), (100, 30, 1));
}
