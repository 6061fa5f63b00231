//! Holds a task that found out, in its own poll, that it is early.

use crate::profiled::{Kind, defers};
use crate::wake::{WakeCell, is_early, keep};
use andweorc_core::hooks::time::Virtual;
use andweorc_core::hooks::wait::Cause;
use andweorc_core::hooks::{clock, enabled};
use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A task that goes on when the virtual clock gets to when a message is due. No worker is blocked
/// meanwhile. It allocates only where it holds.
#[derive(Debug, Default)]
pub(super) struct Hold {
    cell: Option<Arc<WakeCell>>,
}

impl Hold {
    /// Ready when V gets to `due`, or as soon as andweorc is off.
    pub(super) fn poll(&mut self, due: Virtual, cx: &Context<'_>) -> Poll<()> {
        let now = clock::now();
        let outer = cx.waker();
        if enabled() && is_early(due, now) && defers(self.cell(due, outer), due, now) {
            Poll::Pending
        } else {
            self.let_go();
            Poll::Ready(())
        }
    }

    /// The record of the task that `outer` wakes.
    fn cell(&mut self, due: Virtual, outer: &Waker) -> &Arc<WakeCell> {
        if self.cell.as_ref().is_some_and(|cell| !cell.will_wake(outer)) {
            self.let_go();
        }
        self.cell.get_or_insert_with(|| {
            let now = clock::now();
            // No target: the task that is held has its own.
            let targets = Kind::Name(Cow::Borrowed("andweorc::remote")).targets();
            let cell = WakeCell::new(keep(outer), targets, due.delay_at(now), Virtual::NEVER);
            cell.clock.set_woken(now, Cause::Outside);
            cell
        })
    }

    /// Forgets the wake that is to come.
    fn let_go(&mut self) {
        if let Some(cell) = self.cell.take() {
            cell.clock.let_go();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.let_go();
    }
}
