//! By whom a task is woken that nobody wrapped.

use super::{Foreign, only_for_outside, only_for_tasks, runtimes, spawn};
use andweorc::Profile;
use tests_support::wakes::{self, Waits, inside, primitives};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, block_in_place, spawn_blocking};

#[test]
fn locks() {
    primitives::locks::<Foreign>();
}

#[test]
fn channels() {
    primitives::channels::<Foreign>();
}

#[test]
fn a_join_is_woken_by_the_task_joined() {
    primitives::joins::<Foreign>();
}

#[test]
fn wakes_inside_one_task() {
    inside::wakes::<Foreign>();
}

#[test]
fn running_out_of_budget_is_no_wait_for_the_world_outside() {
    primitives::budget::<Foreign>();
}

#[test]
fn yielding_is_no_wait_for_the_world_outside() {
    primitives::yielding::<Foreign, _>(andweorc::task::yield_now);
}

#[test]
fn yielding_as_tokio_does_is_none_once_it_is_known() {
    primitives::yielding_as_tokio_does::<Foreign>();
}

#[test]
fn a_join_set_is_woken_by_its_tasks() {
    wakes::waits_for_tasks::<Foreign, _>("join set", || async {
        let waits = Waits::default();
        let mut set = JoinSet::new();
        for _ in 0..3 {
            set.spawn(waits.clone().sleep());
        }
        let last = waits.clone();
        set.spawn_blocking(|| last.sleep_blocking());
        let joins = async {
            while let Some(joined) = set.join_next().await {
                joined.unwrap();
            }
        };
        waits.told_by(joins).await;
    });
}

#[test]
fn wake_from_blocking_code_names_its_task() {
    for (runtime, workers) in runtimes().into_iter().zip([true, false]) {
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            let waits = Waits::default();
            let told = waits.clone().told_by(async { receiver.await.unwrap() });
            let waiter = spawn("for the pool", told);
            let sends = move || {
                waits.sleep_blocking();
                sender.send(()).unwrap();
            };
            spawn_blocking(sends).await.unwrap();
            waiter.await.unwrap();
            // Only a worker can block in place.
            if workers {
                let (sender, receiver) = oneshot::channel();
                let waits = Waits::default();
                let told = waits.clone().told_by(async { receiver.await.unwrap() });
                let waiter = spawn("for one in place", told);
                let blocks = async {
                    block_in_place(|| {
                        waits.sleep_blocking();
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
            let waits = Waits::default();
            let told = waits.clone().told_by(async { receiver.await.unwrap() });
            let waiter = spawn("for the root", told);
            waits.sleep().await;
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
            let waits = Waits::default();
            let told = waits.clone();
            let serves = async move {
                told.told_by(socket.read_u8().in_process()).await.unwrap();
                socket.write_u8(b'y').await.unwrap();
            };
            let server = spawn("in process: server", serves);
            let asks = async move {
                waits.sleep().await;
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
