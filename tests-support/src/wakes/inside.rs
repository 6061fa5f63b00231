//! Wakes inside one task.

use super::{Tasks, only_for_tasks, waits_for_a_task};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, join_all};
use futures_util::stream::FuturesUnordered;
use std::future::pending;
use tokio::sync::oneshot;

/// `FuturesUnordered`, `join_all`, `select!`, and profiled parts.
pub fn wakes<S: Tasks>() {
    waits_for_a_task::<S, _, _>("unordered", || {
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
    waits_for_a_task::<S, _, _>("join_all", || {
        // More than the number from which on it is a `FuturesUnordered`.
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..40).map(|_| oneshot::channel()).unzip();
        (async move { drop(join_all(receivers).await) }, async move {
            for sender in senders {
                sender.send(()).unwrap();
            }
        })
    });
    waits_for_a_task::<S, _, _>("select", || {
        let (sender, receiver) = oneshot::channel();
        let select = async move {
            tokio::select! {
                () = pending() => {}
                received = receiver => received.unwrap(),
            }
        };
        (select, async move { sender.send(()).unwrap() })
    });
    waits_for_a_task::<S, _, _>("profiled parts", || {
        let (sender, receiver) = oneshot::channel();
        let parts = async move {
            let (inner, inner_receiver) = oneshot::channel();
            let receive = async move {
                receiver.await.unwrap();
                inner.send(()).unwrap();
            };
            let receive = S::part("part that sends", receive);
            let (received, ()) = tokio::join!(S::part("part", inner_receiver), receive);
            received.unwrap();
        };
        (parts, async move { sender.send(()).unwrap() })
    });
    only_for_tasks("part");
}
