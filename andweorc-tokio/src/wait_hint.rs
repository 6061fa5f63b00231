//! How the poll under way says what will end its wait, where the wake itself does not tell: no task
//! runs on the thread that wakes.

use crate::deferred;
use andweorc_core::hooks::engine::WaitHint;
use andweorc_core::hooks::program_clock;
use pin_project_lite::pin_project;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Whether tokio's clock stands still here. Asked where something would be held.
#[cold]
pub(crate) fn clock_is_paused() -> bool {
    // Two looks at a clock that runs are never the same, and if they ever were, one wake would not
    // be held. By the program's clock they might be: in an experiment it may stand still.
    program_clock::by_real_time(|| {
        let look = tokio::time::Instant::now();
        look == tokio::time::Instant::now()
    })
}

andweorc_core::hooks::plain_thread_local! {
    static SAID: Cell<WaitHint> = Cell::new(WaitHint::External);
}

/// Says it of the poll under way.
pub(crate) fn say(hint: WaitHint) {
    SAID.set(SAID.get().max(hint));
}

/// Listens to what a poll says. Polls nest, and what a profiled part says is of its own wait: its
/// waker tells the one around it.
#[derive(Debug)]
pub(crate) struct Listen {
    before: WaitHint,
}

impl Listen {
    /// The poll begins.
    #[inline]
    pub(crate) fn begin() -> Listen {
        deferred::ends();
        Listen { before: SAID.replace(WaitHint::External) }
    }

    /// Ends the poll. Returns what it said.
    #[inline]
    pub(crate) fn end(&self) -> WaitHint {
        let said = SAID.with(|said| said.replace(self.before));
        if tokio::task::coop::has_budget_remaining() { said } else { WaitHint::Runtime }
    }
}

pin_project! {
    /// A future that waits for sockets of which this program has both ends. See
    /// [`Profile::in_process`](crate::Profile::in_process).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct InProcess<F> {
        #[pin]
        future: F,
    }
}

impl<F> InProcess<F> {
    pub(crate) fn new(future: F) -> InProcess<F> {
        InProcess { future }
    }
}

impl<F: Future> Future for InProcess<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let poll = self.project().future.poll(cx);
        if poll.is_pending() {
            say(WaitHint::Loopback);
        }
        poll
    }
}

/// Lets other tasks run, as `tokio::task::yield_now` does, and says so. With tokio's own, the wake
/// looks like one of the world outside, for which a task is held in an experiment; andweorc finds
/// out whom tokio had put off, but for the first ones of a kind.
pub async fn yield_now() {
    say(WaitHint::Runtime);
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_poll_has_its_own_say() {
        let outer = Listen::begin();
        say(WaitHint::Loopback);
        let inner = Listen::begin();
        say(WaitHint::Runtime);
        say(WaitHint::Loopback);
        assert_eq!(inner.end(), WaitHint::Runtime);
        let silent = Listen::begin();
        assert_eq!(silent.end(), WaitHint::External);
        assert_eq!(outer.end(), WaitHint::Loopback);
    }
}
