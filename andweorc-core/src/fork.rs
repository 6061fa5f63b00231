//! A child of fork has one thread, and the state of all others as it was: experiments that nobody
//! ends, delays that nobody takes back, locks that nobody opens. So andweorc is off in it, for
//! good, and what its parent was about to do (end the profile, print the report) it does not do. A
//! program that the child executes starts anew.
//!
//! A lock on a file belongs to the open file, which parent and child share: so the child lets go of
//! the profile (`Unshared`), or the parent, started again, would find it locked for as long as the
//! child lives.
//!
//! Only what fork(2) of the C library makes is noticed, not a bare clone(2);
//! `std::process::Command` needs neither.

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

const NONE: RawFd = -1;

/// Handling of forks. It is no part of the [process](crate::process): the handler has no other
/// argument.
struct Forks {
    /// This process was forked from one in which andweorc was on.
    forked: AtomicBool,
    /// The number of the file that a child does not get, or [`NONE`].
    unshared: AtomicI32,
    /// Called in a child of fork, where it has to be async-signal-safe.
    reset: OnceLock<fn()>,
}

static FORKS: Forks = Forks {
    forked: AtomicBool::new(false),
    unshared: AtomicI32::new(NONE),
    reset: OnceLock::new(),
};

/// Whether this process was forked from one in which andweorc was on. Who would join a thread, lock
/// what another thread may hold, or write to the profile asks this first.
pub fn forked() -> bool {
    // Relaxed: written once, by the only thread that there is.
    FORKS.forked.load(Ordering::Relaxed)
}

/// Notices forks from now on, and calls `reset_after_fork`, which is async-signal-safe, in a child
/// of one.
pub(crate) fn watch(reset_after_fork: fn()) {
    FORKS.reset.get_or_init(|| {
        // SAFETY: the handler is async-signal-safe, as it says, and lives as long as the program.
        // Without memory for it the call fails, and a child of fork behaves as if nobody had
        // noticed.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        reset_after_fork
    });
}

/// A file of which children of fork have nothing but its number while this lives. There is one at a
/// time: a session has one profile. A second one is shared as usual.
#[derive(Debug)]
pub(crate) struct Unshared<T> {
    /// Dropped first: the number may be another file's once this one is closed.
    _noticed: Option<Noticed>,
    file: T,
}

impl<T: AsFd> Unshared<T> {
    pub(crate) fn new(file: T) -> Unshared<T> {
        let number = file.as_fd().as_raw_fd();
        let swap =
            FORKS.unshared.compare_exchange(NONE, number, Ordering::SeqCst, Ordering::SeqCst);
        Unshared { _noticed: swap.ok().map(|_| Noticed), file }
    }
}

impl<T> Deref for Unshared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.file
    }
}

impl<T> DerefMut for Unshared<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.file
    }
}

/// A file's number is in [`FORKS`] while this lives.
#[derive(Debug)]
struct Noticed;

impl Drop for Noticed {
    fn drop(&mut self) {
        FORKS.unshared.store(NONE, Ordering::SeqCst);
    }
}

/// Puts something else in the place of the file that the child shares with its parent. Its number
/// stays taken, since whoever has it there may close it.
///
/// Async-signal-safe: system calls.
fn unshare() {
    let file = FORKS.unshared.swap(NONE, Ordering::SeqCst);
    if file == NONE {
        return;
    }
    // SAFETY: takes plain numbers. Any descriptor will do that holds on to nothing; if there is
    // none to be had, none is left in its place.
    unsafe {
        let other = libc::eventfd(0, libc::EFD_CLOEXEC);
        if other < 0 {
            libc::close(file);
        } else {
            libc::dup3(other, file, libc::O_CLOEXEC);
            libc::close(other);
        }
    }
}

/// # Safety
///
/// Runs in the child of a program of many threads: it writes atomics, makes system calls, allocates
/// nothing and takes no lock.
unsafe extern "C" fn in_child() {
    FORKS.forked.store(true, Ordering::Relaxed);
    if let Some(reset_after_fork) = FORKS.reset.get() {
        reset_after_fork();
    }
    unshare();
}
