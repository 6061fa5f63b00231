//! Messages of andweorc on stderr: stdout is the program's. To print one never panics, ends the
//! program or holds it up for long, whatever stderr is: closed, a pipe that is full or has no
//! reader, not blocking, or a file on a file system that hangs.

use andweorc_core::hooks::own_thread;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::write;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// After so long without a byte written the rest is left unsaid.
const PATIENCE: Duration = Duration::from_secs(2);

/// A pipe that has room at all takes as much at once (PIPE_BUF).
const PIECE: usize = 4096;

/// Prints the text, as far as stderr takes it. A thread of its own does: there SIGPIPE, which a
/// program may let end it, is blocked, and a write that hangs holds up nobody else.
pub(crate) fn say(text: &str) {
    let text = text.to_owned();
    let written = Arc::new(AtomicUsize::new(0));
    let (done, is_done) = channel::<()>();
    let counts = Arc::clone(&written);
    let thread = own_thread::spawn("andweorc-say", move || {
        let _done = done;
        print(io::stderr().as_fd(), text.as_bytes(), |bytes| {
            counts.fetch_add(bytes, Ordering::SeqCst);
        });
    });
    if thread.is_err() {
        // Without a thread to be had there is nobody to say it.
        return;
    }
    let mut before = 0;
    while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(PATIENCE) {
        let now = written.load(Ordering::SeqCst);
        if now == before {
            return;
        }
        before = now;
    }
}

/// Writes all bytes, until that fails or takes too long. Tells each time how many were written.
fn print(to: BorrowedFd<'_>, mut bytes: &[u8], written: impl Fn(usize)) {
    while !bytes.is_empty() && has_room(to) {
        match write(to, &bytes[..bytes.len().min(PIECE)]) {
            Ok(some) => {
                written(some);
                bytes = &bytes[some..];
            }
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(_) => return,
        }
    }
}

/// Whether there is room within [`PATIENCE`], or an error to be seen.
fn has_room(to: BorrowedFd<'_>) -> bool {
    let timeout = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
    let polled = poll(&mut [PollFd::new(to, PollFlags::POLLOUT)], timeout);
    matches!(polled, Ok(1..) | Err(Errno::EINTR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use std::cell::Cell;
    use std::io::{PipeReader, PipeWriter, Read, Write};
    use std::thread;

    /// How many bytes of the text were written.
    fn printed(to: &PipeWriter, text: &[u8]) -> usize {
        let printed = Cell::new(0);
        print(to.as_fd(), text, |bytes| printed.set(printed.get() + bytes));
        printed.get()
    }

    fn full() -> (PipeReader, PipeWriter) {
        let (reader, mut writer) = io::pipe().unwrap();
        let room = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).unwrap();
        writer.write_all(&vec![b'.'; usize::try_from(room).unwrap()]).unwrap();
        (reader, writer)
    }

    #[test]
    fn a_pipe_that_nobody_reads_takes_nothing_and_holds_nobody_up() {
        let (_reader, writer) = full();
        assert_eq!(printed(&writer, b"lost"), 0);
    }

    #[test]
    fn a_pipe_without_a_reader_takes_nothing() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        assert_eq!(printed(&writer, b"lost"), 0);
    }

    #[test]
    fn a_pipe_that_does_not_block_gets_all_of_it_as_it_has_room() {
        let (mut reader, writer) = full();
        fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let text = [b'x'; 100_000];
        let read = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        assert_eq!(printed(&writer, &text), text.len());
        drop(writer);
        assert!(read.join().unwrap().ends_with(&text));
    }
}
