//! A request whose two halves could run beside each other: tokio issue 4941.
//!
//! A session hands one half to another task and computes the other one itself, without an await.
//! The task that it woke is in the LIFO slot of its worker, from where up to tokio 1.50 no other
//! worker can take it, idle as they may be. In 1.51.0 they can (taken back in 1.51.2 and 1.52.2,
//! since it costs programs with short polls up to 30 %: issue 8065).

use tokio::sync::{mpsc, oneshot};
use tracing::info_span;
use tracing_subscriber::prelude::*;

#[path = "../rate.rs"]
mod rate;

const INDEX_US: u64 = 2000;
const RENDER_US: u64 = 2000;

type Job = oneshot::Sender<u64>;

#[andweorc::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    tracing_subscriber::registry().with(andweorc::layer()).init();
    rate::measure();
    let (jobs, queue) = mpsc::channel(1);
    drop(andweorc::task::Builder::new().name("renderer").spawn(renderer(queue)));
    let session = andweorc::task::Builder::new().name("session").spawn(session(jobs));
    session.await.expect("never ends");
}

async fn session(jobs: mpsc::Sender<Job>) {
    loop {
        let (job, rendered) = oneshot::channel();
        jobs.send(job).await.expect("the renderer never ends");
        info_span!("index").in_scope(|| rate::work(INDEX_US));
        rendered.await.expect("each job is answered");
        rate::done();
    }
}

async fn renderer(mut queue: mpsc::Receiver<Job>) {
    while let Some(job) = queue.recv().await {
        let page = info_span!("render").in_scope(|| rate::work(RENDER_US));
        job.send(page).ok();
    }
}
