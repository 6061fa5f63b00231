//! Plain threads of the program, which take part of their own accord.
//!
//! A thread that polls no task is no part of the world outside: a pool that computes for tasks, a
//! router between channels. It has virtual time as any task has, and what it wakes is woken in its
//! name. So it [takes part](Thread::takes_part) as soon as it wakes a task. Not when it first waits
//! on a futex, or wakes another thread: to ask whether it belongs to a runtime makes tokio's
//! thread-local value in it, which a destructor on a thread without tokio may find gone.
//!
//! That holds only where its waits [are seen](blocking_is_seen). Otherwise it would pay again what
//! passed while it was blocked.
//!
//! Plain threads pay what they owe as they act on others, and are never told to by a signal: that
//! would end a system call which one may be in.
//!
//! A thread of a runtime does not take part: between two polls it acts for the world outside. Who
//! knows runtimes [says](when_of_a_runtime) which these are.

use super::{THREAD, Thread, enabled};
use crate::clock;
use crate::engine::{Stranger, ThreadKind};
use crate::process::process;
use crate::program_clock;
use std::mem;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// How plain threads of a process are known.
pub(super) struct Plain {
    /// A hook sees how threads block.
    blocking_is_seen: AtomicBool,
    /// A `fn() -> bool`, or null.
    is_of_a_runtime: AtomicPtr<()>,
}

impl Plain {
    /// They are not known.
    pub(super) const fn new() -> Plain {
        Plain {
            blocking_is_seen: AtomicBool::new(false),
            is_of_a_runtime: AtomicPtr::new(null_mut()),
        }
    }
}

/// Says that a hook of the system call sees it when threads block, and when they wake each other.
#[inline]
pub fn blocking_is_seen() {
    // Relaxed, here and below: a thread that sees it later takes part later.
    let seen = &process().threads.plain.blocking_is_seen;
    if !seen.load(Ordering::Relaxed) {
        seen.store(true, Ordering::Relaxed);
    }
}

/// Whether `is_of_a_runtime` is true on a thread tells whether it belongs to a runtime: a worker,
/// one of the blocking pool, or one that drives tasks. Plain threads take part once this was
/// called.
pub fn when_of_a_runtime(is_of_a_runtime: fn() -> bool) {
    let pointer = is_of_a_runtime as *mut ();
    process().threads.plain.is_of_a_runtime.store(pointer, Ordering::Relaxed);
}

/// Whether the calling thread, which wakes a task and is no participant yet, is from now on: it is
/// a plain one.
pub fn takes_part() -> bool {
    THREAD.with(Thread::takes_part)
}

impl Thread {
    fn takes_part(&self) -> bool {
        self.kind.get() == ThreadKind::Unknown && enabled() && self.begins_to_take_part()
    }

    #[cold]
    #[inline(never)]
    fn begins_to_take_part(&self) -> bool {
        let plain = &process().threads.plain;
        let of_a_runtime = plain.is_of_a_runtime.load(Ordering::Relaxed);
        let seen = plain.blocking_is_seen.load(Ordering::Relaxed) && !of_a_runtime.is_null();
        if !self.kind.get().is_to_be_asked(seen) || self.writing.get() {
            // The thread stays unknown, and may be asked again.
            return false;
        }
        // To open an account may block, and come here again.
        self.kind.set(ThreadKind::Other);
        // SAFETY: nothing else is stored there than a function of this type.
        let of_a_runtime = unsafe { mem::transmute::<*mut (), fn() -> bool>(of_a_runtime) };
        let stranger = Stranger {
            state: self.state.get(),
            has_polled: self.idle_since.get().is_some(),
            reads_real_time: program_clock::reads_real(),
        };
        self.kind.set(stranger.kind(of_a_runtime));
        let has_account =
            self.kind.get() == ThreadKind::Plain && self.account(clock::now()).is_some();
        let (state, kind) = self.kind.get().take_part(has_account);
        self.kind.set(kind);
        if let Some(state) = state {
            self.set_state(state);
        }
        state.is_some()
    }
}
