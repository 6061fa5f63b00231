//! Payment in mid-run: threads that lag behind for long are told to pay, by a signal.
//!
//! A task pays at the boundaries of its polls, and one poll may run for tens of ms (tokio's coop budget allows 128 channel
//! operations). Paid in such lumps, the debt changes the timing of everybody who waits for that task. So while experiments run, one thread looks
//! at the accounts every [`PERIOD`] and sends a signal to who owes more than [`LEAST`]; its handler pauses.
//!
//! - Only threads that are in a poll (or registered), outside the target, and using CPU time are told: a system call that
//!   blocks is never interrupted.
//! - The signal is SIGURG, which does nothing by default; a program that handles it itself keeps its handler and is not nudged. SA_RESTART.
//! - The pause may happen while the thread holds a lock; it is as short as the debt, so that others wait no longer than they would
//!   have paused themselves.

use crate::clock;
use crate::fork::forked;
use crate::thread::{self, LEDGER};
use crate::time::{Nanos, Real};
use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the thread looks, in baselines too, so that what it costs is on both sides of a comparison.
///
/// A look takes some 40 us from a busy processor (on a virtual machine a timer interrupt alone takes 20 us), and that counts more the more the
/// program is delayed: looks every 500 us made a pipeline of 600 and 400 us read 4 to 9 points too low, none at all 5 points too
/// high, and every 2 or 4 ms were right within 2 points.
const PERIOD: Duration = Duration::from_millis(2);

/// What a thread may owe without being told.
const LEAST: Nanos = Nanos::from_micros(100);

const SIGNAL: Signal = Signal::SIGURG;

/// The thread that looks, until dropped.
#[derive(Debug)]
pub(crate) struct Nudger {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Nudger {
    /// Starts to look, and to call `also` at each look. Nobody is told if the signal is not to be had.
    pub(crate) fn start(also: impl Fn(Real) + Send + 'static) -> Nudger {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let tells = installed();
        let thread = std::thread::Builder::new()
            .name("andweorc-nudge".into())
            .spawn(move || look(&stopped, tells, also));
        Nudger { stop, thread: thread.ok() }
    }
}

impl Drop for Nudger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take().filter(|_| !forked()) {
            // It does not panic; and if it did, there is nothing left to do for it.
            drop(thread.join());
        }
    }
}

fn look(stop: &AtomicBool, tells: bool, also: impl Fn(Real)) {
    let mut seen = HashMap::new();
    while !stop.load(Ordering::SeqCst) {
        std::thread::sleep(PERIOD);
        let now = clock::now();
        also(now);
        if !tells {
            continue;
        }
        for tid in LEDGER.lagging(LEAST, now) {
            let Some(cpu) = clock::cpu_of_thread(tid) else { continue };
            let before = seen.insert(tid, cpu);
            if before.is_some_and(|before| cpu > before) {
                tell(tid);
            }
        }
    }
}

/// Sends the signal to one thread of this process. One that ended meanwhile gets none.
fn tell(tid: i32) {
    // SAFETY: takes plain numbers; the kernel checks that the thread belongs to this process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, SIGNAL as libc::c_int) };
}

/// Installs the handler, once; says whether it is in place.
fn installed() -> bool {
    static INSTALLED: LazyLock<bool> = LazyLock::new(|| {
        let ours =
            SigAction::new(SigHandler::Handler(on_signal), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler is async-signal-safe, as it says.
        let Ok(before) = (unsafe { sigaction(SIGNAL, &ours) }) else { return false };
        if matches!(before.handler(), SigHandler::SigDfl | SigHandler::SigIgn) {
            return true;
        }
        // SAFETY: puts back what the program had installed.
        unsafe { sigaction(SIGNAL, &before) }.is_err()
    });
    *INSTALLED
}

/// # Safety
///
/// Interrupts a thread anywhere. It reads and writes only that thread's cells and atomics and sleeps, allocates nothing, takes no lock, and
/// leaves errno as it was.
extern "C" fn on_signal(_: libc::c_int) {
    let errno = Errno::last_raw();
    thread::pay_in_signal_handler();
    Errno::set_raw(errno);
}
