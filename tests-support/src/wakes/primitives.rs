//! Each of tokio's ways to wait for another task.

use super::{
    Tasks, WHILE, Waits, only_for_tasks, queued, runtimes, waited, waits_for_a_task,
    waits_for_its_turn,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::{Future, pending};
use std::sync::Arc;
use tokio::sync::{Barrier, Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Semaphore, mutex, rwlock, notify, barrier.
pub fn locks<S: Tasks>() {
    waits_for_a_task::<S, _, _>("semaphore", || {
        let permits = Arc::new(Semaphore::new(0));
        let more = Arc::clone(&permits);
        (async move { permits.acquire_many(3).await.unwrap().forget() }, async move {
            more.add_permits(1);
            more.add_permits(2);
        })
    });
    waits_for_a_task::<S, _, _>("closed semaphore", || {
        let permits = Arc::new(Semaphore::new(0));
        let closes = Arc::clone(&permits);
        (async move { assert!(permits.acquire().await.is_err()) }, async move { closes.close() })
    });
    waits_for_a_task::<S, _, _>("mutex", || {
        let mutex = Arc::new(Mutex::new(()));
        let guard = Arc::clone(&mutex).try_lock_owned().unwrap();
        (async move { drop(mutex.lock().await) }, async move { drop(guard) })
    });
    waits_for_a_task::<S, _, _>("rwlock read", || {
        let lock = Arc::new(RwLock::new(()));
        let guard = Arc::clone(&lock).try_write_owned().unwrap();
        (async move { drop(lock.read().await) }, async move { drop(guard) })
    });
    waits_for_a_task::<S, _, _>("rwlock write", || {
        let lock = Arc::new(RwLock::new(()));
        let guard = Arc::clone(&lock).try_read_owned().unwrap();
        (async move { drop(lock.write().await) }, async move { drop(guard) })
    });
    waits_for_a_task::<S, _, _>("notify one", || {
        let notify = Arc::new(Notify::new());
        let notifier = Arc::clone(&notify);
        (async move { notify.notified().await }, async move { notifier.notify_one() })
    });
    waits_for_a_task::<S, _, _>("notify waiters", || {
        let notify = Arc::new(Notify::new());
        let notifier = Arc::clone(&notify);
        (async move { notify.notified().await }, async move { notifier.notify_waiters() })
    });
    waits_for_a_task::<S, _, _>("barrier", || {
        let barrier = Arc::new(Barrier::new(2));
        let last = Arc::clone(&barrier);
        let waits = |barrier: Arc<Barrier>| async move {
            barrier.wait().await;
        };
        (waits(barrier), waits(last))
    });
}

/// mpsc, broadcast, watch, oneshot.
pub fn channels<S: Tasks>() {
    waits_for_a_task::<S, _, _>("mpsc recv", || {
        let (sender, mut receiver) = mpsc::channel(1);
        (async move { receiver.recv().await.unwrap() }, async move {
            sender.send(()).await.unwrap();
        })
    });
    waits_for_a_task::<S, _, _>("mpsc send", || {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(()).unwrap();
        (async move { sender.send(()).await.unwrap() }, async move {
            receiver.recv().await.unwrap();
            receiver.recv().await.unwrap();
        })
    });
    waits_for_a_task::<S, _, _>("mpsc unbounded", || {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        (async move { receiver.recv().await.unwrap() }, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task::<S, _, _>("mpsc closed by the last sender", || {
        let (sender, mut receiver) = mpsc::channel::<()>(1);
        (async move { assert!(receiver.recv().await.is_none()) }, async move { drop(sender) })
    });
    waits_for_a_task::<S, _, _>("broadcast", || {
        let (sender, mut receiver) = broadcast::channel(1);
        (async move { receiver.recv().await.unwrap() }, async move {
            sender.send(()).unwrap();
        })
    });
    waits_for_a_task::<S, _, _>("watch", || {
        let (sender, mut receiver) = watch::channel(());
        (async move { receiver.changed().await.unwrap() }, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task::<S, _, _>("oneshot", || {
        let (sender, receiver) = oneshot::channel();
        (async move { receiver.await.unwrap() }, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task::<S, _, _>("oneshot closed", || {
        let (sender, receiver) = oneshot::channel::<()>();
        (async move { assert!(receiver.await.is_err()) }, async move { drop(sender) })
    });
}

/// The joiner of a task that ends as `end` says, once it is waited for.
fn joined<S: Tasks>(name: &'static str, end: impl Fn(Waits) -> JoinHandle<()>) {
    for runtime in runtimes::<S>() {
        runtime.block_on(async {
            let waits = Waits::default();
            let joined = end(waits.clone());
            let joins = async move { drop(waits.told_by(joined).await) };
            S::spawn(name, joins).await.unwrap();
        });
        only_for_tasks(name);
    }
}

/// Handles of tasks and of what runs on the pool, however that ends.
pub fn joins<S: Tasks>() {
    joined::<S>("join", |waits| S::spawn("joined", waits.sleep()));
    joined::<S>("join a panic", |waits| {
        S::spawn("joined", async {
            waits.sleep().await;
            panic!("as meant");
        })
    });
    joined::<S>("join an abort", |waits| {
        let aborted = S::spawn("joined", pending());
        let abort = aborted.abort_handle();
        S::spawn("aborting", async move {
            waits.sleep().await;
            abort.abort();
        });
        aborted
    });
    joined::<S>("join the pool", |waits| S::spawn_blocking(|| waits.sleep_blocking()));
    joined::<S>("join a panic on the pool", |waits| {
        S::spawn_blocking(|| {
            waits.sleep_blocking();
            panic!("as meant");
        })
    });
}

/// A task that has used up its budget waits for nobody outside.
pub fn budget<S: Tasks>() {
    waits_for_its_turn::<S, _>("budget", || async {
        for _ in 0..2_000 {
            tokio::task::consume_budget().await;
        }
    });
}

/// So does one that yields, as `yields` does.
pub fn yielding<S: Tasks, F: Future<Output = ()> + Send + 'static>(
    yields: impl Fn() -> F + Clone + Send + Sync + 'static,
) {
    waits_for_its_turn::<S, _>("yield", || {
        let yields = yields.clone();
        async move {
            for _ in 0..1_000 {
                yields().await;
            }
        }
    });
}

/// Yields with tokio's own function, which are told from the world outside once the first ones of a
/// kind have shown that it may.
pub fn yielding_as_tokio_does<S: Tasks>() {
    async fn yields() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    yields_are_known::<S, _>("tokio's yield", yields);
    yields_are_known::<S, _>("tokio's yield, inside", || async {
        let mut parts: FuturesUnordered<_> = (0..3).map(|_| yields()).collect();
        while parts.next().await.is_some() {}
    });
}

fn yields_are_known<S, F>(name: &'static str, yields: impl Fn() -> F)
where
    S: Tasks,
    F: Future<Output = ()> + Send + 'static,
{
    for runtime in runtimes::<S>() {
        let first = yields();
        let first = async {
            // A worker is known for one once it has slept.
            sleep(WHILE).await;
            first.await;
        };
        runtime.block_on(async { S::spawn(name, first).await.unwrap() });
        let ((outside, by_task), before) = (waited(name), queued(name));
        runtime.block_on(async { S::spawn(name, yields()).await.unwrap() });
        let (more, after) = (waited(name), queued(name));
        assert!(
            more.0 == outside && after + more.1 > before + by_task,
            "{name}: {outside}, {by_task}, {before} queued, then {more:?}, {after}"
        );
    }
}
