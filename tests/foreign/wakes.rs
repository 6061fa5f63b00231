//! By whom a task is woken that nobody wrapped: what `main.rs` does not have of tokio's primitives, and wakes inside of one task.

use super::{WHILE, only_for_outside, only_for_tasks, runtimes, spawn, waits_for_a_task};
use andweorc::Profile;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, join_all};
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Barrier, Notify, RwLock, Semaphore, mpsc, oneshot};
use tokio::task::{JoinSet, block_in_place, spawn_blocking};
use tokio::time::sleep;

#[test]
fn other_locks() {
    waits_for_a_task("rwlock read", || {
        let lock = Arc::new(RwLock::new(()));
        let guard = Arc::clone(&lock).try_write_owned().unwrap();
        (async move { drop(lock.read().await) }, async move { drop(guard) })
    });
    waits_for_a_task("rwlock write", || {
        let lock = Arc::new(RwLock::new(()));
        let guard = Arc::clone(&lock).try_read_owned().unwrap();
        (async move { drop(lock.write().await) }, async move { drop(guard) })
    });
    waits_for_a_task("notify waiters", || {
        let notify = Arc::new(Notify::new());
        let notifier = Arc::clone(&notify);
        (async move { notify.notified().await }, async move { notifier.notify_waiters() })
    });
    waits_for_a_task("barrier", || {
        let barrier = Arc::new(Barrier::new(2));
        let last = Arc::clone(&barrier);
        let waits = |barrier: Arc<Barrier>| async move {
            barrier.wait().await;
        };
        (waits(barrier), waits(last))
    });
    waits_for_a_task("closed semaphore", || {
        let permits = Arc::new(Semaphore::new(0));
        let closes = Arc::clone(&permits);
        (async move { assert!(permits.acquire().await.is_err()) }, async move { closes.close() })
    });
}

#[test]
fn other_channels() {
    waits_for_a_task("mpsc send", || {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(()).unwrap();
        (async move { sender.send(()).await.unwrap() }, async move {
            receiver.recv().await.unwrap();
            receiver.recv().await.unwrap();
        })
    });
    waits_for_a_task("mpsc unbounded", || {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        (async move { receiver.recv().await.unwrap() }, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task("oneshot closed", || {
        let (sender, receiver) = oneshot::channel::<()>();
        (async move { assert!(receiver.await.is_err()) }, async move { drop(sender) })
    });
}

#[test]
fn a_join_set_is_woken_by_its_tasks() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let joins = async {
                let mut set = JoinSet::new();
                for _ in 0..3 {
                    set.spawn(sleep(WHILE));
                }
                set.spawn_blocking(|| std::thread::sleep(WHILE));
                while let Some(joined) = set.join_next().await {
                    joined.unwrap();
                }
            };
            spawn("join set", joins).await.unwrap();
        });
        only_for_tasks("join set");
    }
}

#[test]
fn wakes_inside_one_task() {
    waits_for_a_task("unordered", || {
        let (sender, receiver) = oneshot::channel();
        let parts = async move {
            let (inner, inner_receiver) = oneshot::channel();
            let mut parts = FuturesUnordered::<BoxFuture<'static, ()>>::new();
            parts.push(async move { inner_receiver.await.unwrap() }.boxed());
            let sends = async move {
                receiver.await.unwrap();
                inner.send(()).unwrap();
            };
            parts.push(sends.boxed());
            while parts.next().await.is_some() {}
        };
        (parts, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task("join_all", || {
        // More than the number from which on it is a `FuturesUnordered`.
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..40).map(|_| oneshot::channel()).unzip();
        (async move { drop(join_all(receivers).await) }, async move {
            for sender in senders {
                sender.send(()).unwrap();
            }
        })
    });
    waits_for_a_task("select", || {
        let (sender, receiver) = oneshot::channel();
        let select = async move {
            tokio::select! {
                () = std::future::pending() => {}
                received = receiver => received.unwrap(),
            }
        };
        (select, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task("profiled parts", || {
        let (sender, receiver) = oneshot::channel();
        let parts = async move {
            let (inner, inner_receiver) = oneshot::channel();
            let receive = async move {
                receiver.await.unwrap();
                inner.send(()).unwrap();
            };
            let receive = receive.profiled("part that sends");
            let (received, ()) = tokio::join!(inner_receiver.profiled("part"), receive);
            received.unwrap();
        };
        (parts, async move { sender.send(()).unwrap() })
    });
    only_for_tasks("part");
}

#[test]
fn who_blocks_wakes_in_the_name_of_its_task() {
    for (runtime, workers) in runtimes().into_iter().zip([true, false]) {
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            let waiter = spawn("for the pool", async { receiver.await.unwrap() });
            let sends = move || {
                std::thread::sleep(WHILE);
                sender.send(()).unwrap();
            };
            spawn_blocking(sends).await.unwrap();
            waiter.await.unwrap();
            // Only a worker can block in place.
            if workers {
                let (sender, receiver) = oneshot::channel();
                let waiter = spawn("for one in place", async { receiver.await.unwrap() });
                let blocks = async {
                    block_in_place(|| {
                        std::thread::sleep(WHILE);
                        sender.send(()).unwrap();
                    });
                };
                spawn("in place", blocks).await.unwrap();
                waiter.await.unwrap();
            }
        });
        only_for_tasks("for the pool");
        only_for_tasks("for one in place");
    }
}

#[test]
fn the_root_future_wakes_in_its_own_name() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            let waiter = spawn("for the root", async { receiver.await.unwrap() });
            sleep(WHILE).await;
            sender.send(()).unwrap();
            waiter.await.unwrap();
        });
        only_for_tasks("for the root");
    }
}

#[test]
fn a_socket_whose_ends_are_both_here() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (mut client, mut socket) = tokio::net::UnixStream::pair().unwrap();
            let serves = async move {
                socket.read_u8().in_process().await.unwrap();
                socket.write_u8(b'y').await.unwrap();
            };
            let server = spawn("in process: server", serves);
            let asks = async move {
                sleep(WHILE).await;
                client.write_u8(b'x').await.unwrap();
                client.read_u8().await.unwrap();
            };
            spawn("not in process: client", asks).await.unwrap();
            server.await.unwrap();
        });
        only_for_tasks("in process: server");
        only_for_outside("not in process: client");
    }
}
