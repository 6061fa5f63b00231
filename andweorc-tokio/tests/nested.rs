//! Profiled futures inside profiled tasks, `LocalSet`s and runtimes in runtimes; runtimes that come
//! and go.

use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::target::target;
use andweorc_core::thread;
use andweorc_core::time::Speedup;
use andweorc_profile::TargetKind;
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::{Profile, spawn, task};
use std::future::Future;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::sleep;

/// One experiment at a time, whichever test it is for.
static EXPERIMENTER: LazyLock<Mutex<Experimenter>> =
    LazyLock::new(|| Mutex::new(Experimenter::new().expect("the only one in this process")));

fn runtime(workers: usize) -> Runtime {
    LazyLock::force(&EXPERIMENTER);
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .enable_profiling()
        .build()
        .unwrap()
}

fn current_thread() -> Runtime {
    LazyLock::force(&EXPERIMENTER);
    Builder::new_current_thread().enable_all().enable_profiling().build().unwrap()
}

/// Holds an experiment with a speedup of 40 % on the waits of the tasks of this name.
fn hold(name: &str) {
    let phases = Phases::from_millis(50, 500, 20);
    let target = target(TargetKind::Wait, name, None, None);
    let mut experimenter = EXPERIMENTER.lock().unwrap_or_else(PoisonError::into_inner);
    // What passes while the machine is too busy to run the program is not credited: then once more.
    let delayed = (0..20).any(|_| {
        let record = experimenter.run(Some(target), Speedup::new(0.4).unwrap(), phases);
        let record = record.record().expect("nobody stops it");
        record.delay_ns > record.real_ns / 4
    });
    assert!(delayed, "it is not delayed by 40 %, nor by 25 %");
}

/// Sleeps again and again, counting.
async fn sleeps(rounds: Arc<AtomicU32>) {
    loop {
        sleep(Duration::from_millis(10)).await;
        rounds.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_wait_inside_a_profiled_part_is_stretched_once() {
    let runtime = runtime(1);
    // Somebody is always in the wait that is the target, so that D grows by 40 % of the time that
    // passes.
    for _ in 0..3 {
        runtime.spawn(sleeps(Arc::default()).profiled("nested: target"));
    }
    let [plain, nested] = [(); 2].map(|()| Arc::<AtomicU32>::default());
    runtime.spawn(sleeps(Arc::clone(&plain)).profiled("nested: plain"));
    let parts = sleeps(Arc::clone(&nested)).profiled("nested: part").profiled("nested: middle");
    runtime.spawn(parts.profiled("nested: whole"));
    once(|| {
        let rounds = [&plain, &nested].map(Arc::clone);
        let [plain, nested] = rounds_meanwhile(rounds, || hold("nested: target"));
        // Held once for each of the three it would be far less than half.
        (plain >= 4 && nested * 4 >= plain * 3, format!("{plain} plain, {nested} nested"))
    });
}

#[test]
fn a_wait_that_is_the_target_is_not_stretched_for_what_is_around_it() {
    let runtime = runtime(1);
    let [plain, nested] = [(); 2].map(|()| Arc::<AtomicU32>::default());
    runtime.spawn(sleeps(Arc::clone(&plain)).profiled("nested: sleep"));
    runtime.spawn(sleeps(Arc::clone(&nested)).profiled("nested: sleep").profiled("nested: around"));
    once(|| {
        let rounds = [&plain, &nested].map(Arc::clone);
        let [plain, nested] = rounds_meanwhile(rounds, || hold("nested: sleep"));
        (plain >= 4 && nested * 4 >= plain * 3, format!("{plain} plain, {nested} nested"))
    });
}

#[test]
fn a_wait_for_this_program_is_not_stretched() {
    let runtime = runtime(1);
    for _ in 0..3 {
        runtime.spawn(sleeps(Arc::default()).profiled("in process: target"));
    }
    let [inside, outside] = [true, false].map(|in_process| {
        let rounds = Arc::<AtomicU32>::default();
        let (mut client, server) = std::os::unix::net::UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut byte = [0];
            while client.write_all(&byte).and_then(|()| client.read_exact(&mut byte)).is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        server.set_nonblocking(true).unwrap();
        let counted = Arc::clone(&rounds);
        let _guard = runtime.enter();
        let mut server = tokio::net::UnixStream::from_std(server).unwrap();
        let echo = async move {
            loop {
                let byte = if in_process {
                    server.read_u8().in_process().await
                } else {
                    server.read_u8().await
                };
                server.write_u8(byte.unwrap()).await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
            }
        };
        drop(task::Builder::new().name("in process: echo").spawn(echo));
        rounds
    });
    once(|| {
        let rounds = [&inside, &outside].map(Arc::clone);
        let [inside, outside] = rounds_meanwhile(rounds, || hold("in process: target"));
        // The other end is a thread that is never delayed.
        let told = format!("{inside} inside, {outside} outside");
        (outside >= 4 && inside * 4 > outside * 5, told)
    });
}

/// Asserts that `f` says yes once: a busy machine may spoil a comparison of times, but not each of
/// many.
fn once(f: impl Fn() -> (bool, String)) {
    let mut told = Vec::new();
    let held = (0..20).any(|_| {
        let (holds, what) = f();
        told.push(what);
        holds
    });
    assert!(held, "{told:?}");
}

/// The rounds that were counted while `f` ran.
fn rounds_meanwhile(rounds: [Arc<AtomicU32>; 2], f: impl FnOnce()) -> [u32; 2] {
    let before = [&rounds[0], &rounds[1]].map(|rounds| rounds.load(Ordering::SeqCst));
    f();
    [0, 1].map(|i| rounds[i].load(Ordering::SeqCst) - before[i])
}

#[test]
fn a_paused_clock_does_not_run_ahead_of_what_is_held() {
    let busy = runtime(1);
    for _ in 0..3 {
        busy.spawn(sleeps(Arc::default()).profiled("paused: target"));
    }
    let stop = Arc::new(AtomicU32::new(0));
    let stopped = Arc::clone(&stop);
    LazyLock::force(&EXPERIMENTER);
    let paused = std::thread::spawn(move || {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).enable_profiling().build().unwrap();
        runtime.block_on(async {
            while stopped.load(Ordering::SeqCst) == 0 {
                let waits = async {
                    std::thread::sleep(Duration::from_millis(1));
                    sleep(Duration::from_millis(10)).await;
                };
                let limit = Duration::from_millis(500);
                let waited = tokio::time::timeout(limit, waits.profiled("paused: waits")).await;
                waited.expect("nothing else is to be waited for");
                // The target's wait lets D grow by as much as this takes.
                std::thread::sleep(Duration::from_millis(2));
            }
        });
    });
    hold("paused: target");
    stop.store(1, Ordering::SeqCst);
    paused.join().unwrap();
}

#[test]
fn a_worker_that_went_to_the_pool_is_idle_there() {
    let runtime = runtime(1);
    for _ in 0..3 {
        runtime.spawn(sleeps(Arc::default()).profiled("pool: target"));
    }
    let late = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&late);
    runtime.spawn(async move {
        loop {
            // This worker becomes a thread of the pool, and another one a worker.
            spawn(async { tokio::task::block_in_place(|| ()) }).await.unwrap();
            sleep(Duration::from_millis(20)).await;
            let began = Instant::now();
            task::spawn_blocking(|| ()).await.unwrap();
            counted.fetch_add(began.elapsed().as_micros() as u32, Ordering::SeqCst);
        }
    });
    once(|| {
        let (began, before) = (Instant::now(), late.load(Ordering::SeqCst));
        hold("pool: target");
        let late = late.load(Ordering::SeqCst) - before;
        // It would owe 40 % of the time that it was idle.
        let whole = began.elapsed().as_micros() as u32;
        (late < whole / 5, format!("{late} us late of {whole}"))
    });
}

fn waited(name: &str) -> [u64; 2] {
    let [outside, by_task, _] = target(TargetKind::Wait, name, None, None).waited_ns().unwrap();
    [outside, by_task]
}

#[test]
fn a_local_set_inside_a_profiled_root() {
    let runtime = current_thread();
    let local = LocalSet::new();
    let in_set = async {
        let (sender, mut receiver) = mpsc::channel(1);
        let timer = task::Builder::new().name("local: timer").spawn_local(async move {
            for i in 0..5 {
                sleep(Duration::from_millis(2)).await;
                sender.send(i).await.unwrap();
            }
        });
        let receiver = task::Builder::new().name("local: receiver").spawn_local(async move {
            let mut sum = 0;
            while let Some(i) = receiver.recv().await {
                sum += i;
            }
            sum
        });
        timer.await.unwrap();
        assert_eq!(receiver.await.unwrap(), 10);
    };
    runtime.block_on(local.run_until(in_set).profiled("local: root"));
    let [outside, by_task] = waited("local: timer");
    assert!(outside > 5_000_000 && by_task == 0, "{outside} {by_task}");
    let [outside, by_task] = waited("local: receiver");
    assert!(outside == 0 && by_task > 5_000_000, "{outside} {by_task}");
    // What the root waits for, its tasks wait for.
    let [outside, _] = waited("local: root");
    assert!(outside > 5_000_000, "{outside}");
}

#[test]
fn two_runtimes_wake_each_other() {
    let (one, other) = (runtime(1), current_thread());
    let (ping, mut pings) = mpsc::channel(1);
    let (pong, mut pongs) = mpsc::channel(1);
    let echo = async move {
        while let Some(i) = pings.recv().await {
            sleep(Duration::from_millis(1)).await;
            pong.send(i).await.unwrap();
        }
    };
    one.spawn(echo.profiled("two: echo"));
    let asks = async move {
        for i in 0..10 {
            ping.send(i).await.unwrap();
            assert_eq!(pongs.recv().await, Some(i));
        }
    };
    other.block_on(asks.profiled("two: asks"));
    let [outside, by_task] = waited("two: asks");
    assert!(outside == 0 && by_task > 5_000_000, "{outside} {by_task}");
}

#[test]
fn a_runtime_on_a_thread_of_the_pool_of_another() {
    let runtime = runtime(1);
    let answer = runtime.block_on(async {
        let nested = task::spawn_blocking(|| {
            current_thread().block_on(
                async {
                    sleep(Duration::from_millis(1)).await;
                    spawn(async { 42 }).await.unwrap()
                }
                .profiled("inner root"),
            )
        });
        nested.await.unwrap()
    });
    assert_eq!(answer, 42);
}

#[test]
fn runtimes_come_and_go_and_leave_no_account_open() {
    // More threads than there are accounts.
    for _ in 0..150 {
        let runtime = runtime(2);
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            drop(spawn(std::future::pending::<()>()));
            drop(spawn(async move { sender.send(()).unwrap() }));
            spawn(async { receiver.await.unwrap() }).await.unwrap();
            task::spawn_blocking(|| ()).await.unwrap();
        });
    }
    let account = std::thread::spawn(|| thread::register().is_some()).join().unwrap();
    assert!(account, "a thread found no account");
}

/// Counts nothing: only who holds it matters.
struct Outer;

impl Wake for Outer {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn whoever_is_gone_holds_no_waker() {
    thread::enable();
    let runtime = current_thread();
    let outer = Arc::new(Outer);
    let waker = Waker::from(Arc::clone(&outer));
    {
        let _guard = runtime.enter();
        let (sender, receiver) = oneshot::channel::<()>();
        let mut waits = Box::pin(receiver.profiled("gone"));
        let mut sleeps = Box::pin(sleep(Duration::from_secs(60)).profiled("gone"));
        let mut context = Context::from_waker(&waker);
        assert!(waits.as_mut().poll(&mut context).is_pending());
        assert!(sleeps.as_mut().poll(&mut context).is_pending());
        drop((waits, sleeps));
        drop(sender);
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&outer), 1);
}
