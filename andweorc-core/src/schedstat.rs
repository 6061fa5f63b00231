//! For how long a thread has waited for processors, as the kernel tells.

use crate::time::Nanos;
use andweorc_sampling::descriptors::Permit;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::uio::pread;
use std::cell::Cell;
use std::mem;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// The /proc/thread-self/schedstat of one thread. Plain cells without a destructor: a signal
/// handler may use them that interrupted nobody who does.
pub(crate) struct Schedstat {
    /// Once it was opened; the error if it can't be.
    file: Cell<Option<Result<RawFd, ()>>>,
    /// In place of the kernel's answer, in tests.
    #[cfg(test)]
    told: Cell<Option<Nanos>>,
}

impl Schedstat {
    pub(crate) const fn new() -> Schedstat {
        Schedstat {
            file: Cell::new(None),
            #[cfg(test)]
            told: Cell::new(None),
        }
    }

    /// For how long the calling thread has waited for processors, in all; `None` where the kernel
    /// does not tell (it is built without CONFIG_SCHED_INFO or told not to count, or no file can be
    /// opened, or there are [too many](andweorc_sampling::descriptors)). Async-signal-safe.
    pub(crate) fn waited(&self) -> Option<Nanos> {
        #[cfg(test)]
        if let Some(told) = self.told.get() {
            return Some(told);
        }
        let file = self.file.get().unwrap_or_else(|| {
            let opened = open_file().ok_or(());
            self.file.set(Some(opened));
            opened
        });
        let mut text = [0; 64];
        // SAFETY: the file is open until `close` puts it out of the cell.
        let file = unsafe { BorrowedFd::borrow_raw(file.ok()?) };
        let length = pread(file, &mut text, 0).ok()?;
        parse(&text[..length])
    }

    /// The thread ends.
    pub(crate) fn close(&self) {
        if let Some(Ok(file)) = self.file.take() {
            // SAFETY: it was taken out of the OwnedFd that opened it, and nobody else closes it: it
            // has just been put out of the cell.
            drop(unsafe { OwnedFd::from_raw_fd(file) });
            drop(Permit::forgotten());
        }
    }
}

/// For how long another thread of this process has waited for processors, in all; `None` where the
/// kernel does not tell.
pub(crate) fn waited_of_thread(tid: i32) -> Option<Nanos> {
    parse(&std::fs::read(format!("/proc/self/task/{tid}/schedstat")).ok()?)
}

/// Opens the calling thread's file, and keeps its [`Permit`] with it.
fn open_file() -> Option<RawFd> {
    let permit = Permit::take()?;
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = open(c"/proc/thread-self/schedstat", flags, Mode::empty()).ok()?;
    mem::forget(permit);
    Some(file.into_raw_fd())
}

/// The second number: the time spent runnable and not running, ns. The third is how often the
/// thread got a processor: none where the kernel does not count.
fn parse(schedstat: &[u8]) -> Option<Nanos> {
    let mut numbers = str::from_utf8(schedstat).ok()?.split_ascii_whitespace().skip(1);
    let waited = numbers.next()?.parse().ok()?;
    (numbers.next()? != "0").then_some(Nanos(waited))
}

#[cfg(test)]
impl Schedstat {
    /// From now on the kernel tells this.
    pub(crate) fn tells(&self, waited: Nanos) {
        self.told.set(Some(waited));
    }

    /// From now on the kernel does not tell.
    pub(crate) fn tells_nothing(&self) {
        self.close();
        self.file.set(Some(Err(())));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Whether the kernel tells how long a thread waited for processors. If it does not, says so.
    pub(crate) fn kernel_tells_waits() -> bool {
        let waited = Schedstat::new().waited();
        if waited.is_none() {
            println!("skipped: this kernel tells no waits for processors");
        }
        waited.is_some()
    }

    #[test]
    fn the_kernel_tells_how_long_a_thread_waited() {
        assert_eq!(parse(b"1701273 3386539 2\n"), Some(Nanos(3_386_539)));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"1 x 2"), None);
        assert_eq!(parse(b"0 0 0\n"), None);
    }
}
