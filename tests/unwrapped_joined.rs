//! A task that nobody wrapped and that waits for two answers from outside waits for each since it
//! asked. Alone in its process: it lets the delays of the program grow by hand.
#![cfg(tokio_unstable)]

use andweorc::runtime::BuilderExt;
use andweorc_core::clock;
use andweorc_core::thread::{self, ledger};
use andweorc_core::time::{Nanos, Real, Speedup};
use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::thread::sleep;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::coop::poll_proceed;
use tracing_subscriber::prelude::*;

/// Lets D grow by half of this time, which passes.
fn delay(time: Duration) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let account = ledger().open(clock::now()).expect("accounts are free");
            ledger().enter(account, clock::now());
            sleep(time);
            ledger().exit(account, clock::now(), Nanos(i64::MAX));
            ledger().close(account, clock::now());
        });
    });
}

/// A task that waits for two answers.
struct Task {
    /// One for each answer, left in its second poll.
    wakers: Vec<Waker>,
    /// The delay that it had taken by then.
    taken: Nanos,
    /// When it looked for an answer; 0 if it has not. In a number: its poll is to be short.
    looked: Arc<AtomicI64>,
}

fn task(runtime: &Runtime) -> Task {
    let looked = Arc::<AtomicI64>::default();
    let tell = Arc::clone(&looked);
    let (leave, left) = mpsc::channel();
    let mut polls = 0;
    runtime.spawn(poll_fn(move |context| {
        // As all that tokio lets a task wait for: who waits gives the step back.
        let step = ready!(poll_proceed(context));
        polls += 1;
        if polls == 1 {
            // Its first wait may be of another kind, and is not held.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if polls == 2 {
            leave.send([context.waker().clone(), context.waker().clone()]).ok();
            return Poll::Pending;
        }
        step.made_progress();
        tell.store(clock::now().0, SeqCst);
        Poll::<()>::Pending
    }));
    let wakers = left.recv().expect("it is polled").into();
    Task { wakers, taken: ledger().global_delay(clock::now()), looked }
}

/// A waker that calls a function once.
struct Call<F>(Mutex<Option<F>>);

impl<F: FnOnce() + Send + 'static> Wake for Call<F> {
    fn wake(self: Arc<Self>) {
        if let Some(call) = self.0.lock().unwrap().take() {
            call();
        }
    }
}

/// Calls `f` in the driver of the runtime, and returns what that comes to.
fn in_driver<T: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let call = move || tell.send(f()).unwrap_or_default();
    let waker = Waker::from(Arc::new(Call(Mutex::new(Some(call)))));
    runtime.spawn(async move {
        let mut timer = Box::pin(tokio::time::sleep(Duration::from_millis(1)));
        assert!(timer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        // Whoever completes may have joined somebody, which counts as a wake.
        std::future::pending::<()>().await;
    });
    told.recv().expect("the driver is looked into")
}

impl Task {
    /// Answers, as what the driver of its runtime finds, and returns when.
    fn answer(&mut self, runtime: &Runtime) -> Real {
        let waker = self.wakers.pop().expect("there are two");
        in_driver(runtime, move || {
            let came = clock::now();
            waker.wake();
            came
        })
    }

    /// By how much it looked at `looked` before what came then was due.
    fn early(&self, came: Real, looked: Real) -> Nanos {
        ledger().time_until_due(came.less(self.taken), looked)
    }

    fn looks(&self) -> Real {
        loop {
            match self.looked.swap(0, SeqCst) {
                0 => sleep(Duration::from_micros(100)),
                looked => return Real(looked),
            }
        }
    }
}

/// An answer is due as it comes, and is found up to a nap of its worker later. One that is not held
/// as it is to be is early by all that D grew, which is milliseconds.
const FOUND_LATE: Nanos = Nanos::from_millis(1);

/// A machine may be so slow that a poll is not short, or that a task comes late: one try in time is
/// enough. It takes 32 of them until a kind of task is held.
const TRIES: u32 = 300;

#[test]
fn each_answer_is_stretched_by_what_grew_since_it_was_asked_for() {
    thread::enable();
    tracing_subscriber::registry().with(andweorc::layer()).init();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .enable_profiling()
        .build()
        .unwrap();
    ledger().begin(Speedup::new(0.5).expect("it is a fraction"), clock::now());
    let ms = Duration::from_millis;

    // The second comes while the task is held for the first: both are due when it looks.
    let raised = (0..TRIES).any(|_| {
        let mut task = task(&runtime);
        delay(ms(20));
        let first = task.answer(&runtime);
        sleep(ms(2));
        let second = task.answer(&runtime);
        let looked = task.looks();
        // On a machine that is busy it may have come too late for that, or a pause took too long,
        // which the task has as credit.
        let [first, second] = [first, second].map(|came| (came, task.early(came, looked)));
        first.1 <= FOUND_LATE && looked > second.0 && second.1 <= FOUND_LATE
    });
    assert!(raised, "an answer was seen too early each time");

    // The second comes after the first was looked at, in a poll that must be short, as it is most
    // often where the compiler optimises (`.ci/run` has a release build of this test).
    if cfg!(debug_assertions) {
        println!("left out: answers after a short poll, since polls are hardly ever short here");
        ledger().end(clock::now());
        return;
    }
    let waits_on = (0..TRIES).any(|_| {
        let mut task = task(&runtime);
        delay(ms(10));
        let in_time = [(); 2].map(|()| {
            let came = task.answer(&runtime);
            let looked = task.looks();
            task.early(came, looked) <= FOUND_LATE
        });
        in_time == [true; 2]
    });
    assert!(waits_on, "an answer was seen too early each time");
    ledger().end(clock::now());
}
