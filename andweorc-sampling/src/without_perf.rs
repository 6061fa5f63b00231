//! Perf events in a program that is built without the feature `perf`: the system call is taken not
//! to exist, and no value of these types does.

use crate::counter_cells::Reading;
use andweorc_profile::settings::{CountedEvent, Event};
use andweorc_profile::time::Nanos;
use nix::errno::Errno;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// The requests of ioctl(2) for an event, to none of which this is ever handed.
pub(crate) const DISABLE: libc::Ioctl = 0;
pub(crate) const PERIOD: libc::Ioctl = 0;

/// A perf event.
#[derive(Debug)]
pub(crate) enum Counter {}

impl Counter {
    pub(crate) fn enable(&mut self) -> io::Result<()> {
        match *self {}
    }
}

impl AsRawFd for Counter {
    fn as_raw_fd(&self) -> RawFd {
        match *self {}
    }
}

/// The ring of a perf event.
#[derive(Debug)]
pub(crate) enum Ring {}

impl Ring {
    pub(crate) fn map(_: RawFd) -> io::Result<Ring> {
        Err(Errno::ENOSYS.into())
    }

    pub(crate) fn read(&mut self, _: impl FnMut(Record)) {
        match *self {}
    }
}

/// A record of such a ring.
#[expect(dead_code, reason = "no ring tells of any")]
pub(crate) enum Record {
    Sample,
    Lost(u64),
    Throttled,
}

/// Refuses.
///
/// # Errors
///
/// Always, as a kernel without perf events does.
pub(crate) fn open(_: i32, _: Event, _: Nanos) -> io::Result<Counter> {
    Err(Errno::ENOSYS.into())
}

/// Refuses.
///
/// # Errors
///
/// Always, as [`open`].
pub(crate) fn open_counter(_: i32, _: CountedEvent, _: u64) -> io::Result<Counter> {
    Err(Errno::ENOSYS.into())
}

/// Reads none: there is no counter.
pub(crate) fn read(counter: &mut Counter) -> io::Result<Reading> {
    match *counter {}
}
