//! Ctrl-C and SIGTERM: the report is written first, then the program ends as it would have, [in
//! time](crate::start::deadline).
//!
//! The handler is installed before the program can install its own, so that the program's comes
//! later and replaces it. Handlers of `signal-hook-registry`, which tokio and most others use, call
//! the one that they replace: then both are told, and the program decides itself when it ends. Is
//! ours still the installed one when the signal comes, nobody else handles it, and the program ends
//! by it.

use crate::start::deadline;
use andweorc_core::hooks::signals_of_others;
use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use nix::unistd::getpid;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The last signal received, or 0.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Nobody has taken note of it yet.
static IS_NEW: AtomicBool = AtomicBool::new(false);

/// The process that installed the handlers.
static INSTALLED_BY: AtomicI32 = AtomicI32::new(0);

const SIGNALS: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

/// The installed handlers, until dropped: then the signals are given back to the default, where
/// nobody has taken them over.
#[derive(Debug)]
pub(crate) struct Signals(());

/// Party that handles a signal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// Nobody: it ends the program.
    Default,
    /// Nobody but this module.
    OursAlone,
    /// The program itself.
    Programs,
}

impl Signals {
    /// Installs the handler for the signals whose disposition is still the default. Where nobody
    /// can see to it that the program ends in time the signals are left alone, and end it at once.
    pub(crate) fn install() -> Signals {
        if deadline::start().is_ok() {
            install();
        }
        Signals(())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        uninstall();
        deadline::end();
    }
}

/// The last signal that came, if one did.
pub(crate) fn received() -> Option<Signal> {
    Signal::try_from(RECEIVED.load(Ordering::SeqCst)).ok()
}

/// The last signal that came, if it came since the last call of this function.
pub(crate) fn newly_received() -> Option<Signal> {
    if IS_NEW.swap(false, Ordering::SeqCst) { received() } else { None }
}

/// The handler of `signal` now.
pub(crate) fn disposition(signal: Signal) -> Disposition {
    match current(signal) {
        Some(libc::SIG_DFL) => Disposition::Default,
        _ if is_ours(signal) => Disposition::OursAlone,
        _ => Disposition::Programs,
    }
}

/// Ends the program by `signal`, as if it had never been handled.
pub(crate) fn end_program(signal: Signal) {
    set(signal, SigHandler::SigDfl);
    // The calling thread blocks it, and so may all others by now.
    SigSet::from(signal).thread_unblock().expect("a thread may unblock a signal");
    raise(signal).expect("a process may signal itself");
}

fn install() {
    INSTALLED_BY.store(getpid().as_raw(), Ordering::SeqCst);
    RECEIVED.store(0, Ordering::SeqCst);
    IS_NEW.store(false, Ordering::SeqCst);
    for signal in SIGNALS {
        if current(signal) == Some(libc::SIG_DFL) {
            set(signal, SigHandler::Handler(on_signal));
        }
    }
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler is async-signal-safe, as it says, and lives as long as the program.
        // Without memory for it the call fails.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

fn uninstall() {
    for signal in SIGNALS.into_iter().filter(|signal| is_ours(*signal)) {
        let before = set(signal, SigHandler::SigDfl);
        if !matches!(before.handler(), SigHandler::Handler(it) if is_on_signal(it as _)) {
            // The program has just taken it over.
            // SAFETY: puts back what the program had installed.
            unsafe { sigaction(signal, &before) }.expect("SIGINT and SIGTERM can be handled");
        }
    }
}

/// In a child of fork nobody looks at what the handler stores: a signal ends the child as it would
/// any program.
///
/// # Safety
///
/// Runs in the child of a program of many threads: it makes system calls, allocates nothing and
/// takes no lock.
unsafe extern "C" fn in_child() {
    uninstall();
}

fn is_ours(signal: Signal) -> bool {
    current(signal).is_some_and(is_on_signal)
}

fn is_on_signal(handler: libc::sighandler_t) -> bool {
    handler == on_signal as extern "C" fn(i32) as libc::sighandler_t
}

/// The address of what handles `signal` now.
fn current(signal: Signal) -> Option<libc::sighandler_t> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action changes nothing, and `action` is room for the old one.
    let code = unsafe { libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call filled `action` in when it returned 0.
    (code == 0).then(|| unsafe { action.assume_init() }.sa_sigaction)
}

/// Returns what was there before. The handler runs on the alternate stack where a thread has one:
/// its own may be small. No other handler runs on top of it there.
fn set(signal: Signal, handler: SigHandler) -> SigAction {
    let flags = SaFlags::SA_RESTART | SaFlags::SA_ONSTACK;
    let action = SigAction::new(handler, flags, signals_of_others());
    // SAFETY: `on_signal` is async-signal-safe; the default disposition has no handler.
    unsafe { sigaction(signal, &action) }.expect("SIGINT and SIGTERM can be handled")
}

/// Async-signal-safe: atomics, a semaphore and system calls.
extern "C" fn on_signal(signal: i32) {
    let errno = Errno::last_raw();
    if getpid().as_raw() == INSTALLED_BY.load(Ordering::SeqCst) {
        RECEIVED.store(signal, Ordering::SeqCst);
        IS_NEW.store(true, Ordering::SeqCst);
        deadline::ring();
    } else {
        // A child of fork that got the signal before `in_child` gave it back. It is blocked in
        // here, and ends the child on return.
        uninstall();
        // SAFETY: takes a plain number; raise(3) is async-signal-safe.
        unsafe { libc::raise(signal) };
    }
    Errno::set_raw(errno);
}
