//! The program while it runs.
//!
//! Ctrl-C reaches the program from the terminal itself; this process does nothing about it, and prints the report when
//! the program has ended. SIGTERM, which reaches this process alone, is handed on. The dispositions are handlers and not
//! "ignore", since a program inherits what is ignored.

use nix::errno::Errno;
use nix::sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet, Signal};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};

/// The program's process id while it runs, else 0.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// SIGTERM came.
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// SIGINT came.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the user wants an end: SIGINT or SIGTERM came while a program ran.
pub(crate) fn stop_asked() -> bool {
    INTERRUPTED.load(SeqCst) || TERMINATED.load(SeqCst)
}

/// Starts the program and waits for its end.
///
/// # Errors
///
/// When it can't be started.
pub(crate) fn run(command: &mut Command) -> io::Result<ExitStatus> {
    let handlers = Handlers::install();
    let mut child = command.spawn()?;
    let pid = Pid::from_raw(child.id().cast_signed());
    CHILD.store(pid.as_raw(), SeqCst);
    if TERMINATED.load(SeqCst) {
        // It came before there was a child to hand it to. That the child may get it twice does no harm.
        signal::kill(pid, Signal::SIGTERM)?;
    }
    // The child is not reaped yet, so that its id stays its own as long as a handler may use it.
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
    CHILD.store(0, SeqCst);
    drop(handlers);
    child.wait()
}

/// The exit code of the program; as in a shell 128 + n after the signal n.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// The handlers, until dropped.
struct Handlers {
    before: [(Signal, SigAction); 2],
}

impl Handlers {
    fn install() -> Handlers {
        let install = |(signal, handler)| {
            let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
            let before = replace(signal, &action);
            if matches!(before.handler(), SigHandler::SigIgn) {
                // As with `nohup`: whoever ignores a signal for us means the program too.
                replace(signal, &before);
            }
            (signal, before)
        };
        let handlers = [
            (Signal::SIGINT, SigHandler::Handler(note)),
            (Signal::SIGTERM, SigHandler::Handler(hand_on)),
        ];
        Handlers { before: handlers.map(install) }
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            replace(*signal, action);
        }
    }
}

fn replace(signal: Signal, action: &SigAction) -> SigAction {
    // SAFETY: both handlers are async-signal-safe, and what was there before is put back as it was.
    unsafe { signal::sigaction(signal, action) }.expect("SIGINT and SIGTERM can be handled")
}

/// Async-signal-safe: one atomic.
extern "C" fn note(_: i32) {
    INTERRUPTED.store(true, SeqCst);
}

/// Async-signal-safe: two atomics and `kill(2)`; errno is kept.
extern "C" fn hand_on(_: i32) {
    let errno = Errno::last_raw();
    TERMINATED.store(true, SeqCst);
    let child = CHILD.load(SeqCst);
    if child != 0 {
        // It fails only for a child with another user's rights, and a handler can't say so.
        signal::kill(Pid::from_raw(child), Signal::SIGTERM).ok();
    }
    Errno::set_raw(errno);
}
