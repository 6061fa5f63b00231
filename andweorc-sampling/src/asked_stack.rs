//! The call chain of one thread that runs, which is asked for it by the signal.
//!
//! One stack is asked for at a time, by one thread: it [asks](ask), sends the signal, and
//! [takes](take) what is there when it looks again. A thread that has none of the signal's handlers
//! run by then answers later, which is not taken for an answer to the next question: each has a
//! number.
//!
//! Only a thread that is seen to run is asked. The signal ends some system calls with EINTR that a
//! program may not expect to fail (SA_RESTART does not restart nanosleep(2), poll(2) or a socket
//! with a timeout), so that one which sleeps is [looked at](crate::asleep) from outside.

use crate::slots;
use crate::walk::{self, Registers};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Frames that are kept: an async call chain is deep.
pub const DEPTH: usize = 64;

/// The thread that is asked, by the kernel's name for it; 0 for none.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// Number of the question.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The mark of what the thread is in that is asked for.
static MARK: AtomicI64 = AtomicI64::new(0);

/// Number of the question that was answered last, and how many frames there are.
static ANSWERED: AtomicU64 = AtomicU64::new(0);

static FRAMES: [AtomicU64; DEPTH] = [const { AtomicU64::new(0) }; DEPTH];

/// Asks a thread for its call chain, in the next signal that it handles, if it is still in what has
/// this mark then.
pub fn ask(tid: i32, mark: i64) {
    // Relaxed, both: published by the last one.
    NUMBER.fetch_add(1, Ordering::Relaxed);
    MARK.store(mark, Ordering::Relaxed);
    // Release: pairs with the acquire in `answer`.
    ASKED.store(tid, Ordering::Release);
}

/// Takes the answer: an instruction, then for each caller an address inside its call. `None` where
/// the thread has not answered, who is asked no longer then.
pub fn take() -> Option<Vec<u64>> {
    // Relaxed: who asks is one thread, and a thread that answers now answers too late.
    ASKED.store(0, Ordering::Relaxed);
    // Acquire: pairs with the release in `answer`.
    let answered = ANSWERED.swap(0, Ordering::Acquire);
    let (number, length) = ((answered >> 32) as u32, answered as u32 as usize);
    // Relaxed: only this thread writes it.
    let is_answer = number == NUMBER.load(Ordering::Relaxed) && length > 0;
    // Relaxed: published by `ANSWERED`.
    is_answer.then(|| {
        FRAMES[..length.min(DEPTH)].iter().map(|frame| frame.load(Ordering::Relaxed)).collect()
    })
}

/// Answers, if the calling thread is asked and `is_in` says that it is in what has the mark of the
/// question. Async-signal-safe.
///
/// A thread that answers too late may write while another one answers: that chain is a mixture
/// then, of addresses of code all the same.
///
/// # Safety
///
/// `context` is the third argument of a handler that was installed with SA_SIGINFO, and runs on the
/// calling thread.
pub unsafe fn answer(context: *const c_void, is_in: impl FnOnce(i64) -> bool) {
    // Acquire: pairs with the release in `ask`.
    let asked = ASKED.load(Ordering::Acquire);
    if asked == 0 || asked != nix::unistd::gettid().as_raw() {
        return;
    }
    // Relaxed, both: published by `ASKED`.
    let (number, mark) = (NUMBER.load(Ordering::Relaxed), MARK.load(Ordering::Relaxed));
    // Relaxed: who takes the question back gets no answer to it.
    if ASKED.compare_exchange(asked, 0, Ordering::Relaxed, Ordering::Relaxed).is_err()
        || !is_in(mark)
    {
        return;
    }
    let mut chain = [0; DEPTH];
    // SAFETY: the context is the handler's, as the caller says, and the stack the calling thread's,
    // which took it down itself.
    let length = unsafe { walk::chain(Registers::of(context), &slots::own_stack(), &mut chain) };
    for (frame, address) in FRAMES.iter().zip(&chain[..length]) {
        // Relaxed: published by `ANSWERED`.
        frame.store(*address, Ordering::Relaxed);
    }
    // Release: pairs with the acquire in `take`.
    ANSWERED.store(u64::from(number) << 32 | length as u64, Ordering::Release);
}
