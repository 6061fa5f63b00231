//! How many file descriptors andweorc holds for the program's threads: one for the perf event of
//! each that is sampled, and one for what the kernel tells of its waits for a processor. All of
//! them together are no more than a quarter of those that the process may have (RLIMIT_NOFILE), so
//! that a program with many threads finds its files and connections as before.
//!
//! Beside them a session holds its profile, and its threads an epoll and what the kernel tells of
//! their own waits.

use nix::sys::resource::{Resource, getrlimit};
use std::sync::atomic::{AtomicU64, Ordering};

/// Which part of the limit.
const PART: u64 = 4;

/// Number of descriptors that are held. Relaxed: a count that publishes nothing.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Leave to hold one, until dropped.
#[derive(Debug)]
pub struct Permit(());

impl Permit {
    /// `None` where as many are held as may be. Async-signal-safe.
    pub fn take() -> Option<Permit> {
        let most = most();
        let more = |held| (held < most).then_some(held + 1);
        HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Permit(()))
    }

    /// A permit that was forgotten, by who kept a plain number in the place of its file.
    pub fn forgotten() -> Permit {
        Permit(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Number of descriptors that may be held, by the limit of this moment.
pub fn most() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft / PART)
}
