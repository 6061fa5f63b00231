//! The budget for cooperative scheduling of the poll under way: how much is left of it, and how to
//! take it away.

use std::task::{Context, Poll, Waker};
use tokio::task::coop::{RestoreOnPending, has_budget_remaining, poll_proceed};

/// More than any budget. In a part of a task that is `unconstrained` there is always some left.
const MOST: u32 = 200;

/// Takes all that is left, until the first of what it returns is dropped. Also returns how much
/// that was.
fn take() -> (Option<RestoreOnPending>, u32) {
    let mut context = Context::from_waker(Waker::noop());
    let (mut first, mut taken) = (None, 0);
    // Asked for more than there is, tokio would have the waker called.
    while taken < MOST && has_budget_remaining() {
        let Poll::Ready(step) = poll_proceed(&mut context) else { break };
        taken += 1;
        if first.is_none() {
            first = Some(step);
        } else {
            step.made_progress();
        }
    }
    (first, taken)
}

/// Uses up the budget of the poll that begins, until the answer is dropped.
pub(super) fn use_up() -> Option<RestoreOnPending> {
    take().0
}

/// How much is left. All of it is, after that.
fn left() -> u32 {
    take().1
}

/// A look at the last wait that begins in a poll.
///
/// As a wait begins, a waker is cloned. What asks for budget has taken one step of it then, which
/// it gives back if it is not ready: at the end of the poll there is one step more.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The budget that was left as the last wait began.
    left: Option<u32>,
}

impl Look {
    pub(super) fn wait_begins(&mut self) {
        self.left = Some(left());
    }

    /// The poll ends. Returns whether the last wait that began has asked for budget, if one began
    /// and the budget was not used up. Where something was done after that, it looks as if it had
    /// not.
    pub(super) fn end(&self) -> Option<bool> {
        let last = self.left?;
        let left = left();
        (left > 0).then_some(last + 1 == left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::sync::Arc;
    use tokio::sync::{Notify, mpsc};

    /// The answer of a look at a poll in which `waits` is polled, with a waker of which each clone
    /// is looked at.
    async fn look_at(waits: impl Future) -> Option<bool> {
        let mut waits = pin!(waits);
        poll_fn(|_| {
            LOOK.set(Some(Look::default()));
            assert!(waits.as_mut().poll(&mut Context::from_waker(&waker())).is_pending());
            let look = LOOK.take().unwrap();
            Poll::Ready(look.end())
        })
        .await
    }

    thread_local! {
        static LOOK: std::cell::Cell<Option<Look>> = const { std::cell::Cell::new(None) };
    }

    /// A waker that tells of its clones as a task's does.
    fn waker() -> Waker {
        use std::task::{RawWaker, RawWakerVTable};
        fn clone(_: *const ()) -> RawWaker {
            if let Some(mut look) = LOOK.take() {
                look.wait_begins();
                LOOK.set(Some(look));
            }
            RawWaker::new(std::ptr::null(), &TABLE)
        }
        static TABLE: RawWakerVTable = RawWakerVTable::new(clone, |_| {}, |_| {}, |_| {});
        // SAFETY: the functions of the table need no data.
        unsafe { Waker::new(std::ptr::null(), &TABLE) }
    }

    async fn spawned<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
        tokio::spawn(future).await.unwrap()
    }

    #[tokio::test]
    async fn what_asks_for_budget_is_told_from_what_does_not() {
        let asks = spawned(async {
            let (_send, mut receive) = mpsc::channel::<()>(1);
            look_at(async { receive.recv().await }).await
        });
        assert_eq!(asks.await, Some(true));
        let notify = Arc::new(Notify::new());
        let does_not = spawned(async move { look_at(notify.notified()).await });
        assert_eq!(does_not.await, Some(false));
        let unconstrained = spawned(async {
            let (_send, mut receive) = mpsc::channel::<()>(1);
            look_at(tokio::task::unconstrained(async { receive.recv().await })).await
        });
        assert_eq!(unconstrained.await, Some(false));
        let the_last_of_two = spawned(async {
            let (_send, mut receive) = mpsc::channel::<()>(1);
            let notify = Notify::new();
            look_at(async {
                tokio::select! { biased; _ = receive.recv() => (), _ = notify.notified() => () }
            })
            .await
        });
        assert_eq!(the_last_of_two.await, Some(false));
    }

    #[tokio::test]
    async fn a_look_takes_nothing_away() {
        spawned(async {
            let before = left();
            assert!(before > 0 && before < MOST);
            assert_eq!(left(), before);
            let used_up = use_up();
            assert_eq!(left(), 0);
            drop(used_up);
            assert_eq!(left(), before);
        })
        .await;
    }
}
