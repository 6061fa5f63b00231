//! Threads that are blocked by each other, as a hook of the system call sees it.

use super::{LEDGER, Role, THREAD, with};
use crate::clock;
use crate::time::Real;

/// A wait of the calling thread, in the kernel, for another thread: from a hook of the system call, which may be called from anywhere. Allocates
/// nothing and takes no lock.
#[derive(Debug)]
#[must_use = "a wait that begins also ends"]
pub struct Blocking {
    since: Real,
    /// It is inside the target, which it leaves meanwhile.
    inside: bool,
}

impl Blocking {
    /// The wait begins. `None` where it does not matter: the thread is no entity, it is in andweorc itself, or it has said before that it
    /// is [`blocked`](super::blocked).
    pub fn begin() -> Option<Blocking> {
        THREAD.with(|thread| {
            if thread.role.get() != Role::Entity || thread.writing.get() || thread.blocked.get() {
                return None;
            }
            let since = clock::now();
            let inside = thread.depth.get() > 0;
            with(|thread| {
                thread.share();
                if inside && let Some(account) = thread.account.get() {
                    LEDGER.exit(account, since, thread.ran.end(since));
                }
            });
            Some(Blocking { since, inside })
        })
    }

    /// Another thread has ended it: what was owed and passed meanwhile is not paid again, and the rest is paid now.
    pub fn end(self) {
        let now = clock::now();
        with(|thread| {
            thread.share_anew();
            if let Some(account) = thread.account(now) {
                LEDGER.idle(account, now - self.since, now);
            }
            thread.pay(now);
        });
        self.end_by_time();
    }

    /// Time has ended it, as it would have a sleep: the world outside was not sped up.
    pub fn end_by_time(self) {
        with(|thread| {
            thread.share_anew();
            if self.inside
                && let Some(account) = thread.account.get()
            {
                let now = clock::now();
                thread.ran.begin(now);
                LEDGER.enter(account, now);
            }
        });
    }
}

/// Pays what the calling thread owes before it wakes others, from a hook of the system call. Does nothing where [`Blocking::begin`] does not.
pub fn pay_before_waking() {
    let in_andweorc = THREAD.with(|thread| thread.writing.get());
    if !in_andweorc {
        with(|thread| {
            if thread.role.get() == Role::Entity {
                thread.pay(clock::now());
            }
        });
    }
}
