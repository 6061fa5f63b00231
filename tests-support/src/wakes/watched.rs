//! A task that tells when it is woken.

use andweorc_core::clock;
use andweorc_core::time::Real;
use std::future::poll_fn;
use std::sync::mpsc;
use std::task::{Poll, Waker};
use tokio::runtime::{Builder, Runtime};

/// A task of a tokio runtime that never ends, and tells when it is woken.
#[derive(Debug)]
pub struct Watched {
    _runtime: Runtime,
    /// Its waker, which is one of tokio's.
    pub waker: Waker,
    /// When it was polled after each wake.
    pub woken: mpsc::Receiver<Real>,
}

impl Watched {
    /// Spawns one on a runtime of its own.
    ///
    /// # Panics
    ///
    /// When there is no runtime to be had.
    pub fn spawn() -> Watched {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let (tell, woken) = mpsc::channel();
        let (hand_out, waker) = mpsc::channel();
        let mut first = true;
        runtime.spawn(poll_fn(move |context| {
            if std::mem::take(&mut first) {
                hand_out.send(context.waker().clone()).expect("the test waits");
            } else {
                // A test that has ended listens no more.
                tell.send(clock::now()).unwrap_or_default();
            }
            Poll::<()>::Pending
        }));
        let waker = waker.recv().expect("it is polled once");
        Watched { _runtime: runtime, waker, woken }
    }
}
