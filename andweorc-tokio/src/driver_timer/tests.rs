//! Tests of who holds a wake, and who releases it.

use super::*;
use crate::runtime::BuilderExt;
use crate::wake::tests::alone;
use andweorc_core::engine::Rules;
use andweorc_core::time::Speedup;
use std::sync::mpsc;
use std::thread::ThreadId;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Longer than anything here takes, on a machine that does anything at all.
const AGES: Duration = Duration::from_secs(60);

/// Tells who released it, and when.
struct Tell(mpsc::Sender<(ThreadId, Real)>);

impl Held for Tell {
    fn release(self: Arc<Self>) {
        self.0.send((std::thread::current().id(), clock::now())).expect("the test listens");
    }
}

/// A runtime with one worker, which has been idle.
fn runtime() -> Runtime {
    thread::enable();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .enable_profiling()
        .build()
        .unwrap();
    let slept = runtime.spawn(async { tokio::time::sleep(Duration::from_millis(1)).await });
    runtime.block_on(slept).unwrap();
    runtime
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

/// Calls `f` in the driver of the runtime whose context this is polled in, and returns what that
/// comes to.
async fn in_driver<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    // The thread that asked waits, unless its test has failed.
    let call = move || tell.send(f()).unwrap_or_default();
    let waker = Waker::from(Arc::new(Call(Mutex::new(Some(call)))));
    let mut sleep = Box::pin(tokio::time::sleep(Duration::from_millis(1)));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    told.recv().await.unwrap()
}

/// Holds something for `ms` from now on. Returns who holds it and since when.
fn hold_for(ms: i64, tell: mpsc::Sender<(ThreadId, Real)>) -> (ThreadId, Real) {
    let now = clock::now();
    until(Virtual(ledger().virtual_now(now).0 + ms * 1_000_000), Arc::new(Tell(tell)));
    (std::thread::current().id(), now)
}

/// Lets the worker hold something for `ms` that it finds in the driver. Returns its thread, since
/// when it holds it, and what tells of the release.
fn hold(runtime: &Runtime, ms: i64) -> (ThreadId, Real, mpsc::Receiver<(ThreadId, Real)>) {
    let (tell, told) = mpsc::channel();
    let holding = runtime.spawn(in_driver(move || hold_for(ms, tell)));
    let (worker, since) = runtime.block_on(holding).unwrap();
    (worker, since, told)
}

/// The name of the thread that releases what no runtime holds.
fn is_of_defer(thread: ThreadId) -> bool {
    let (tell, told) = mpsc::channel();
    defer::until(ledger().virtual_now(clock::now()), Arc::new(Tell(tell)));
    told.recv_timeout(AGES).unwrap().0 == thread
}

#[test]
fn wake_that_is_held_is_released_by_the_worker_in_the_driver() {
    let runtime = runtime();
    for ms in [2, 1, 3] {
        let (worker, since, told) = hold(&runtime, ms);
        let (by, at) = told.recv().unwrap();
        assert_eq!(by, worker);
        assert!(at - since >= Nanos::from_millis(ms) - Rules::SHIPPED.min_hold);
    }
}

#[test]
fn the_first_that_is_due_comes_first() {
    let runtime = runtime();
    let (_, _, late) = hold(&runtime, 3_600_000);
    let (_, _, early) = hold(&runtime, 1);
    early.recv().unwrap();
    assert!(late.try_recv().is_err(), "it is not due");
    // The wake is released as its runtime ends.
    drop(runtime);
    late.recv().unwrap();
}

#[test]
fn nothing_is_held_beyond_the_end_of_the_runtime() {
    let runtime = runtime();
    let (_, _, told) = hold(&runtime, 3_600_000);
    drop(runtime);
    told.recv().unwrap();
}

#[test]
fn one_worker_watches_the_driver() {
    let runtime = runtime();
    let shared = Shared::default();
    let _context = runtime.enter();
    assert!(parks(&shared));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _context = runtime.enter();
            assert!(!parks(&shared), "another one does");
            unparks();
        });
    });
    unparks();
    assert!(parks(&shared), "nobody does any more");
}

#[test]
fn worker_that_looks_into_the_driver_becomes_its_watcher() {
    let runtime = runtime();
    let shared = Shared::default();
    let _context = runtime.enter();
    assert!(parks(&shared));
    let alarm = of_runtime(&shared, RuntimeId::current()).unwrap();
    let watches = |who: usize| alarm.watcher() == who;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _context = runtime.enter();
            // Second by its hook, and yet first in the driver.
            thread::parked(parks(&shared));
            assert!(!watches(thread_key()));
            alarm.looks();
            assert!(watches(thread_key()));
            unparks();
            assert!(watches(NOBODY));
            alarm.looks();
            thread::unparked();
        });
    });
    assert!(!watches(thread_key()));
    unparks();
    assert!(!watches(NOBODY), "that was another one");
}

#[test]
fn worker_that_waits_in_the_driver_sets_the_timer() {
    let runtime = runtime();
    let shared = Shared::default();
    let _context = runtime.enter();
    let (tell, told) = mpsc::channel();
    let alarm = of_runtime(&shared, RuntimeId::current()).unwrap();
    let due = Virtual(ledger().virtual_now(clock::now()).0 + 3_600_000_000_000);
    alarm.hold(due, Arc::new(Tell(tell)));
    assert_eq!(alarm.holds().set_by, thread_key());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _context = runtime.enter();
            assert!(parks(&shared));
            assert_eq!(alarm.holds().set_by, thread_key());
            unparks();
        });
    });
    drop(alarm);
    drop(OURS.take());
    told.recv().unwrap();
}

#[test]
fn the_timer_is_set_earlier_by_what_a_sleeper_needs_unless_it_is_due_soon_and_v_slow() {
    let _alone = alone();
    let runtime = runtime();
    let _context = runtime.enter();
    let alarm = of_runtime(&Shared::default(), RuntimeId::current()).unwrap();
    let mut holds = alarm.holds();
    let lead = Nanos::from_micros(100);
    while holds.lead.mean() < lead {
        holds.lead.measured(lead + lead);
    }
    let lead = holds.lead.mean();
    let now = clock::now();
    // How much earlier the timer goes off than what is due `early` from now on, were V as fast as
    // real time.
    let mut earlier = |early: Nanos| {
        let due = Virtual(ledger().virtual_now(now).0 + early.0);
        alarm.set(&mut holds, due, now);
        now + ledger().time_until_due(due, now) - holds.set.unwrap()
    };
    let (soon, later) = (lead + lead - Nanos(2000), lead + lead + lead);
    assert_eq!([earlier(soon), earlier(later)], [lead, lead]);
    // The same with somebody in the target.
    ledger().begin(Speedup::from_ppm(500_000), now);
    let account = ledger().open(now).unwrap();
    ledger().enter(account, now);
    let inside = [earlier(soon), earlier(later)];
    ledger().exit(account, now, Nanos::ZERO);
    ledger().close(account, now);
    ledger().end(now);
    assert_eq!(inside, [Nanos::ZERO, lead]);
}

#[test]
fn overdue_wakes_of_a_runtime_that_nobody_drives_are_released() {
    thread::enable();
    let mut builder = Builder::new_current_thread();
    let builder = builder.enable_time().enable_profiling();
    let (first, second) = (builder.build().unwrap(), builder.build().unwrap());
    // Once more with another runtime of the same builder, which knows the timer of the first.
    for runtime in [&first, &second] {
        let (tell, told) = mpsc::channel();
        runtime.block_on(in_driver(move || hold_for(30, tell)));
        let (by, _) = told.recv_timeout(AGES).unwrap();
        assert_ne!(by, std::thread::current().id());
    }
}

#[test]
fn a_wake_behind_a_long_poll_is_released() {
    let runtime = runtime();
    for _ in 0..3 {
        let (tell, told) = mpsc::channel();
        let waits = runtime.spawn(async move {
            in_driver(move || hold_for(5, tell)).await;
            // The only worker does nothing else until then.
            told.recv_timeout(AGES).map(|_| ())
        });
        runtime.block_on(waits).unwrap().unwrap();
    }
}

#[test]
fn only_who_looks_into_a_driver_holds_there() {
    let runtime = runtime();
    let (tell, told) = mpsc::channel();
    let here = tell.clone();
    // In a poll of a task that nobody wrapped, which goes on until that is released.
    let polls = runtime.spawn(async move {
        let (worker, _) = hold_for(1, here);
        let (by, _) = told.recv_timeout(AGES).unwrap();
        assert_ne!(by, worker);
        (by, told)
    });
    let (by, told) = runtime.block_on(polls).unwrap();
    assert!(is_of_defer(by));
    // On a thread that drove a runtime once, and is in the context of another.
    let small = Builder::new_current_thread().enable_time().enable_profiling().build().unwrap();
    small.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
    let _context = runtime.enter();
    hold_for(1, tell);
    assert!(told.recv_timeout(AGES).is_ok());
    let alarm = OURS.with_borrow(|ours| ours.as_ref().unwrap().alarm.clone().unwrap());
    assert_eq!(alarm.holds().waiting.first(), None);
}

#[test]
fn runtimes_of_one_builder_hold_in_their_own_drivers() {
    thread::enable();
    let mut builder = Builder::new_current_thread();
    let builder = builder.enable_time().enable_profiling();
    let (first, second) = (builder.build().unwrap(), builder.build().unwrap());
    let alarm = || OURS.with_borrow(|ours| ours.as_ref()?.alarm.clone());
    let sleep = || tokio::time::sleep(Duration::from_millis(1));
    first.block_on(async { sleep().await });
    let of_first = alarm().unwrap();
    // On another thread, as with a version of tokio that does not tell the two apart.
    let other = std::thread::scope(|scope| {
        let drives = || {
            second.block_on(async { sleep().await });
            alarm().unwrap()
        };
        scope.spawn(drives).join().unwrap()
    });
    assert!(!Arc::ptr_eq(&of_first, &other));
    first.block_on(async { sleep().await });
    assert!(Arc::ptr_eq(&of_first, &alarm().unwrap()));
}

#[test]
fn with_a_paused_clock_nothing_is_held() {
    let _alone = alone();
    thread::enable();
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let early = Virtual(ledger().virtual_now(clock::now()).0 + 3_600_000_000_000);
    assert!(crate::wake::is_early(early, clock::now()));
    runtime.block_on(async { assert!(!crate::wake::is_early(early, clock::now())) });
}

/// Drives a runtime as its thread is torn down, when what it knew of runtimes may be gone.
struct Drives(Option<(Runtime, mpsc::Sender<(ThreadId, Real)>)>);

impl Drop for Drives {
    fn drop(&mut self) {
        let Some((runtime, tell)) = self.0.take() else { return };
        runtime.block_on(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            in_driver(move || hold_for(1, tell)).await
        });
    }
}

thread_local! {
    static DRIVES: RefCell<Drives> = const { RefCell::new(Drives(None)) };
}

#[test]
fn a_thread_that_is_torn_down_parks_and_wakes() {
    let (tell, told) = mpsc::channel();
    for before in [true, false] {
        let tell = tell.clone();
        let torn_down = std::thread::spawn(move || {
            thread::enable();
            let runtime =
                Builder::new_current_thread().enable_time().enable_profiling().build().unwrap();
            let drive = || {
                runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
            };
            // tokio's own is destroyed last in any case: it was used first.
            drop(runtime.enter());
            if before {
                drive();
            }
            DRIVES.with_borrow_mut(|_| ());
            drive();
            DRIVES.with_borrow_mut(|drives| drives.0 = Some((runtime, tell)));
        });
        torn_down.join().unwrap();
        told.recv_timeout(AGES).unwrap();
    }
}

/// Holds one more when it is released, as a wake that comes while a runtime ends.
struct Again(mpsc::Sender<(ThreadId, Real)>);

impl Held for Again {
    fn release(self: Arc<Self>) {
        let now = clock::now();
        until(ledger().virtual_now(now), Arc::new(Tell(self.0.clone())));
    }
}

#[test]
fn wake_released_as_the_alarm_ends_may_hold_another() {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        thread::enable();
        for last in [false, true] {
            // On this thread, which works for one runtime after the other, and then ends.
            let runtime =
                Builder::new_current_thread().enable_time().enable_profiling().build().unwrap();
            let again = Arc::new(Again(tell.clone()));
            runtime.block_on(async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let far = Virtual(ledger().virtual_now(clock::now()).0 + 3_600_000_000_000);
                in_driver(move || until(far, again)).await;
            });
            if last {
                OURS.take();
            }
        }
    })
    .join()
    .unwrap();
    assert_eq!(told.iter().take(2).count(), 2);
}
