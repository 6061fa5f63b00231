//! By whom tasks are woken: the same for tasks that are wrapped and for those that nobody wrapped.

pub mod inside;
pub mod primitives;
mod watched;

pub use watched::Watched;

use andweorc_core::target::target;
use andweorc_profile::TargetKind;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// How long who is waited for lets the other wait. It is asleep itself meanwhile.
pub const WHILE: Duration = Duration::from_millis(20);

/// How tasks come to be seen.
pub trait Tasks {
    /// Switches andweorc on, and builds a runtime with its hooks.
    fn build(builder: &mut Builder) -> Runtime;

    /// Spawns a task of this name.
    fn spawn<T: Send + 'static>(
        name: &'static str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T>;

    /// Spawns onto the pool.
    fn spawn_blocking(f: impl FnOnce() + Send + 'static) -> JoinHandle<()>;

    /// A part of a task, of this name.
    fn part<T>(
        name: &'static str,
        future: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send;
}

/// Both kinds of runtime.
pub fn runtimes<S: Tasks>() -> [Runtime; 2] {
    [Builder::new_multi_thread().worker_threads(2), &mut Builder::new_current_thread()]
        .map(|builder| S::build(builder.enable_all()))
}

/// Time for which the tasks of this name waited for the world outside and for other tasks, ns.
pub fn waited(name: &str) -> (u64, u64) {
    let [outside, by_task, _] = target(TargetKind::Wait, name, None, None).waited_ns().unwrap();
    (outside, by_task)
}

/// Time for which the tasks of this name were ready and not polled, ns.
pub fn queued(name: &str) -> u64 {
    let [_, _, queued] = target(TargetKind::Wait, name, None, None).waited_ns().unwrap();
    queued
}

/// How often the tasks of this name were polled and have waited, for who reads that an assertion
/// failed.
fn counted(name: &str) -> String {
    let [polls, waits] =
        [TargetKind::Task, TargetKind::Wait].map(|kind| target(kind, name, None, None).count());
    format!("{polls} polls, {waits} waits")
}

/// Asserts that the tasks of this name have waited, and for other tasks alone.
#[track_caller]
pub fn only_for_tasks(name: &str) {
    let (outside, by_task) = waited(name);
    assert!(
        outside == 0 && by_task > 0,
        "{name}: {outside} ns outside, {by_task} tasks; {}",
        counted(name)
    );
}

/// Asserts that the tasks of this name have waited, and for the world outside alone.
#[track_caller]
pub fn only_for_outside(name: &str) {
    let (outside, by_task) = waited(name);
    assert!(
        outside > 0 && by_task == 0,
        "{name}: {outside} ns outside, {by_task} tasks; {}",
        counted(name)
    );
}

/// Tells whether a future waits already: on a slow machine that takes as long as it takes.
#[derive(Clone, Debug, Default)]
pub struct Waits(Arc<AtomicBool>);

impl Waits {
    /// That future, which tells when it was polled and is not ready.
    pub async fn told_by<T>(self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() {
                self.0.store(true, Ordering::SeqCst);
            }
            polled
        })
        .await
    }

    /// Sleeps until the future waits, and a while longer.
    pub async fn sleep(self) {
        while !self.0.load(Ordering::SeqCst) {
            sleep(WHILE).await;
        }
        sleep(WHILE).await;
    }

    /// Lets a thread sleep until the future waits, and a while longer.
    pub fn sleep_blocking(self) {
        while !self.0.load(Ordering::SeqCst) {
            std::thread::sleep(WHILE);
        }
        std::thread::sleep(WHILE);
    }
}

/// Runs `waiter` in a task of this name and `other` in another one that was asleep before, and
/// asserts that the first has waited for the second alone.
pub fn waits_for_a_task<S, W, O>(name: &'static str, pair: impl Fn() -> (W, O))
where
    S: Tasks,
    W: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    for runtime in runtimes::<S>() {
        let (waiter, other) = pair();
        runtime.block_on(async {
            let waits = Waits::default();
            let waiter = S::spawn(name, waits.clone().told_by(waiter));
            let other = S::spawn("wakes: other", async {
                waits.sleep().await;
                other.await;
            });
            waiter.await.unwrap();
            other.await.unwrap();
        });
        only_for_tasks(name);
    }
}

/// Runs a task of this name, and asserts that it has waited, and not for the world outside: for its
/// turn, a part of which is taken for a wait for a task where nobody wrapped it.
pub fn waits_for_its_turn<S, F>(name: &'static str, future: impl Fn() -> F)
where
    S: Tasks,
    F: Future<Output = ()> + Send + 'static,
{
    for runtime in runtimes::<S>() {
        runtime.block_on(async { S::spawn(name, future()).await.unwrap() });
        let ((outside, by_task), queued) = (waited(name), queued(name));
        assert!(
            outside == 0 && queued + by_task > 0,
            "{name}: {outside} ns outside, {by_task} tasks, {queued} queued; {}",
            counted(name)
        );
    }
}

/// Runs a task of this name, and asserts that it has waited for tasks alone.
pub fn waits_for_tasks<S, F>(name: &'static str, future: impl Fn() -> F)
where
    S: Tasks,
    F: Future<Output = ()> + Send + 'static,
{
    for runtime in runtimes::<S>() {
        runtime.block_on(async { S::spawn(name, future()).await.unwrap() });
        only_for_tasks(name);
    }
}
