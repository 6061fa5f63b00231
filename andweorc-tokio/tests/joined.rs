//! A task that waits for two answers from outside waits for each of them since it asked.

use andweorc_core::clock;
use andweorc_core::engine::Rules;
use andweorc_core::thread::{self, ledger};
use andweorc_core::time::{Nanos, Speedup};
use andweorc_tokio::Profile;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::thread::sleep;
use std::time::Duration;
use tests_support::wakes::Watched;

/// The ledger is that of the process.
static ALONE: Mutex<()> = Mutex::new(());

/// Lets D grow by 5 ms while 10 pass.
fn delay() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let account = ledger().open(clock::now()).expect("accounts are free");
            ledger().enter(account, clock::now());
            sleep(Duration::from_millis(10));
            ledger().exit(account, clock::now(), Nanos(i64::MAX));
            ledger().close(account, clock::now());
        });
    });
}

/// Polls a task that waits for two answers, lets D grow, and answers one after the other. Returns
/// by how much the task was woken too early for each.
fn answer_two(Watched { waker, woken: told, .. }: &Watched) -> [Nanos; 2] {
    let mut context = Context::from_waker(waker);
    // A waker for each of the answers, left in the first poll.
    let wakers = RefCell::new(Vec::new());
    let mut polls = 0;
    let mut task = pin!(
        poll_fn(|context| {
            polls += 1;
            if polls == 1 {
                wakers.borrow_mut().extend([context.waker().clone(), context.waker().clone()]);
            }
            Poll::<()>::Pending
        })
        .profiled("joined")
    );
    // No poll is short that finds nothing in the processor's caches: others come just before it.
    let mut before = pin!(std::future::pending::<()>().profiled("before"));
    let taken = ledger().global_delay(clock::now());
    assert!(task.as_mut().poll(&mut context).is_pending());
    delay();
    [(); 2].map(|()| {
        let waker = wakers.borrow_mut().pop().expect("there are two");
        let came = clock::now();
        waker.wake();
        let woken = told.recv().expect("it is woken");
        (0..8).for_each(|_| assert!(before.as_mut().poll(&mut context).is_pending()));
        assert!(task.as_mut().poll(&mut context).is_pending());
        ledger().time_until_due(came.less(taken), woken)
    })
}

#[test]
fn a_task_in_the_queue_waits_for_what_comes_meanwhile() {
    let _alone = ALONE.lock();
    thread::enable();
    ledger().begin(Speedup::new(0.5).expect("it is a fraction"), clock::now());
    let Watched { waker, woken: told, .. } = &Watched::spawn();
    let mut context = Context::from_waker(waker);
    let wakers = RefCell::new(Vec::new());
    let polled = Cell::new(None);
    let mut task = pin!(
        poll_fn(|context| {
            if wakers.borrow().is_empty() {
                wakers.borrow_mut().extend([context.waker().clone(), context.waker().clone()]);
            } else {
                polled.set(polled.get().or(Some(clock::now())));
            }
            Poll::<()>::Pending
        })
        .profiled("joined in the queue")
    );
    let taken = ledger().global_delay(clock::now());
    assert!(task.as_mut().poll(&mut context).is_pending());
    wakers.borrow()[0].wake_by_ref();
    told.recv().expect("it is woken");
    delay();
    // Nobody has polled it yet.
    let came = clock::now();
    wakers.borrow()[1].wake_by_ref();
    assert!(task.as_mut().poll(&mut context).is_pending());
    while polled.get().is_none() {
        told.recv().expect("it is woken");
        assert!(task.as_mut().poll(&mut context).is_pending());
    }
    let early = polled.get().map(|at| ledger().time_until_due(came.less(taken), at));
    assert!(early <= Some(Rules::SHIPPED.min_hold), "{early:?}");
    ledger().end(clock::now());
}

#[test]
fn the_second_answer_is_stretched_by_what_grew_before_the_first() {
    let _alone = ALONE.lock();
    thread::enable();
    ledger().begin(Speedup::new(0.5).expect("it is a fraction"), clock::now());
    // The poll for the first answer must be short, and who releases in time, as they mostly are on
    // a machine with nothing else to do.
    let outer = Watched::spawn();
    let both_in_time =
        (0..1000).any(|_| answer_two(&outer).iter().all(|&early| early <= Rules::SHIPPED.min_hold));
    assert!(both_in_time, "one of them came too early each time");
    ledger().end(clock::now());
}
