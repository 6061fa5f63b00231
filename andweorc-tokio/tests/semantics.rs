//! A profiled program does what the same program does unprofiled: with andweorc on, experiments
//! running, and every task wrapped.

use andweorc_core::experiment::{Experimenter, Phases, Stop};
use andweorc_core::target::target;
use andweorc_core::time::Speedup;
use andweorc_profile::TargetKind;
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::{JoinSet, Profile, spawn, spawn_blocking, task};
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, oneshot};

/// Experiments on the task kind `target`, one after the other, until all tests of this process are
/// done.
static EXPERIMENTS: LazyLock<Arc<Stop>> = LazyLock::new(|| {
    let mut experimenter = Experimenter::new().expect("the only one in this process");
    let stop = experimenter.stopper();
    std::thread::spawn(move || {
        let target = target(TargetKind::Task, "target", None, None);
        let phases = Phases::from_millis(1, 20, 1);
        for percent in (0..=100).step_by(25).cycle() {
            let speedup = Speedup::new(f64::from(percent) / 100.0).expect("a fraction");
            if experimenter.run(Some(target), speedup, phases).record().is_none() {
                return;
            }
        }
    });
    stop
});

/// Both runtimes, with experiments running.
fn runtimes() -> [Runtime; 2] {
    LazyLock::force(&EXPERIMENTS);
    [
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .enable_profiling()
            .build()
            .unwrap(),
        Builder::new_current_thread().enable_all().enable_profiling().build().unwrap(),
    ]
}

fn spin(us: u64) {
    let end = std::time::Instant::now() + Duration::from_micros(us);
    while std::time::Instant::now() < end {
        std::hint::spin_loop();
    }
}

#[test]
fn channels_keep_their_order_and_lose_nothing() {
    for runtime in runtimes() {
        let sums = runtime.block_on(async {
            let (first, mut middle) = mpsc::channel(4);
            let (second, mut last) = mpsc::channel(4);
            task::Builder::new().name("target").spawn(async move {
                for i in 0..2_000u64 {
                    spin(20);
                    first.send(i).await.unwrap();
                }
            });
            spawn(async move {
                while let Some(i) = middle.recv().await {
                    spin(10);
                    second.send(i).await.unwrap();
                }
            });
            let last = spawn(async move {
                let mut got = Vec::new();
                while let Some(i) = last.recv().await {
                    got.push(i);
                }
                got
            });
            last.await.unwrap()
        });
        assert_eq!(sums, (0..2_000).collect::<Vec<_>>());
    }
}

#[test]
fn sleeps_and_sockets_still_wake() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    for runtime in runtimes() {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            spawn(async move {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut byte = [0];
                while socket.read_exact(&mut byte).await.is_ok() {
                    byte[0] += 1;
                    socket.write_all(&byte).await.unwrap();
                }
            });
            let busy = task::Builder::new().name("target").spawn(async {
                loop {
                    spin(300);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            let client = spawn(async move {
                let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
                for i in 0..100u8 {
                    let mut byte = [i];
                    socket.write_all(&byte).await.unwrap();
                    socket.read_exact(&mut byte).await.unwrap();
                    assert_eq!(byte[0], i + 1);
                }
            });
            client.await.unwrap();
            busy.abort();
            assert!(busy.await.unwrap_err().is_cancelled());
        });
    }
}

#[test]
fn panics_and_aborts_pass_through() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let panicked = task::Builder::new().name("target").spawn(async { panic!("as meant") });
            let error = panicked.await.unwrap_err();
            assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "as meant");

            let dropped = Arc::new(AtomicUsize::new(0));
            struct CountDrop(Arc<AtomicUsize>);
            impl Drop for CountDrop {
                fn drop(&mut self) {
                    self.0.fetch_add(1, Ordering::SeqCst);
                }
            }
            let guard = CountDrop(Arc::clone(&dropped));
            let pending = spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            });
            tokio::task::yield_now().await;
            pending.abort();
            assert!(pending.await.unwrap_err().is_cancelled());
            assert_eq!(dropped.load(Ordering::SeqCst), 1);

            let joined = spawn_blocking(|| {
                spin(500);
                7
            });
            assert_eq!(joined.await.unwrap(), 7);
            let blocked = spawn_blocking(|| panic!("on the pool"));
            assert!(blocked.await.unwrap_err().is_panic());
        });
    }
}

#[test]
fn a_detached_task_goes_on() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            drop(spawn(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                sender.send(1).unwrap();
            }));
            assert_eq!(receiver.await.unwrap(), 1);
        });
    }
}

#[test]
fn join_sets_return_every_output() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let mut set: JoinSet<usize> = (0..100).map(|i| async move { i }).collect();
            set.spawn(async {
                spin(200);
                100
            });
            set.spawn_blocking(|| 101);
            assert_eq!(set.len(), 102);
            let mut all = Vec::new();
            while let Some(one) = set.join_next().await {
                all.push(one.unwrap());
            }
            all.sort_unstable();
            assert_eq!(all, (0..102).collect::<Vec<_>>());
        });
    }
}

#[test]
fn a_task_sees_one_waker_for_its_life() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let seen: Arc<OnceLock<Waker>> = Arc::default();
            let polls = Arc::new(AtomicUsize::new(0));
            spawn({
                let polls = Arc::clone(&polls);
                poll_fn(move |cx| {
                    let first = seen.get_or_init(|| cx.waker().clone());
                    assert!(first.will_wake(cx.waker()));
                    cx.waker().wake_by_ref();
                    match polls.fetch_add(1, Ordering::SeqCst) {
                        20 => Poll::Ready(()),
                        _ => Poll::Pending,
                    }
                })
            })
            .await
            .unwrap();
            assert!(polls.load(Ordering::SeqCst) >= 21);
        });
    }
}

#[test]
fn select_polls_parts_that_nothing_woke() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let notify = Arc::new(Notify::new());
            let waiter = {
                let notify = Arc::clone(&notify);
                spawn(async move {
                    let mut ticks = 0;
                    let notified = notify.notified().profiled("notified");
                    tokio::pin!(notified);
                    loop {
                        tokio::select! {
                            () = &mut notified => return ticks,
                            () = tokio::time::sleep(Duration::from_millis(1)) => ticks += 1,
                        }
                    }
                })
            };
            tokio::time::sleep(Duration::from_millis(20)).await;
            notify.notify_one();
            assert!(waiter.await.unwrap() >= 1);
        });
    }
}

#[test]
fn a_future_may_move_to_another_task_between_polls() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel::<u8>();
            let mut moved = Box::pin(receiver.profiled("moved"));
            // Polled here once, so that it holds this task's waker.
            assert!(futures_now(&mut moved).await.is_none());
            let elsewhere = spawn(moved);
            tokio::time::sleep(Duration::from_millis(5)).await;
            sender.send(9).unwrap();
            assert_eq!(elsewhere.await.unwrap().unwrap(), 9);
        });
    }
}

/// Polls a future once.
async fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|cx| match std::pin::Pin::new(&mut *future).poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[test]
fn the_runtime_may_go_away_in_mid_experiment() {
    for runtime in runtimes() {
        let held = Arc::new(Mutex::new(()));
        for _ in 0..50 {
            let held = Arc::clone(&held);
            runtime.spawn(
                async move {
                    loop {
                        spin(50);
                        drop(held.lock().unwrap());
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                .profiled("target"),
            );
        }
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(60)).await });
        runtime.shutdown_timeout(Duration::from_secs(20));
        assert_eq!(Arc::strong_count(&held), 1, "all tasks were dropped");
    }
}
