//! Tasks that nobody wrapped live and die as without andweorc: while experiments run, on several
//! runtimes, nested ones, and ones that go away.

use super::{EXPERIMENTER, HELD_PHASES, WHILE, only_for_tasks, runtimes, spawn};
use andweorc::runtime::BuilderExt;
use andweorc_core::target::target;
use andweorc_core::time::Speedup;
use andweorc_core::{clock, own_thread, thread};
use andweorc_profile::TargetKind;
use std::future::pending;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().enable_profiling().build().unwrap()
}

/// Runs `f` while experiments with a speedup of 40 % are held on the waits of tasks of this name,
/// of which one waits all the time.
fn in_experiments<R>(name: &'static str, f: impl FnOnce(&dyn Fn() -> bool) -> R) -> R {
    in_experiments_at(0.4, name, f)
}

/// Runs `f` as [`in_experiments`] does, with this speedup.
fn in_experiments_at<R>(
    speedup: f64,
    name: &'static str,
    f: impl FnOnce(&dyn Fn() -> bool) -> R,
) -> R {
    let [runtime, _] = runtimes();
    let guard = runtime.enter();
    let waits = spawn(name, async {
        loop {
            sleep(Duration::from_millis(5)).await;
        }
    });
    drop(guard);
    let held = AtomicUsize::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let target = target(TargetKind::Wait, name, None, None);
            let speedup = Speedup::new(speedup).unwrap();
            while !done.load(Ordering::SeqCst) {
                let mut one = EXPERIMENTER.lock().unwrap_or_else(PoisonError::into_inner);
                one.run(Some(target), speedup, HELD_PHASES).record().expect("nobody stops it");
                held.fetch_add(1, Ordering::SeqCst);
            }
        });
        /// Ends the experiments, also when `f` panics.
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let _done = Done(&done);
        let result = f(&|| held.load(Ordering::SeqCst) > 0);
        waits.abort();
        result
    })
}

#[test]
fn in_experiments_messages_keep_their_order_and_ends_are_what_they_were() {
    in_experiments("lives: target", |held| {
        for runtime in runtimes() {
            runtime.block_on(async {
                loop {
                    let got = pipeline().await;
                    assert_eq!(got, (0..500).collect::<Vec<_>>());
                    let mut set: JoinSet<usize> = (0..50).map(|i| async move { i }).collect();
                    set.spawn_blocking(|| 50);
                    let mut all = Vec::new();
                    while let Some(one) = set.join_next().await {
                        all.push(one.unwrap());
                    }
                    all.sort_unstable();
                    assert_eq!(all, (0..51).collect::<Vec<_>>());
                    ends().await;
                    if held() {
                        return;
                    }
                }
            });
            assert_eq!(thread::participant_at(clock::now()), None, "this thread is nobody's poll");
        }
    });
}

/// Returns what comes out of two channels and a task between them.
async fn pipeline() -> Vec<u32> {
    let (first, mut middle) = mpsc::channel(4);
    let (second, mut last) = mpsc::channel(4);
    spawn("lives: sends", async move {
        for i in 0..500 {
            first.send(i).await.unwrap();
            if i % 100 == 0 {
                sleep(Duration::from_millis(1)).await;
            }
        }
    });
    spawn("lives: hands on", async move {
        while let Some(i) = middle.recv().await {
            second.send(i).await.unwrap();
        }
    });
    let last = async move {
        let mut got = Vec::new();
        while let Some(i) = last.recv().await {
            got.push(i);
        }
        got
    };
    spawn("lives: last", last).await.unwrap()
}

/// Tasks that panic, that are aborted before their first poll and while they wait, and that are
/// left alone.
async fn ends() {
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::<AtomicUsize>::default();
    let counts = || Counts(Arc::clone(&dropped));
    let kept = counts();
    let panics = spawn("lives: panics", async move {
        let _kept = kept;
        sleep(Duration::from_millis(1)).await;
        panic!("as meant");
    });
    let error = panics.await.unwrap_err();
    assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "as meant");
    for polled in [true, false] {
        let kept = counts();
        let aborted = spawn("lives: aborted", async move {
            let _kept = kept;
            pending::<()>().await;
        });
        if polled {
            tokio::task::yield_now().await;
        }
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_cancelled());
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
    let (sender, receiver) = oneshot::channel();
    drop(spawn("lives: detached", async move {
        sleep(Duration::from_millis(1)).await;
        sender.send(()).unwrap();
    }));
    receiver.await.unwrap();
}

#[cfg(feature = "test-util")]
#[test]
fn a_paused_clock_does_not_run_ahead_of_what_is_held() {
    in_experiments("lives: paused target", |held| {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).enable_profiling().build().unwrap();
        runtime.block_on(async {
            while !held() {
                let waits = spawn("lives: paused", async {
                    std::thread::sleep(Duration::from_millis(1));
                    sleep(Duration::from_millis(10)).await;
                });
                let waited = tokio::time::timeout(Duration::from_millis(500), waits).await;
                waited.expect("nothing else is to be waited for").unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
        });
    });
}

/// A worker that sleeps asks each 100 us, and more often just before the task is due. One that asks
/// again and again does so twice as often as is allowed here, in a build without optimisation, on a
/// machine with nothing else to do; on a busy one both ask less.
#[test]
#[cfg_attr(
    not(debug_assertions),
    ignore = "with optimisation the last microseconds have more asks"
)]
fn worker_that_has_nothing_but_held_tasks_sleeps() {
    const ANSWERS: u32 = 100;
    let (polls, time) = in_experiments_at(0.8, "lives: napping target", |held| {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().enable_profiling().build().unwrap();
        while !held() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (here, mut there) = std::os::unix::net::UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        // The world outside, which goes by real time.
        let outside = own_thread::spawn("answers", move || {
            for _ in 0..ANSWERS {
                let mut asked = [0];
                there.read_exact(&mut asked).unwrap();
                std::thread::sleep(Duration::from_millis(1));
                there.write_all(&asked).unwrap();
            }
        });
        let asks = async move {
            let mut here = tokio::net::UnixStream::from_std(here).unwrap();
            let begun = clock::now();
            for _ in 0..ANSWERS {
                here.write_all(b"x").await.unwrap();
                here.read_exact(&mut [0]).await.unwrap();
            }
            clock::now() - begun
        };
        let time = runtime.block_on(async { spawn("lives: naps", asks).await.unwrap() });
        outside.unwrap().join().unwrap();
        (runtime.metrics().worker_poll_count(0), time)
    });
    if polls <= 3 * u64::from(ANSWERS) {
        return println!("skipped: it was hardly held, on a machine that is busy: {polls} polls");
    }
    let rate = polls as f64 / time.as_secs_f64();
    assert!(rate < 10_000.0, "{polls} polls in {time}");
}

#[test]
fn two_runtimes_wake_each_other() {
    let [one, other] = runtimes();
    let (ping, mut pings) = mpsc::channel(1);
    let (pong, mut pongs) = mpsc::channel(1);
    let guard = one.enter();
    spawn("two: echo", async move {
        while let Some(i) = pings.recv().await {
            sleep(WHILE).await;
            pong.send(i).await.unwrap();
        }
    });
    drop(guard);
    other.block_on(async {
        let asks = async move {
            for i in 0..3 {
                ping.send(i).await.unwrap();
                assert_eq!(pongs.recv().await, Some(i));
            }
        };
        spawn("two: asks", asks).await.unwrap();
    });
    only_for_tasks("two: asks");
}

#[test]
fn a_runtime_on_a_thread_of_the_pool_of_another() {
    for runtime in runtimes() {
        let nested = runtime.block_on(spawn_blocking_of(|| {
            current_thread().block_on(async {
                let (sender, receiver) = oneshot::channel();
                let waits = spawn("nested: waits", async { receiver.await.unwrap() });
                spawn("nested: wakes", async {
                    sleep(WHILE).await;
                    sender.send(()).unwrap();
                });
                waits.await.unwrap();
                42
            })
        }));
        assert_eq!(nested, 42);
        only_for_tasks("nested: waits");
    }
}

async fn spawn_blocking_of<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(f).await.unwrap()
}

#[test]
fn runtimes_come_and_go_and_leave_no_account_open() {
    // More threads than there are accounts.
    for _ in 0..100 {
        let [runtime, _] = runtimes();
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            drop(spawn("come and go", pending::<()>()));
            drop(spawn("come and go", async move { sender.send(()).unwrap() }));
            spawn("come and go", async { receiver.await.unwrap() }).await.unwrap();
            spawn_blocking(|| ()).await.unwrap();
        });
    }
    let account = std::thread::spawn(|| thread::register().is_some()).join().unwrap();
    assert!(account, "a thread found no account");
}
