//! The body of `#[andweorc::main]` is a participant like any task: it waits, and wakes others in
//! its own name.

use andweorc::__private::rt::runtime::{Builder, LocalOptions};
use andweorc_core::target::target;
use andweorc_core::thread;
use andweorc_profile::TargetKind;
use tests_support::wakes::{WHILE, Waits};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Time for which tasks of this name waited for the world outside and for other tasks, ns.
fn waited(name: &str) -> (u64, u64) {
    let [outside, by_task, _] = target(TargetKind::Wait, name, None, None).waited_ns().unwrap();
    (outside, by_task)
}

/// The body of `main`.
async fn body() {
    let polls = target(TargetKind::Task, "main", None, None);
    let before = (waited("main"), polls.count());
    let (sender, receiver) = oneshot::channel();
    let waits = Waits::default();
    let begun = waits.clone();
    drop(andweorc::spawn(async move {
        begun.sleep().await;
        sender.send(()).unwrap();
    }));
    waits.told_by(receiver).await.unwrap();
    let woken = waited("main");
    assert!(woken.0 == before.0.0 && woken.1 > before.0.1, "by a task: {before:?} {woken:?}");

    sleep(WHILE).await;
    let slept = waited("main");
    assert!(slept.0 > woken.0 && slept.1 == woken.1, "by a timer: {woken:?} {slept:?}");

    let (sender, receiver) = oneshot::channel();
    let waits = Waits::default();
    let named = andweorc::task::Builder::new().name("root: waits for main");
    let waiter = named.spawn(waits.clone().told_by(async { receiver.await.unwrap() }));
    waits.sleep().await;
    sender.send(()).unwrap();
    waiter.await.unwrap();
    let (outside, by_task) = waited("root: waits for main");
    assert!(outside == 0 && by_task > 0, "{outside} {by_task}");
    assert!(polls.count() >= before.1 + 3);
}

#[test]
fn the_root_future_is_a_task() {
    thread::enable();
    Builder::new_multi_thread().enable_all().build().unwrap().block_on(body());
    Builder::new_current_thread().enable_all().build().unwrap().block_on(body());
    if let Ok(local) =
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
    {
        local.block_on(body());
    }
}
