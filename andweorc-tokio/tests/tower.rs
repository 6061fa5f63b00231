//! The layer profiles the requests of a service inside tasks that nobody profiled.
#![cfg(feature = "tower")]

use andweorc_core::target::{Target, target, targets};
use andweorc_core::thread;
use andweorc_profile::TargetKind;
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::tower::{layer, layer_by};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tests_support::wakes::Waits;
use tokio::sync::mpsc;
use tower_layer::Layer;
use tower_service::Service;

/// Answers with the length of the request, once a task has sent something.
struct Length(mpsc::Receiver<()>, Waits);

impl Service<String> for Length {
    type Response = usize;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<usize, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: String) -> Self::Future {
        let mut receiver = std::mem::replace(&mut self.0, mpsc::channel(1).1);
        let waits = self.1.clone();
        Box::pin(async move {
            waits.told_by(receiver.recv()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(request.len())
        })
    }
}

/// Answers at once.
#[derive(Clone)]
struct Now;

impl Service<u32> for Now {
    type Response = u32;
    type Error = Infallible;
    type Future = Ready<Result<u32, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u32) -> Self::Future {
        ready(Ok(request))
    }
}

fn task(name: &str) -> &'static Target {
    target(TargetKind::Task, name, None, None)
}

#[test]
fn request_wait_is_known_in_an_unprofiled_task() {
    thread::enable();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().enable_profiling().build().unwrap();
    let length = runtime.block_on(async {
        let (sender, receiver) = mpsc::channel(1);
        let waits = Waits::default();
        let mut service = layer("tower: request").layer(Length(receiver, waits.clone()));
        let connection = tokio::spawn(async move { service.call("four".to_owned()).await });
        andweorc_tokio::spawn(async move {
            waits.sleep().await;
            sender.send(()).await.unwrap();
        });
        connection.await.unwrap()
    });
    assert_eq!(length, Ok(4));
    assert!(task("tower: request").count() >= 3);
    let wait = target(TargetKind::Wait, "tower: request", None, None);
    let [outside, by_task, _] = wait.waited_ns().unwrap();
    assert!(outside > 0 && by_task > 0, "{outside} {by_task}");
}

#[tokio::test]
async fn a_closure_names_requests() {
    thread::enable();
    let even = |request: &u32| if request.is_multiple_of(2) { "tower: even" } else { "tower: odd" };
    let mut service = layer_by(even).layer(Now);
    for request in 0..5 {
        assert_eq!(service.clone().call(request).await, Ok(request));
    }
    assert_eq!(service.call(6).await, Ok(6));
    assert_eq!((task("tower: even").count(), task("tower: odd").count()), (4, 2));
}

/// Other tests switch andweorc on, for good: so this one looks at another process.
#[test]
fn while_off_nothing_is_named() {
    if std::env::var_os("TOWER_TEST_OFF").is_none() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "while_off_nothing_is_named"]).env("TOWER_TEST_OFF", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let name = |_: &u32| -> &'static str { panic!("nobody asks") };
    assert_eq!(runtime.block_on(layer_by(name).layer(Now).call(1)), Ok(1));
    assert!(targets().is_empty());
}
