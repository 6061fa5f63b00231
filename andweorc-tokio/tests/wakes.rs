//! By whom a task is woken, for each way to wait: each primitive of tokio, the runtime itself, and
//! the world outside.

use andweorc_core::thread;
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::{Profile, spawn_blocking, task};
use std::future::Future;
use tests_support::wakes::{
    self, Tasks, WHILE, Waits, inside, only_for_outside, only_for_tasks, primitives, waited,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Tasks that are wrapped.
struct Wrapped;

impl Tasks for Wrapped {
    fn build(builder: &mut Builder) -> Runtime {
        thread::enable();
        builder.enable_profiling().build().unwrap()
    }

    fn spawn<T: Send + 'static>(
        name: &'static str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        task::Builder::new().name(name).spawn(future)
    }

    fn spawn_blocking(f: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        spawn_blocking(f)
    }

    fn part<T>(
        name: &'static str,
        future: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send {
        future.profiled(name)
    }
}

fn runtimes() -> [Runtime; 2] {
    wakes::runtimes::<Wrapped>()
}

fn spawn<T: Send + 'static>(
    name: &'static str,
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    Wrapped::spawn(name, future)
}

fn waits_for_a_task<W, O>(name: &'static str, pair: impl Fn() -> (W, O))
where
    W: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    wakes::waits_for_a_task::<Wrapped, W, O>(name, pair);
}

#[test]
fn locks() {
    primitives::locks::<Wrapped>();
}

#[test]
fn channels() {
    primitives::channels::<Wrapped>();
}

#[test]
fn a_join_is_woken_by_the_task_joined() {
    primitives::joins::<Wrapped>();
}

#[test]
fn wakes_inside_one_task() {
    inside::wakes::<Wrapped>();
}

#[test]
fn running_out_of_budget_is_no_wait_for_the_world_outside() {
    primitives::budget::<Wrapped>();
}

#[test]
fn yielding_is_no_wait_for_the_world_outside() {
    primitives::yielding::<Wrapped, _>(task::yield_now);
}

#[test]
fn yielding_as_tokio_does_is_none_once_it_is_known() {
    primitives::yielding_as_tokio_does::<Wrapped>();
}

#[test]
fn a_join_set_is_woken_by_its_tasks() {
    wakes::waits_for_tasks::<Wrapped, _>("join set", || async {
        let waits = Waits::default();
        let mut set = andweorc_tokio::JoinSet::new();
        for _ in 0..3 {
            set.spawn(waits.clone().sleep());
        }
        let joins = async { while set.join_next().await.is_some() {} };
        waits.told_by(joins).await;
    });
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
    // A task that nobody joins completes, and then, with no poll or park between, the world outside
    // wakes.
    let name = "after a completion";
    for runtime in runtimes() {
        let (sender, receiver) = oneshot::channel();
        let (second, second_receiver) = oneshot::channel();
        runtime.block_on(async {
            let waits: [Waits; 2] = Default::default();
            let [told, told_again] = waits.clone();
            let waiter = spawn(name, async {
                told.told_by(receiver).await.unwrap();
                told_again.told_by(second_receiver).await.unwrap();
            });
            let [waits, waits_again] = waits;
            waits.sleep().await;
            // Not a profiled poll around it: as between polls.
            let mut completes = Box::pin(async {}.profiled("completes"));
            futures_util::future::poll_fn(|cx| completes.as_mut().poll(cx)).await;
            sender.send(()).unwrap();
            waits_again.sleep().await;
            second.send(()).unwrap();
            waiter.await.unwrap();
        });
    }
    let (outside, by_task) = waited(name);
    assert!(outside > 0 && by_task > 0, "{outside} {by_task}");
}

#[test]
fn block_in_place_wakes_in_the_name_of_its_task() {
    let name = "block in place";
    let [runtime, _] = runtimes();
    runtime.block_on(async {
        let (sender, receiver) = oneshot::channel();
        let waits = Waits::default();
        let waiter = spawn(name, waits.clone().told_by(async { receiver.await.unwrap() }));
        spawn("in place", async {
            tokio::task::block_in_place(|| {
                waits.sleep_blocking();
                sender.send(()).unwrap();
            });
        });
        waiter.await.unwrap();
    });
    only_for_tasks(name);
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

/// A task that reads from a socket into which another task writes, and then sleeps in a profiled
/// part.
#[test]
fn a_socket_whose_ends_are_both_here() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client =
                tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut socket, _) = listener.accept().await.unwrap();
            let [serves, asks] = [(); 2].map(|()| Waits::default());
            let (told, asked) = (serves.clone(), asks.clone());
            let serve = async move {
                told.told_by(socket.read_u8()).await.unwrap();
                asked.sleep().profiled("in process: timer").await;
                socket.write_u8(b'y').await.unwrap();
            };
            let server = spawn("in process: server", serve.in_process().profiled("in process"));
            serves.sleep().await;
            let asks = async move {
                client.write_u8(b'x').await.unwrap();
                asks.told_by(client.read_u8().in_process()).await.unwrap();
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
                let waits = Waits::default();
                let waiter = spawn(name, waits.clone().told_by(async { receiver.await.unwrap() }));
                std::thread::spawn(move || {
                    if registers {
                        thread::register();
                    }
                    waits.sleep_blocking();
                    sender.send(()).unwrap();
                });
                waiter.await.unwrap();
            }
        });
        only_for_outside("plain thread");
        only_for_tasks("registered thread");
    }
}
