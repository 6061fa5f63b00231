//! Models of a task's wakes: none is lost, and what a waker did before its wake is seen by the poll
//! that follows.
//!
//! The code of the waker is that of `andweorc-tokio`, taken in as a file: it knows nothing of
//! tokio, and tokio does not build with `--cfg loom`.
#![cfg(loom)]

/// Stand-in for `wait_hint` of `andweorc-tokio`, without tokio.
mod wait_hint {
    pub(crate) fn clock_is_paused() -> bool {
        false
    }
}

/// Stand-in for `deferred` of `andweorc-tokio`: there is no runtime that puts off.
mod deferred {
    pub(crate) fn is_woken() -> bool {
        false
    }
}

/// Stand-in for `wakers` of `andweorc-tokio`: the runtime of a model is like tokio's.
mod wakers {
    pub(crate) fn is_tokios(_: &std::task::Waker) -> bool {
        true
    }
}

#[path = "../../andweorc-tokio/src/wake.rs"]
#[allow(dead_code, reason = "a part of it needs tasks that are polled")]
mod wake;

use andweorc_core::target::{TaskTargets, target};
use andweorc_core::thread::ledger;
use andweorc_core::time::{Nanos, Real, Speedup, Virtual};
use andweorc_core::{clock, defer};
use andweorc_profile::TargetKind;
use loom::model::Builder;
use loom::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Count;
use std::task::{Wake, Waker};
use tests_support::kept;
use wake::WakeCell;

/// The waker of the runtime, reduced to what it promises: a wake releases, and the poll that
/// follows acquires.
#[derive(Debug)]
struct Task {
    notified: AtomicBool,
    wakes: AtomicI64,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::AcqRel);
        self.notified.swap(true, Ordering::AcqRel);
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let runs = Arc::new(Count::new(0));
    let counted = Arc::clone(&runs);
    let mut builder = Builder::new();
    builder.preemption_bound = None;
    builder.check(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        model();
    });
    let runs = runs.load(Ordering::SeqCst);
    assert!(
        runs > 5,
        "only {runs} orders were tried: loom sees no race, and the model shows nothing"
    );
}

/// From here on a task that waited owes 1 ms.
fn owe() {
    clock::set(Real(0));
    ledger().begin(Speedup::from_ppm(500_000), Real(0));
    let account = ledger().open(Real(0)).expect("is free");
    ledger().enter(account, Real(0));
    ledger().exit(account, Real(2_000_000), Nanos(2_000_000));
    clock::set(Real(2_000_000));
    ledger().end(Real(2_000_000));
}

/// Targets of the process of this run of the model.
fn targets() -> &'static TaskTargets {
    let new = |kind| target(kind, "model", None, None);
    kept(TaskTargets::new(new(TargetKind::Task), new(TargetKind::Wait)))
}

struct Shared {
    task: Arc<Task>,
    cell: Arc<WakeCell>,
    /// Actions of wakers before they wake; without any ordering of their own, as the content of a
    /// channel.
    done: [AtomicBool; 2],
}

impl Shared {
    fn new() -> Arc<Shared> {
        let task = Arc::new(Task { notified: AtomicBool::new(false), wakes: AtomicI64::new(0) });
        let cell =
            WakeCell::new(Waker::from(Arc::clone(&task)), targets(), Nanos::ZERO, Virtual::NEVER);
        Arc::new(Shared { task, cell, done: [AtomicBool::new(false), AtomicBool::new(false)] })
    }

    /// Does something that the task waits for, and wakes it.
    fn act(&self, who: usize) {
        self.done[who].store(true, Ordering::Relaxed);
        WakeCell::wake_by_ref(&self.cell);
    }
}

#[test]
fn loom_a_deferred_wake_is_passed_on() {
    check(|| {
        owe();
        let shared = Shared::new();
        let theirs = Arc::clone(&shared);
        let waker = thread::spawn(move || theirs.act(0));
        defer::release_one();
        assert!(shared.task.notified.swap(false, Ordering::AcqRel));
        assert!(shared.done[0].load(Ordering::Relaxed), "ordered by the wake alone");
        waker.join().unwrap();
        assert_eq!(shared.task.wakes.load(Ordering::Acquire), 1, "once");
    });
}

#[test]
fn loom_a_wake_that_finds_the_task_held_is_covered_by_its_release() {
    check(|| {
        owe();
        let shared = Shared::new();
        shared.act(0);
        let theirs = Arc::clone(&shared);
        let second = thread::spawn(move || theirs.act(1));
        let mut releases = 0;
        let mut done = [false; 2];
        // As the runtime: a poll after each wake, and nothing in between. A release that finds a
        // second wake holds the task once more. When a wake is lost nothing is left to be released,
        // and loom reports the deadlock.
        while done != [true; 2] {
            defer::release_one();
            releases += 1;
            if shared.task.notified.swap(false, Ordering::AcqRel) {
                done = [0, 1].map(|who| shared.done[who].load(Ordering::Relaxed));
            }
        }
        second.join().unwrap();
        let wakes = shared.task.wakes.load(Ordering::Acquire);
        assert!(wakes <= 2 && releases <= wakes + 1, "{wakes} wakes by {releases} releases");
    });
}
