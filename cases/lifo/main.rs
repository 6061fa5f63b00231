//! Requests that come from outside beside tasks that wake each other all the time: tokio pull
//! request 5712.
//!
//! A task that is woken by the one that runs goes into the LIFO slot of its worker, and is run
//! before all others. Two tasks that send each other messages so keep a worker to themselves: up to
//! tokio 1.28.2 until the budget of 128 operations is used up, which with 10 us for each message is
//! a millisecond, and what waits in the queue of the whole runtime is looked at every 61 such
//! turns. From 1.29 on a worker runs at most 3 tasks from its slot in a row.

use std::future::Future;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

#[path = "../rate.rs"]
mod rate;

/// Pairs of tasks, as many as there are workers.
const PAIRS: usize = 2;
/// Threads outside of the runtime that each have one request under way.
const CLIENTS: usize = 4;
const MESSAGE_US: u64 = 10;
const REQUEST_US: u64 = 5;

#[cfg_attr(feature = "andweorc", andweorc::main(flavor = "multi_thread", worker_threads = 2))]
#[cfg_attr(not(feature = "andweorc"), tokio::main(flavor = "multi_thread", worker_threads = 2))]
async fn main() {
    rate::measure();
    let pairs: Vec<_> = (0..PAIRS).map(|_| pair()).collect();
    for _ in 0..CLIENTS {
        let runtime = Handle::current();
        std::thread::spawn(move || client(&runtime));
    }
    for sender in pairs {
        sender.await.expect("never ends");
    }
}

#[cfg(feature = "andweorc")]
fn start<F: Future<Output = ()> + Send + 'static>(name: &'static str, task: F) -> JoinHandle<()> {
    andweorc::task::Builder::new().name(name).spawn(task)
}

#[cfg(not(feature = "andweorc"))]
fn start<F: Future<Output = ()> + Send + 'static>(_name: &'static str, task: F) -> JoinHandle<()> {
    tokio::spawn(task)
}

/// Two tasks with a message that goes to and fro.
fn pair() -> JoinHandle<()> {
    let (ask, asked) = mpsc::channel(1);
    let (answer, answered) = mpsc::channel(1);
    drop(start("answer", pass_on(asked, answer)));
    start("ask", async move {
        ask.send(0).await.expect("the other end never ends");
        pass_on(answered, ask).await;
    })
}

async fn pass_on(mut from: mpsc::Receiver<u64>, to: mpsc::Sender<u64>) {
    while let Some(message) = from.recv().await {
        let message = message ^ rate::work(MESSAGE_US);
        if to.send(message).await.is_err() {
            break;
        }
    }
}

fn client(runtime: &Handle) {
    let _entered = runtime.enter();
    loop {
        let (done, reply) = oneshot::channel();
        drop(start("request", async move {
            // Nobody waits any more once the program ends.
            done.send(rate::work(REQUEST_US)).ok();
            rate::done();
        }));
        if reply.blocking_recv().is_err() {
            return;
        }
    }
}
