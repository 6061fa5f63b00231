//! The budget for cooperative scheduling of the poll under way: how much is left of it, and how to
//! take it away.

use std::task::{Context, Poll, Waker};
use tokio::task::coop::{RestoreOnPending, has_budget_remaining, poll_proceed};

/// More than any budget. In a part of a task that is `unconstrained` there is always some left.
const MOST: u32 = 200;

/// Takes so many steps, or all that are left, until the first of what it returns is dropped. Also
/// returns how many that were.
fn take(most: u32) -> (Option<RestoreOnPending>, u32) {
    let mut context = Context::from_waker(Waker::noop());
    let (mut first, mut taken) = (None, 0);
    // Asked for more than there is, tokio would have the waker called.
    while taken < most && has_budget_remaining() {
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
    take(MOST).0
}

/// How much is left. All of it is, after that.
fn left() -> u32 {
    take(MOST).1
}

/// A look at the last wait that begins in a poll: whether it has asked for budget.
///
/// A wait that begins clones a waker. One that asks for budget has taken a step of it by then, and
/// puts back all that was there before, since it is not ready. So half of what is left is taken
/// away while the waker is cloned: where that half is there again at the end of the poll, the wait
/// has asked. Each thing that the task does after the wait began takes one step, which is hardly
/// ever as many as half.
#[derive(Debug, Default)]
pub(super) struct Look {
    last: Option<Mark>,
}

/// The mark by which a wait is known again that has begun.
#[derive(Debug)]
struct Mark {
    /// The steps that were left once half of them were taken away.
    halved: u32,
    /// Puts back that half, where the wait does not.
    taken: Option<RestoreOnPending>,
}

/// With less than this left no wait is marked: too much may be done after it.
const LEAST: u32 = 16;

impl Mark {
    /// Takes half of the budget away, if there is enough.
    fn new() -> Option<Mark> {
        match left() {
            ..LEAST => None,
            all @ LEAST..MOST => Some(Mark { halved: all - all / 2, taken: take(all / 2).0 }),
            // In a part of the task that is unconstrained nothing asks.
            MOST.. => Some(Mark { halved: MOST, taken: None }),
        }
    }
}

impl Look {
    pub(super) fn wait_begins(&mut self) {
        match self.last.take() {
            // One wait clones another waker: a new wait that asks would have taken a step.
            Some(last) if last.halved == left() => self.last = Some(last),
            // The wait before was over at once, or goes on beside this one, which puts back what
            // is left now.
            Some(Mark { taken: Some(taken), .. }) => {
                taken.made_progress();
                self.last = Mark::new();
            }
            Some(Mark { taken: None, .. }) | None => self.last = Mark::new(),
        }
    }

    /// The poll ends. Returns whether the last wait that began has asked for budget, if one began
    /// and there was enough left.
    pub(super) fn end(self) -> Option<bool> {
        let Mark { halved, taken } = self.last?;
        let Some(taken) = taken else { return Some(false) };
        let has_asked = left() > halved;
        if has_asked {
            taken.made_progress();
        }
        Some(has_asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::sync::Arc;
    use std::time::Duration;
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
    async fn wait_that_asks_for_budget_is_told_from_one_that_does_not() {
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
    }

    #[tokio::test]
    async fn of_two_waits_the_last_is_looked_at() {
        let first_asks = spawned(async {
            let (_send, mut receive) = mpsc::channel::<()>(1);
            let notify = Notify::new();
            look_at(async {
                tokio::select! { biased; _ = receive.recv() => (), _ = notify.notified() => () }
            })
            .await
        });
        assert_eq!(first_asks.await, Some(false));
        let both_ask = spawned(async {
            let (_send, mut receive) = mpsc::channel::<()>(1);
            let (_other, mut receive_other) = mpsc::channel::<()>(1);
            look_at(async {
                tokio::select! { biased; _ = receive.recv() => (), _ = receive_other.recv() => () }
            })
            .await
        });
        assert_eq!(both_ask.await, Some(true));
    }

    #[tokio::test]
    async fn a_wait_that_was_over_at_once_is_none() {
        let asks = spawned(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let mut over = pin!(tokio::time::sleep(Duration::from_millis(1)));
            poll_fn(|context| {
                assert!(over.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            while !over.is_elapsed() {
                tokio::task::yield_now().await;
            }
            look_at(async {
                over.await;
                tokio::time::sleep(Duration::from_secs(60)).await;
            })
            .await
        });
        assert_eq!(asks.await, Some(true));
    }

    #[tokio::test]
    async fn work_after_a_wait_began_does_not_hide_its_budget_request() {
        let asks = spawned(async {
            let (_send, mut receive) = mpsc::channel::<()>(1);
            let (send, mut sent) = mpsc::channel(40);
            (0..40).for_each(|n| send.try_send(n).unwrap());
            look_at(async {
                let reads = async { receive.recv().await };
                let answers = async {
                    for _ in 0..40 {
                        sent.recv().await;
                    }
                    std::future::pending::<()>().await
                };
                tokio::select! { biased; _ = reads => (), _ = answers => () }
            })
            .await
        });
        assert_eq!(asks.await, Some(true));
    }

    #[tokio::test]
    async fn after_a_look_the_budget_is_as_it_would_be() {
        let left_after = spawned(async {
            let before = left();
            let (_send, mut receive) = mpsc::channel::<()>(1);
            let notify = Notify::new();
            look_at(async { receive.recv().await }).await;
            let after_one_that_asks = left();
            look_at(notify.notified()).await;
            (before, after_one_that_asks, left())
        });
        let (before, asks, does_not) = left_after.await;
        assert_eq!([asks, does_not], [before; 2]);
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
