//! By whom a task is woken, for each way to wait: each primitive of tokio, the runtime itself, and the world outside.

use andweorc_core::profile::TargetKind;
use andweorc_core::target::target;
use andweorc_core::thread;
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::{Profile, spawn_blocking, task};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// How long who is waited for lets the other wait. It is asleep itself meanwhile.
const WHILE: Duration = Duration::from_millis(20);

/// Both kinds of runtime, with andweorc on.
fn runtimes() -> [Runtime; 2] {
    thread::enable();
    [
        Builder::new_multi_thread().worker_threads(2).enable_all().andweorc().build().unwrap(),
        Builder::new_current_thread().enable_all().andweorc().build().unwrap(),
    ]
}

fn spawn<T: Send + 'static>(
    name: &'static str,
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    task::Builder::new().name(name).spawn(future)
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

/// Runs `waiter` in a task of this name and `other` in another one that was asleep before, and asserts that the first has waited
/// for the second alone.
fn waits_for_a_task<W, O>(name: &'static str, pair: impl Fn() -> (W, O))
where
    W: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    for runtime in runtimes() {
        let (waiter, other) = pair();
        runtime.block_on(async {
            let waiter = spawn(name, waiter);
            let other = spawn("wakes: other", async {
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
fn semaphore() {
    waits_for_a_task("semaphore", || {
        let permits = Arc::new(Semaphore::new(0));
        let more = Arc::clone(&permits);
        (async move { permits.acquire_many(3).await.unwrap().forget() }, async move {
            more.add_permits(1);
            more.add_permits(2);
        })
    });
}

#[test]
fn mutex() {
    waits_for_a_task("mutex", || {
        let mutex = Arc::new(Mutex::new(()));
        let guard = Arc::clone(&mutex).try_lock_owned().unwrap();
        (async move { drop(mutex.lock().await) }, async move { drop(guard) })
    });
}

#[test]
fn rwlock() {
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
}

#[test]
fn notify() {
    waits_for_a_task("notify one", || {
        let notify = Arc::new(Notify::new());
        let notifier = Arc::clone(&notify);
        (async move { notify.notified().await }, async move { notifier.notify_one() })
    });
    waits_for_a_task("notify waiters", || {
        let notify = Arc::new(Notify::new());
        let notifier = Arc::clone(&notify);
        (async move { notify.notified().await }, async move { notifier.notify_waiters() })
    });
}

#[test]
fn mpsc_channels() {
    waits_for_a_task("mpsc recv", || {
        let (sender, mut receiver) = mpsc::channel(1);
        (async move { receiver.recv().await.unwrap() }, async move {
            sender.send(()).await.unwrap();
        })
    });
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
    waits_for_a_task("mpsc closed by the last sender", || {
        let (sender, mut receiver) = mpsc::channel::<()>(1);
        (async move { assert!(receiver.recv().await.is_none()) }, async move { drop(sender) })
    });
}

#[test]
fn broadcast_watch_and_oneshot() {
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
    waits_for_a_task("oneshot closed", || {
        let (sender, receiver) = oneshot::channel::<()>();
        (async move { assert!(receiver.await.is_err()) }, async move { drop(sender) })
    });
}

/// The joiner of a task that ends as `end` says.
fn joins(name: &'static str, end: impl Fn() -> JoinHandle<()>) {
    for runtime in runtimes() {
        runtime.block_on(async {
            let joined = end();
            spawn(name, async move { drop(joined.await) }).await.unwrap();
        });
        only_for_tasks(name);
    }
}

#[test]
fn a_join_is_woken_by_the_task_joined() {
    joins("join", || spawn("joined", sleep(WHILE)));
    joins("join a panic", || {
        spawn("joined", async {
            sleep(WHILE).await;
            panic!("as meant");
        })
    });
    joins("join an abort", || {
        let aborted = spawn("joined", std::future::pending());
        let abort = aborted.abort_handle();
        spawn("aborting", async move {
            sleep(WHILE).await;
            abort.abort();
        });
        aborted
    });
    joins("join the pool", || spawn_blocking(|| std::thread::sleep(WHILE)));
    joins("join a panic on the pool", || {
        spawn_blocking(|| {
            std::thread::sleep(WHILE);
            panic!("as meant");
        })
    });
    for runtime in runtimes() {
        runtime.block_on(spawn_in(&runtime, "join set", async {
            let mut set = andweorc_tokio::JoinSet::new();
            for _ in 0..3 {
                set.spawn(sleep(WHILE));
            }
            while set.join_next().await.is_some() {}
        }));
        only_for_tasks("join set");
    }
}

async fn joined(handle: JoinHandle<()>) {
    handle.await.unwrap();
}

fn spawn_in(
    runtime: &Runtime,
    name: &'static str,
    future: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> {
    let _guard = runtime.enter();
    joined(spawn(name, future))
}

#[test]
fn a_task_dropped_before_its_first_poll_wakes_in_its_own_name() {
    waits_for_a_task("dropped unpolled", || {
        let (sender, receiver) = oneshot::channel::<()>();
        (async move { drop(receiver.await) }, async move {
            let unpolled = task::Builder::new().name("unpolled").spawn_blocking(|| ());
            unpolled.await.unwrap();
            let dropped = async move { drop(sender) }.profiled("unpolled");
            // Where nobody polls.
            std::thread::spawn(move || drop(dropped)).join().unwrap();
        })
    });
}

#[test]
fn one_completion_wakes_one_joiner_and_nobody_else() {
    // A task that nobody joins completes, and then, with no poll or park between, the world outside wakes.
    let name = "after a completion";
    for runtime in runtimes() {
        let (sender, receiver) = oneshot::channel();
        let (second, second_receiver) = oneshot::channel();
        runtime.block_on(async {
            let waiter = spawn(name, async {
                receiver.await.unwrap();
                second_receiver.await.unwrap();
            });
            sleep(WHILE).await;
            // Not a profiled poll around it: as between polls.
            let mut completes = Box::pin(async {}.profiled("completes"));
            futures_util::future::poll_fn(|cx| completes.as_mut().poll(cx)).await;
            sender.send(()).unwrap();
            sleep(WHILE).await;
            second.send(()).unwrap();
            waiter.await.unwrap();
        });
    }
    let (outside, by_task) = waited(name);
    assert!(outside > 0 && by_task > 0, "{outside} {by_task}");
}

#[test]
fn wakes_inside_one_task() {
    waits_for_a_task("unordered", || {
        let (sender, receiver) = oneshot::channel();
        let parts = async move {
            let (inner, inner_receiver) = oneshot::channel();
            let mut parts = FuturesUnordered::new();
            parts.push(Box::pin(async move { inner_receiver.await.unwrap() })
                as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>);
            parts.push(Box::pin(async move {
                receiver.await.unwrap();
                inner.send(()).unwrap();
            }));
            while parts.next().await.is_some() {}
        };
        (parts, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task("join_all", || {
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
fn block_in_place_wakes_in_the_name_of_its_task() {
    let name = "block in place";
    let [runtime, _] = runtimes();
    runtime.block_on(async {
        let (sender, receiver) = oneshot::channel();
        let waiter = spawn(name, async { receiver.await.unwrap() });
        spawn("in place", async {
            tokio::task::block_in_place(|| {
                std::thread::sleep(WHILE);
                sender.send(()).unwrap();
            });
        });
        waiter.await.unwrap();
    });
    only_for_tasks(name);
}

#[test]
fn running_out_of_budget_is_no_wait_for_the_world_outside() {
    let name = "budget";
    for runtime in runtimes() {
        runtime.block_on(spawn_in(&runtime, name, async {
            for _ in 0..2_000 {
                tokio::task::coop::consume_budget().await;
            }
        }));
    }
    let (outside, by_task) = waited(name);
    assert!(outside == 0 && by_task > 0, "{outside} {by_task}");
}

#[test]
fn yielding_is_no_wait_for_the_world_outside() {
    let name = "yield";
    for runtime in runtimes() {
        runtime.block_on(spawn_in(&runtime, name, async {
            for _ in 0..2_000 {
                task::yield_now().await;
            }
        }));
    }
    let (outside, by_task) = waited(name);
    assert!(outside == 0 && by_task > 0, "{outside} {by_task}");
}

#[test]
fn timers_and_sockets_are_the_world_outside() {
    for runtime in runtimes() {
        runtime.block_on(async {
            spawn("timer", sleep(WHILE)).await.unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (reads, told) = std::sync::mpsc::channel();
            let client = std::thread::spawn(move || {
                let mut socket = std::net::TcpStream::connect(address).unwrap();
                told.recv().unwrap();
                std::thread::sleep(WHILE);
                std::io::Write::write_all(&mut socket, b"x").unwrap();
                socket
            });
            let (mut socket, _) = listener.accept().await.unwrap();
            let reader = spawn("socket", async move {
                // Else it is there already, on a slow machine.
                reads.send(()).unwrap();
                socket.read_u8().await.unwrap();
                socket.write_u8(b'y').await.unwrap();
            });
            reader.await.unwrap();
            drop(client.join().unwrap());
        });
        only_for_outside("timer");
        only_for_outside("socket");
    }
}

/// A task that reads from a socket into which another task writes, and then sleeps in a profiled part.
#[test]
fn a_socket_whose_ends_are_both_here() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client =
                tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut socket, _) = listener.accept().await.unwrap();
            let serve = async move {
                socket.read_u8().await.unwrap();
                sleep(WHILE).profiled("in process: timer").await;
                socket.write_u8(b'y').await.unwrap();
            };
            let server = spawn("in process: server", serve.in_process().profiled("in process"));
            sleep(WHILE).await;
            let asks = async move {
                client.write_u8(b'x').await.unwrap();
                client.read_u8().in_process().await.unwrap();
            };
            spawn("in process: client", asks).await.unwrap();
            server.await.unwrap();
        });
        only_for_tasks("in process: client");
        only_for_outside("in process: timer");
        for name in ["in process", "in process: server"] {
            let (outside, by_task) = waited(name);
            assert!(outside > 0 && by_task > 0, "{name}: {outside} ns outside, {by_task} tasks");
        }
    }
}

#[test]
fn a_thread_counts_as_part_of_the_program_once_it_registered() {
    for runtime in runtimes() {
        runtime.block_on(async {
            for (name, registers) in [("plain thread", false), ("registered thread", true)] {
                let (sender, receiver) = oneshot::channel();
                let waiter = spawn(name, async { receiver.await.unwrap() });
                std::thread::spawn(move || {
                    if registers {
                        thread::register();
                    }
                    std::thread::sleep(WHILE);
                    sender.send(()).unwrap();
                });
                waiter.await.unwrap();
            }
        });
        only_for_outside("plain thread");
        only_for_tasks("registered thread");
    }
}
