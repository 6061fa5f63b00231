//! The account of a thread.

use super::watched_poll::WatchedPoll;
use crate::cache_padded::CachePadded;
use crate::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering::Relaxed, Ordering::SeqCst,
};
use crate::sync::const_fn;
use crate::time::{Nanos, Real};

/// How many threads can have an account at once. A thread beyond that is not delayed, and the run
/// says so.
pub const ACCOUNTS: usize = CHUNK * CHUNKS;

/// So many accounts are made at once, and so many times at most.
pub(super) const CHUNK: usize = if cfg!(loom) { 2 } else { 256 };
pub(super) const CHUNKS: usize = if cfg!(loom) { 1 } else { 16 };

/// `since` of a thread that is not inside the target.
pub(super) const OUTSIDE: i64 = i64::MIN;

/// A thread's account: the delay that it has taken, and since when it is inside the target.
#[derive(Debug)]
pub struct Account {
    pub(super) open: AtomicBool,
    /// L while outside the target, and L at the entry while inside, but for `sampled`.
    pub(super) taken: AtomicI64,
    /// Delay that samples inside the target have added to L. Only ever added to, so that a signal
    /// handler and the thread that it interrupted don't overwrite each other's.
    pub(super) sampled: AtomicI64,
    /// When it entered the target, or [`OUTSIDE`].
    pub(super) since: AtomicI64,
    /// The speedup at the entry, ppm; of what is only [expected](super::Ledger::expect), the
    /// expected part of it.
    pub(super) speedup: AtomicU32,
    /// Up to when that holds.
    pub(super) until: AtomicI64,
    /// The experiment at the entry.
    pub(super) experiment: AtomicU32,
    /// The owner's name for itself while it may be told to pay, or 0. The ledger only keeps it.
    pub(super) runs_as: AtomicI32,
    /// The kernel's name of the owner, by which its CPU clock is read, or 0.
    thread: AtomicI32,
    /// The owner's CPU clock as it entered the target, ns.
    cpu: AtomicI64,
    /// The poll that the owner is in. The ledger only keeps it.
    pub(crate) poll: WatchedPoll,
}

#[cfg(not(loom))]
pub(super) const fn closed_accounts() -> [CachePadded<Account>; CHUNK] {
    [const { CachePadded::new(Account::closed()) }; CHUNK]
}

#[cfg(loom)]
pub(super) fn closed_accounts() -> [CachePadded<Account>; CHUNK] {
    std::array::from_fn(|_| CachePadded::new(Account::closed()))
}

impl Account {
    const_fn! {
    fn closed() -> Account {
        Account {
            open: AtomicBool::new(false),
            taken: AtomicI64::new(0),
            sampled: AtomicI64::new(0),
            since: AtomicI64::new(OUTSIDE),
            speedup: AtomicU32::new(0),
            until: AtomicI64::new(Real::NEVER.0),
            experiment: AtomicU32::new(0),
            runs_as: AtomicI32::new(0),
            thread: AtomicI32::new(0),
            cpu: AtomicI64::new(0),
            poll: WatchedPoll::new(),
        }
    }
    }

    /// L while outside the target; L at the entry while inside.
    #[inline]
    pub(super) fn base(&self) -> Nanos {
        Nanos(self.taken.load(SeqCst) + self.sampled.load(SeqCst))
    }

    /// Says which thread is the owner, by the kernel's name for it.
    pub fn set_thread(&self, thread: i32) {
        // Relaxed, here and below: a reader that mixes two stays guesses wrong once.
        self.thread.store(thread, Relaxed);
    }

    /// The owner, where it has said which thread it is.
    pub(crate) fn thread(&self) -> Option<i32> {
        Some(self.thread.load(Relaxed)).filter(|thread| *thread != 0)
    }

    /// Notes the owner's CPU clock as it enters the target.
    pub fn set_cpu(&self, cpu: Nanos) {
        self.cpu.store(cpu.0, Relaxed);
    }

    /// The owner's CPU clock as it entered the target.
    pub(crate) fn cpu(&self) -> Nanos {
        Nanos(self.cpu.load(Relaxed))
    }

    /// Whether the owner, which has this name, may be sent the signal.
    pub(crate) fn is_told(&self, name: i32) -> bool {
        // Relaxed: as in `set_runs_as`.
        self.runs_as.load(Relaxed) == name
    }

    /// Sets the name under which [`Ledger::lagging`](super::Ledger::lagging) reports the owner; 0
    /// for none.
    #[inline]
    pub fn set_runs_as(&self, name: i32) {
        // Relaxed: who reads it late is late by one look.
        self.runs_as.store(name, Relaxed);
    }
}
