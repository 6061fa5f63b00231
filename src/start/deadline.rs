//! A thread that ends the program by the signal that it got, if nothing has done so in time:
//! neither the report, which may be held up by whatever it is written to, nor the program itself.
//!
//! This thread does nothing that can block: the handler of the signal rings a bell, and it sleeps
//! until then.

use crate::start::signals::{Disposition, disposition, end_program, received};
use andweorc_core::hooks::own_thread;
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a signal may take to end the program. With what it takes to notice it, 2 s.
const BOUND: Duration = Duration::from_millis(1900);

/// How often the thread looks whether it is needed any more, once a signal came.
const LOOK: Duration = Duration::from_millis(20);

static BELL: Bell = Bell(UnsafeCell::new(MaybeUninit::uninit()));

/// Nobody handles signals for the program any more.
static OVER: AtomicBool = AtomicBool::new(false);

/// Starts the thread.
///
/// # Errors
///
/// When there is none to be had.
pub(super) fn start() -> io::Result<()> {
    static HUNG: Once = Once::new();
    HUNG.call_once(|| BELL.hang());
    OVER.store(false, Ordering::SeqCst);
    own_thread::spawn("andweorc-signal", keep).map(drop)
}

/// A signal came. Async-signal-safe. Only once the thread was started.
pub(super) fn ring() {
    BELL.ring();
}

/// The thread ends.
pub(super) fn end() {
    OVER.store(true, Ordering::SeqCst);
    BELL.ring();
}

fn keep() {
    while !is_over_in(BOUND) {
        if let Some(signal) = received()
            && disposition(signal) == Disposition::OursAlone
        {
            end_program(signal);
        }
    }
}

/// Waits for the bell. Says whether all is over within so long after it.
fn is_over_in(bound: Duration) -> bool {
    BELL.wait();
    let rung = Instant::now();
    while !OVER.load(Ordering::SeqCst) {
        let left = bound.saturating_sub(rung.elapsed());
        if left.is_zero() {
            return false;
        }
        sleep(left.min(LOOK));
    }
    true
}

/// A semaphore: std has nothing that a signal handler may wake a thread with.
struct Bell(UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: the calls of a semaphore may be made by any threads at once, and nothing else touches it.
unsafe impl Sync for Bell {}

impl Bell {
    /// Makes the semaphore, of this process. Once, before all else.
    fn hang(&self) {
        // SAFETY: nobody else has it yet, as the caller sees to.
        unsafe { libc::sem_init(self.semaphore(), 0, 0) };
    }

    /// Async-signal-safe.
    fn ring(&self) {
        // SAFETY: it was made. sem_post(3) is async-signal-safe.
        unsafe { libc::sem_post(self.semaphore()) };
    }

    fn wait(&self) {
        // SAFETY: it was made.
        while unsafe { libc::sem_wait(self.semaphore()) } != 0 {}
    }

    fn semaphore(&self) -> *mut libc::sem_t {
        self.0.get().cast()
    }
}
