//! A task that ends before its end - aborted, panicking, or dropped, at each of its await points,
//! while experiments run - does what the same task does without andweorc: it takes the same steps,
//! ends the same way, is dropped once, and never polled again.

use andweorc_core::experiment::{Experimenter, Phases, Stop};
use andweorc_core::target::target;
use andweorc_core::time::Speedup;
use andweorc_profile::TargetKind;
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::{Profile, task};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

/// A program that hangs is one that lost a wake: after so many seconds. Those in which the whole
/// process was stopped do not count.
const DEADLINE: u32 = 120;

/// Runs this to its end, and polls it only when it is woken.
async fn before_the_deadline(all: impl Future<Output = ()>) {
    let (tell, lost) = oneshot::channel();
    std::thread::spawn(move || {
        for _ in 0..DEADLINE {
            std::thread::sleep(Duration::from_secs(1));
            if tell.is_closed() {
                return;
            }
        }
        tell.send(()).ok();
    });
    tokio::select! {
        biased;
        () = all => {}
        _ = lost => panic!("a wake was lost"),
    }
}

/// Experiments on the task kind `target` until the process ends.
static EXPERIMENTS: LazyLock<Arc<Stop>> = LazyLock::new(|| {
    let mut experimenter = Experimenter::new().expect("the only one in this process");
    let stop = experimenter.stopper();
    std::thread::spawn(move || {
        let target = target(TargetKind::Task, "target", None, None);
        let phases = Phases::from_millis(1, 7, 1);
        for percent in [0, 50, 25, 100].into_iter().cycle() {
            let speedup = Speedup::new(f64::from(percent) / 100.0).expect("a fraction");
            if experimenter.run(Some(target), speedup, phases).record().is_none() {
                return;
            }
        }
    });
    stop
});

fn runtimes() -> [Runtime; 2] {
    LazyLock::force(&EXPERIMENTS);
    [
        Builder::new_multi_thread()
            .worker_threads(3)
            .enable_all()
            .enable_profiling()
            .build()
            .unwrap(),
        Builder::new_current_thread().enable_all().enable_profiling().build().unwrap(),
    ]
}

fn spin(us: u64) {
    let end = Instant::now() + Duration::from_micros(us);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Panic,
    Abort,
    /// Dropped by the task that polls it.
    Drop,
    /// Dropped on a thread that is no worker.
    DropElsewhere,
}

/// Record of what became of one task.
#[derive(Debug, Default)]
struct Seen {
    steps: Mutex<Vec<u64>>,
    polls: AtomicUsize,
    drops: AtomicUsize,
    /// The task stands at the point where it is to end.
    there: Notify,
}

/// A future whose polls and drops are counted.
struct Counted<F>(Pin<Box<F>>, Arc<Seen>);

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.1.polls.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.1.drops.load(Ordering::SeqCst), 0, "polled after it was dropped");
        self.0.as_mut().poll(cx)
    }
}

impl<F> Drop for Counted<F> {
    fn drop(&mut self) {
        self.1.drops.fetch_add(1, Ordering::SeqCst);
    }
}

/// The await points of [`steps`].
const POINTS: u64 = 7;

/// A task with one await of each kind; `fault` befalls it before the point `at`.
async fn steps(seen: Arc<Seen>, fault: Fault, at: u64) -> u64 {
    let mut sum = 0;
    for point in 0..POINTS {
        if fault == Fault::Panic && point == at {
            panic!("as meant");
        }
        if fault != Fault::None && point == at {
            seen.there.notify_one();
            std::future::pending::<()>().await;
        }
        spin(30);
        sum += match point {
            0 => {
                tokio::task::yield_now().await;
                1
            }
            1 => {
                let (sender, mut receiver) = mpsc::channel(1);
                let sent = task::Builder::new().name("target").spawn(async move {
                    for i in 0..20 {
                        spin(10);
                        sender.send(i).await.unwrap();
                    }
                });
                let mut all = 0;
                while let Some(i) = receiver.recv().await {
                    all = all * 3 + i;
                }
                sent.await.unwrap();
                all
            }
            2 => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                2
            }
            3 => {
                let (sender, receiver) = oneshot::channel();
                std::thread::spawn(move || {
                    spin(100);
                    sender.send(4).unwrap();
                });
                receiver.await.unwrap()
            }
            4 => {
                let permits = Arc::new(Semaphore::new(1));
                let held = Arc::clone(&permits).acquire_owned().await.unwrap();
                let other = andweorc_tokio::spawn(async move {
                    spin(50);
                    drop(held);
                });
                drop(permits.acquire().await.unwrap());
                other.await.unwrap();
                8
            }
            5 => tokio::task::spawn_blocking(|| 16).await.unwrap(),
            _ => {
                tokio::time::timeout(
                    Duration::from_millis(1),
                    std::future::pending::<()>().profiled("target"),
                )
                .await
                .unwrap_err();
                32
            }
        };
        seen.steps.lock().unwrap().push(sum);
    }
    sum
}

/// How a task ended, in words.
fn ending<T: std::fmt::Debug>(joined: Result<T, tokio::task::JoinError>) -> String {
    match joined {
        Ok(output) => format!("{output:?}"),
        Err(error) if error.is_panic() => {
            format!("panic {:?}", error.into_panic().downcast::<&str>().unwrap())
        }
        Err(error) => format!("cancelled {}", error.is_cancelled()),
    }
}

/// Runs the task, profiled or not, to what becomes of it.
async fn fate(profiled: bool, fault: Fault, at: u64) -> (Vec<u64>, String) {
    let seen = Arc::<Seen>::default();
    let future = Counted(Box::pin(steps(Arc::clone(&seen), fault, at)), Arc::clone(&seen));
    let ended = match fault {
        Fault::Drop | Fault::DropElsewhere => {
            let mut future: Pin<Box<dyn Future<Output = u64> + Send>> =
                if profiled { Box::pin(future.profiled("target")) } else { Box::pin(future) };
            tokio::select! {
                biased;
                output = poll_fn(|cx| future.as_mut().poll(cx)) => output.to_string(),
                () = seen.there.notified() => {
                    match fault {
                        Fault::Drop => drop(future),
                        _ => std::thread::spawn(move || drop(future)).join().unwrap(),
                    }
                    "dropped".to_owned()
                }
            }
        }
        _ => {
            let task: JoinHandle<u64> = if profiled {
                task::Builder::new().name("target").spawn(future)
            } else {
                tokio::spawn(future)
            };
            if fault == Fault::Abort {
                seen.there.notified().await;
                task.abort();
            }
            ending(task.await)
        }
    };
    let polls = seen.polls.load(Ordering::SeqCst);
    assert_eq!(seen.drops.load(Ordering::SeqCst), 1, "{fault:?} at {at}");
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(seen.polls.load(Ordering::SeqCst), polls, "{fault:?} at {at}: polled after its end");
    (seen.steps.lock().unwrap().clone(), ended)
}

#[test]
fn every_end_at_every_point_is_that_of_the_unprofiled_task() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let all = async {
                for fault in
                    [Fault::None, Fault::Panic, Fault::Abort, Fault::Drop, Fault::DropElsewhere]
                {
                    for at in 0..POINTS {
                        let plain = fate(false, fault, at).await;
                        let profiled = fate(true, fault, at).await;
                        assert_eq!(profiled, plain, "{fault:?} at {at}");
                        let steps = if fault == Fault::None { POINTS } else { at };
                        assert_eq!(plain.0.len() as u64, steps, "{fault:?} at {at}");
                    }
                }
            };
            before_the_deadline(all).await;
        });
    }
}

#[test]
fn aborts_at_any_moment_lose_no_task_and_no_message() {
    const TASKS: usize = 400;
    for runtime in runtimes() {
        runtime.block_on(async {
            let dropped = Arc::<Seen>::default();
            let (sender, mut receiver) = mpsc::unbounded_channel();
            let mut random = 0x5eed_u64;
            let all = async {
                for id in 0..TASKS {
                    let sender = sender.clone();
                    let inside = Counted(
                        Box::pin(async move {
                            for _ in 0..10 {
                                spin(20);
                                tokio::time::sleep(Duration::from_micros(300)).await;
                                sender.send(id).unwrap();
                                tokio::task::yield_now().await;
                            }
                        }),
                        Arc::default(),
                    );
                    let guard =
                        Counted(Box::pin(std::future::pending::<()>()), Arc::clone(&dropped));
                    let task = task::Builder::new().name("target").spawn(async move {
                        let _guard = guard;
                        inside.await;
                    });
                    // Any multiplier of a linear congruence will do; what counts is that the
                    // moments differ.
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let us = random >> 52;
                    tokio::time::sleep(Duration::from_micros(us)).await;
                    match random >> 32 & 3 {
                        0 => task.abort(),
                        1 => std::thread::spawn(move || task.abort()).join().unwrap(),
                        // Detached: it goes on to its end.
                        _ => drop(task),
                    }
                }
                drop(sender);
                let mut sent = vec![0; TASKS];
                while let Some(id) = receiver.recv().await {
                    sent[id] += 1;
                }
                // The channel ends when every task has completed or was dropped.
                assert!(sent.iter().all(|n| (0..=10).contains(n)));
                assert!(sent.iter().filter(|n| **n == 10).count() >= TASKS / 4);
            };
            before_the_deadline(all).await;
            while dropped.drops.load(Ordering::SeqCst) < TASKS {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(dropped.drops.load(Ordering::SeqCst), TASKS);
        });
    }
}
