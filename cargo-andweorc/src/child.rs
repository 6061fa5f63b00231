//! The program while it runs, and the signals that reach this process meanwhile.
//!
//! The program stays in this process's group: Ctrl-C reaches it from the terminal itself, and this
//! process only notes it. SIGTERM, which reaches this process alone, is noted too, and handed on by
//! whoever waits. The dispositions are handlers and not "ignore", since a program inherits what is
//! ignored.

use nix::errno::Errno;
use nix::sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet, Signal};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use std::{io, thread};

/// How often a wait looks.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// SIGTERM came.
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// SIGINT came.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the user wants an end: SIGINT or SIGTERM came while a program ran.
pub(crate) fn stop_asked() -> bool {
    INTERRUPTED.load(SeqCst) || terminated()
}

/// Whether SIGTERM came while a program ran.
pub(crate) fn terminated() -> bool {
    TERMINATED.load(SeqCst)
}

/// A child process. It is not reaped before [`reap`](Running::reap), so that its id, and that of
/// its group, stay its own.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pid: Pid,
    /// The child leads a group of its own, and signals go to the whole group.
    group: bool,
}

impl Running {
    /// Starts a command in this process's group.
    pub(crate) fn start(command: &mut Command) -> io::Result<Running> {
        Ok(Running::new(command.spawn()?, false))
    }

    /// Starts a command in a group of its own.
    pub(crate) fn start_group(command: &mut Command) -> io::Result<Running> {
        use std::os::unix::process::CommandExt;
        Ok(Running::new(command.process_group(0).spawn()?, true))
    }

    fn new(child: Child, group: bool) -> Running {
        let pid = Pid::from_raw(child.id().cast_signed());
        Running { child, pid, group }
    }

    /// The process itself, for its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        // It can't fail for a child that is not reaped; if it does, there is nothing left to wait
        // for.
        !matches!(waitid(Id::Pid(self.pid), flags), Ok(WaitStatus::StillAlive) | Err(Errno::EINTR))
    }

    /// Sends a signal to it, or to its group.
    pub(crate) fn signal(&self, signal: Signal) {
        let sent = if self.group {
            signal::killpg(self.pid, signal)
        } else {
            signal::kill(self.pid, signal)
        };
        // It fails only for a process with another user's rights, which then ends when it likes.
        sent.unwrap_or_default();
    }

    /// Waits for the end of all in its group, at most so long; true when they have ended.
    pub(crate) fn group_ends_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.has_ended() || self.others_run() {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }

    /// Whether anything but the process itself runs in its group. Unknown is yes.
    fn others_run(&self) -> bool {
        let Ok(all) = procfs::process::all_processes() else { return true };
        all.flatten().filter(|process| process.pid != self.pid.as_raw()).any(|process| {
            // One whose state can't be read has ended meanwhile.
            process.stat().is_ok_and(|stat| stat.pgrp == self.pid.as_raw() && stat.state != 'Z')
        })
    }

    /// Waits for its end, and lets its id go.
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

/// The exit code of the program; as in a shell 128 + n after the signal n.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// How it ended, in words: `exit code 3`, `signal SIGSEGV`.
pub(crate) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal().map(Signal::try_from)) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(Ok(signal))) => format!("signal {signal}"),
        _ => status.to_string(),
    }
}

/// The handlers, until dropped.
#[derive(Debug)]
pub(crate) struct Handlers {
    before: [(Signal, SigAction); 2],
}

impl Handlers {
    /// Notes SIGINT and SIGTERM from now on.
    pub(crate) fn install() -> Handlers {
        let install = |signal| {
            let action =
                SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
            let before = replace(signal, &action);
            if matches!(before.handler(), SigHandler::SigIgn) {
                // As with `nohup`: whoever ignores a signal for us means the program too.
                replace(signal, &before);
            }
            (signal, before)
        };
        Handlers { before: [Signal::SIGINT, Signal::SIGTERM].map(install) }
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
    // SAFETY: the handler is async-signal-safe, and what was there before is put back as it was.
    unsafe { signal::sigaction(signal, action) }.expect("SIGINT and SIGTERM can be handled")
}

/// Async-signal-safe: one atomic store.
extern "C" fn note(signal: i32) {
    let noted = if signal == Signal::SIGTERM as i32 { &TERMINATED } else { &INTERRUPTED };
    noted.store(true, SeqCst);
}
