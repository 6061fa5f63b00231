//! Tasks that nobody wrapped: tokio's own spawn, with `--cfg tokio_unstable`.
#![cfg(tokio_unstable)]

use andweorc::runtime::BuilderExt;
use andweorc_core::profile::TargetKind;
use andweorc_core::target::{Target, target, targets};
use andweorc_core::thread;
use std::future::Future;
use std::panic::Location;
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, Notify, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing_subscriber::prelude::*;

const WHILE: Duration = Duration::from_millis(20);

fn runtimes() -> [Runtime; 2] {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        thread::enable();
        tracing_subscriber::registry().with(andweorc::layer()).init();
    });
    [
        Builder::new_multi_thread().worker_threads(2).enable_all().andweorc().build().unwrap(),
        Builder::new_current_thread().enable_all().andweorc().build().unwrap(),
    ]
}

/// Spawns a task of this name as libraries do.
fn spawn<T: Send + 'static>(
    name: &'static str,
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    tokio::task::Builder::new().name(name).spawn(future).unwrap()
}

/// Time for which the tasks of this name waited for the world outside and for other tasks, ns.
fn waited(name: &str) -> (u64, u64) {
    let [outside, by_task, _] = target(TargetKind::Wait, name, None, None).waited_ns().unwrap();
    (outside, by_task)
}

#[track_caller]
fn only_for_tasks(name: &str) {
    let (outside, by_task) = waited(name);
    assert!(outside == 0 && by_task > 0, "{name}: {outside} ns outside, {by_task} tasks");
}

#[track_caller]
fn only_for_outside(name: &str) {
    let (outside, by_task) = waited(name);
    assert!(outside > 0 && by_task == 0, "{name}: {outside} ns outside, {by_task} tasks");
}

fn waits_for_a_task<W, O>(name: &'static str, pair: impl Fn() -> (W, O))
where
    W: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    for runtime in runtimes() {
        let (waiter, other) = pair();
        runtime.block_on(async {
            let waiter = spawn(name, waiter);
            let other = spawn("other", async {
                sleep(WHILE).await;
                other.await;
            });
            waiter.await.unwrap();
            other.await.unwrap();
        });
        only_for_tasks(name);
    }
}

#[test]
fn channels() {
    waits_for_a_task("mpsc recv", || {
        let (sender, mut receiver) = mpsc::channel(1);
        (async move { receiver.recv().await.unwrap() }, async move {
            sender.send(()).await.unwrap();
        })
    });
    waits_for_a_task("mpsc closed by the last sender", || {
        let (sender, mut receiver) = mpsc::channel::<()>(1);
        (async move { assert!(receiver.recv().await.is_none()) }, async move { drop(sender) })
    });
    waits_for_a_task("broadcast", || {
        let (sender, mut receiver) = broadcast::channel(1);
        (async move { receiver.recv().await.unwrap() }, async move {
            sender.send(()).unwrap();
        })
    });
    waits_for_a_task("watch", || {
        let (sender, mut receiver) = watch::channel(());
        (async move { receiver.changed().await.unwrap() }, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task("oneshot", || {
        let (sender, receiver) = oneshot::channel();
        (async move { receiver.await.unwrap() }, async move { sender.send(()).unwrap() })
    });
}

#[test]
fn locks() {
    waits_for_a_task("notify", || {
        let notify = Arc::new(Notify::new());
        let notifier = Arc::clone(&notify);
        (async move { notify.notified().await }, async move { notifier.notify_one() })
    });
    waits_for_a_task("mutex", || {
        let mutex = Arc::new(Mutex::new(()));
        let guard = Arc::clone(&mutex).try_lock_owned().unwrap();
        (async move { drop(mutex.lock().await) }, async move { drop(guard) })
    });
    waits_for_a_task("semaphore", || {
        let permits = Arc::new(Semaphore::new(0));
        let more = Arc::clone(&permits);
        (async move { permits.acquire_many(3).await.unwrap().forget() }, async move {
            more.add_permits(1);
            more.add_permits(2);
        })
    });
}
