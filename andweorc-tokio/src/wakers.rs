//! Which wakers may be called on any thread: those of tokio.
//!
//! A wake that is held is made later, by another thread than the one that woke. tokio's wakers
//! neither block nor panic. Those of other executors, and of what runs futures inside a task
//! (`FuturesUnordered`), are somebody else's code: where they panic, the panic belongs to the
//! thread that wakes.

use andweorc_core::hooks::own_thread;
use std::future::poll_fn;
use std::ptr;
use std::sync::LazyLock;
use std::task::{Poll, RawWakerVTable, Waker};
use tokio::runtime::Builder;

/// Whether this is a waker of a task or of `block_on` of the tokio that this crate is built with.
pub(crate) fn is_tokios(waker: &Waker) -> bool {
    static KNOWN: LazyLock<Vec<&'static RawWakerVTable>> = LazyLock::new(learn);
    let vtable = waker.vtable();
    KNOWN.iter().any(|&known| ptr::eq(known, vtable) || known == vtable)
}

/// The tables of tokio's wakers: of a task, of a current-thread runtime, and of a thread that waits
/// for a runtime.
fn learn() -> Vec<&'static RawWakerVTable> {
    // On a thread of its own, since this one may be in a runtime, where no other one can be driven.
    let learner = own_thread::spawn("andweorc-learn", || {
        let Ok(runtime) = Builder::new_current_thread().build() else { return Vec::new() };
        let task = runtime.spawn(seen());
        let task = runtime.block_on(task);
        let known = [runtime.block_on(seen()), runtime.handle().block_on(seen())];
        task.into_iter().chain(known).collect()
    });
    // Without a thread to be had none is known: nothing is held then.
    learner.ok().and_then(|learner| learner.join().ok()).unwrap_or_default()
}

/// The table of the waker that this future is polled with.
fn seen() -> impl Future<Output = &'static RawWakerVTable> {
    poll_fn(|context| Poll::Ready(context.waker().vtable()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::task::Wake;

    struct Other;

    impl Wake for Other {
        fn wake(self: Arc<Self>) {}
    }

    fn is_here() -> impl Future<Output = bool> {
        poll_fn(|context| Poll::Ready(is_tokios(context.waker())))
    }

    #[test]
    fn wakers_of_tokio_are_known_and_no_others() {
        assert!(!is_tokios(&Waker::from(Arc::new(Other))));
        assert!(!is_tokios(Waker::noop()));
        let multi = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let single = Builder::new_current_thread().build().unwrap();
        for runtime in [&multi, &single] {
            assert!(runtime.block_on(is_here()));
            assert!(runtime.block_on(runtime.spawn(is_here())).unwrap());
            let local = tokio::task::LocalSet::new();
            assert!(
                local.block_on(runtime, async {
                    tokio::task::spawn_local(is_here()).await.unwrap()
                })
            );
        }
    }
}
