//! The thread that let a blocked thread in, as far as it can be known.
//!
//! `v = max(v at the block, v of who woke it)`: a blocked thread absorbs what it owes only as far
//! as the one that let it in had paid. A task's waker says who wakes it; a lock of std does not.
//! What is known is who goes into [`blocked`](crate::thread::blocked) and who comes out:
//!
//! - Who holds a lock has come out and has not gone in again. Where one lock is fought for, it is
//!   the **last** that came out. Its L is read as the next one comes out, which is as it unlocked,
//!   since it pays at the end of its poll or span. If it has entered the target since, only just,
//!   it unlocked before that: while the next one woke up it has saved, which is not taken.
//! - If it has gone in again since, but only just, the next one was on its way: its L as it went in
//!   counts. If it went in before, it can have let nobody in.
//! - A thread that owes more than one that runs can owe (it is [told to
//!   pay](crate::catch_up_signal)) sleeps, or has ended: it is not the one.
//!
//! Where it is not known all is forgiven, as if who let the thread in had paid, which who sends a
//! message or ends does. With several locks it may be the wrong thread; what is forgiven is then
//! wrong by what that one owes, less than [`MOST`].

use crate::ledger::{Account, Ledger};
use crate::time::{Nanos, Real};
use std::ptr;

/// How long after its wake a thread comes out.
const WAKE: Nanos = Nanos::from_micros(100);

/// Delay that a thread that runs owes at most: a plain thread is told to pay every 2 ms. A task is
/// told more rarely: one that runs on for longer with the lock held is taken for one that sleeps.
const MOST: Nanos = Nanos::from_millis(4);

/// The threads of a program that say when they are blocked.
#[derive(Debug, Default)]
pub struct Door<'a> {
    last: Option<Last<'a>>,
}

/// The thread that came out last.
#[derive(Debug)]
struct Last<'a> {
    account: &'a Account,
    /// When the thread went in again, and its L then; `None` if it has not.
    again: Option<(Real, Nanos)>,
}

impl<'a> Door<'a> {
    /// None has come out yet.
    pub const fn new() -> Door<'a> {
        Door { last: None }
    }

    /// The thread is blocked from `now` on.
    pub fn go_in(&mut self, ledger: &Ledger, account: &'a Account, now: Real) {
        if let Some(last) = &mut self.last
            && ptr::eq(last.account, account)
        {
            last.again = Some((now, ledger.local_delay(account, now)));
        }
    }

    /// The thread, outside the target, was blocked since `since`. Returns how much of its debt that
    /// has taken at most.
    pub fn comes_out(
        &mut self,
        ledger: &Ledger,
        account: &'a Account,
        since: Real,
        now: Real,
    ) -> Nanos {
        let blocked = now - since;
        let last = self.last.replace(Last { account, again: None });
        let taken = match last {
            Some(Last { account: other, again: None }) if !ptr::eq(other, account) => {
                ledger.taken_as_entered(other, WAKE, now)
            }
            Some(Last { account: other, again: Some((at, taken)) })
                if !ptr::eq(other, account) && at >= since && now - at <= WAKE =>
            {
                taken
            }
            _ => return blocked,
        };
        if ledger.global_delay(now) - taken > MOST {
            return blocked;
        }
        blocked.min(taken - ledger.local_delay(account, now)).max(Nanos::ZERO)
    }
}

#[cfg(test)]
mod tests;
