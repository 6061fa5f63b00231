//! Lines on stderr from threads of the program: they hold it up for nothing.

use nix::unistd::write;
use std::io::stderr;
use std::os::fd::AsRawFd;

/// Prints a line, which ends in a newline, if there is room for it at once.
///
/// A pipe that nobody reads does not block the caller, and one that is closed is no panic. The
/// function allocates nothing and takes no lock.
pub fn print(line: &str) {
    let mut fd = libc::pollfd { fd: stderr().as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: a pointer to one entry, which outlives the call; it does not wait.
    let ready = unsafe { libc::poll(&raw mut fd, 1, 0) };
    // A pipe whose other end is closed has an error beside: a write may end the program by SIGPIPE.
    if ready == 1 && fd.revents == libc::POLLOUT {
        // A pipe with room has some for a page, and a line is shorter. One write keeps other output
        // out of the line. An error is dropped, since there is no other place for it.
        write(stderr(), line.as_bytes()).unwrap_or_default();
    }
}
