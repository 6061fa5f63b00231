//! Ctrl-C and SIGTERM: the report is written first, then the program ends as it would have.
//!
//! The handler is installed before the program can install its own, so that the program's comes later and replaces it. Handlers
//! of `signal-hook-registry`, which tokio and most others use, call the one that they replace: then both are told, and the program
//! decides itself when it ends. Is ours still the installed one when the signal comes, nobody else handles it, and the program ends by it.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use std::sync::atomic::{AtomicI32, Ordering};

/// The last signal received, or 0.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

const SIGNALS: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

/// The installed handlers.
#[derive(Debug)]
pub(crate) struct Signals(());

/// Who handles a signal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// Nobody but this module.
    OursAlone,
    /// The program itself.
    Programs,
}

impl Signals {
    /// Installs the handler for the signals whose disposition is still the default.
    pub(crate) fn install() -> Signals {
        for signal in SIGNALS {
            if current(signal).is_some_and(|handler| handler == SigHandler::SigDfl) {
                set(signal, SigHandler::Handler(on_signal));
            }
        }
        Signals(())
    }

    /// The signal that came since the last call, if one did.
    pub(crate) fn received(&self) -> Option<Signal> {
        Signal::try_from(RECEIVED.swap(0, Ordering::SeqCst)).ok()
    }

    /// Who handles `signal` now.
    pub(crate) fn disposition(&self, signal: Signal) -> Disposition {
        match current(signal) {
            Some(handler) if is_ours(handler) => Disposition::OursAlone,
            _ => Disposition::Programs,
        }
    }

    /// Ends the program by `signal`, as if it had never been handled.
    pub(crate) fn end_program(&self, signal: Signal) {
        set(signal, SigHandler::SigDfl);
        // A failure leaves the program running, which is what it would be without the signal.
        drop(raise(signal));
    }

    /// Gives the signals back to the default, where nobody has taken them over.
    pub(crate) fn uninstall(&self) {
        for signal in SIGNALS {
            if self.disposition(signal) == Disposition::OursAlone {
                set(signal, SigHandler::SigDfl);
            }
        }
    }
}

fn is_ours(handler: SigHandler) -> bool {
    matches!(handler, SigHandler::Handler(f) if f as usize == on_signal as extern "C" fn(i32) as usize)
}

/// What handles `signal` now.
fn current(signal: Signal) -> Option<SigHandler> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action changes nothing, and `action` is room for the old one.
    let code = unsafe { libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: an all-zero sigaction is valid, and the call filled it in when it returned 0.
    let action = unsafe { action.assume_init() };
    // SAFETY: a handler without SA_SIGINFO takes one int.
    let handler = |f: usize| unsafe { std::mem::transmute::<usize, extern "C" fn(i32)>(f) };
    match (code, action.sa_sigaction) {
        (0, libc::SIG_DFL) => Some(SigHandler::SigDfl),
        (0, libc::SIG_IGN) => Some(SigHandler::SigIgn),
        (0, f) if action.sa_flags & libc::SA_SIGINFO == 0 => Some(SigHandler::Handler(handler(f))),
        _ => None,
    }
}

fn set(signal: Signal, handler: SigHandler) {
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: `on_signal` is async-signal-safe; the default disposition has no handler. A failure leaves things as they are: the
    // signals are valid.
    drop(unsafe { sigaction(signal, &action) });
}

/// Async-signal-safe: one atomic store.
extern "C" fn on_signal(signal: i32) {
    RECEIVED.store(signal, Ordering::SeqCst);
}
