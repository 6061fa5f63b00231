//! The executor profiles what hyper asks it to spawn.
#![cfg(feature = "hyper")]

use andweorc_core::target::target;
use andweorc_core::thread;
use andweorc_profile::TargetKind;
use andweorc_tokio::hyper::Executor;
use hyper::rt::Executor as _;
use tokio::sync::oneshot;

#[tokio::test]
async fn its_tasks_are_profiled() {
    thread::enable();
    let (sender, receiver) = oneshot::channel();
    Executor::new("hyper: connection").execute(async move { sender.send(7).unwrap() });
    assert_eq!(receiver.await.unwrap(), 7);
    assert_eq!(target(TargetKind::Task, "hyper: connection", None, None).count(), 1);
}
