//! Source of the signal at which a thread is sampled: a perf event, or a timer of its CPU time
//! where perf events are refused.

use crate::descriptors::Permit;
use crate::events::{Counter, DISABLE, PERIOD, Record, Ring};
use crate::perf::{self, PerfError};
use crate::signal::{SIGNAL, mark};
use andweorc_profile::settings::Event;
use andweorc_profile::time::Nanos;
use libc::{c_int, clockid_t, timer_t};
use std::os::fd::{AsRawFd, RawFd};
use std::{fmt, io, ptr};

/// Source of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A perf event.
    Perf(Event),
    /// A timer of each thread's CPU time, since perf events are refused. It is bound to the
    /// kernel's ticks: a sample in 4 ms, most often.
    Timer,
}

impl fmt::Display for Kind {
    /// `perf task-clock`, `cpu timer`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Perf(event) => write!(f, "perf {}", event.name()),
            Kind::Timer => f.write_str("cpu timer"),
        }
    }
}

/// The source of one thread's samples, until dropped.
#[derive(Debug)]
pub(crate) enum Source {
    /// A perf event, and the ring in which the kernel writes down when it holds it back.
    Perf {
        event: Counter,
        ring: Option<Ring>,
        /// Whether the period is one of CPU time, and no frequency that the kernel aims at.
        exact: bool,
        _permit: Permit,
    },
    /// A timer. The kernel looks at it at its ticks: one in 4 ms, most often.
    Timer(Timer),
}

impl Source {
    /// A perf event on a thread of this process.
    ///
    /// # Errors
    ///
    /// As [`perf::open`].
    pub(crate) fn perf(tid: i32, event: Event, period: Nanos) -> Result<Source, PerfError> {
        let (mut counter, permit) = perf::open(tid, event, period)?;
        send_signal(counter.as_raw_fd(), tid).map_err(PerfError::new)?;
        // Without a ring nobody knows what was held back, and that is all.
        let ring = Ring::map(counter.as_raw_fd()).ok();
        counter.enable().map_err(PerfError::new)?;
        Ok(Source::Perf { event: counter, ring, exact: event == Event::TaskClock, _permit: permit })
    }

    /// A timer of the CPU time of a thread of this process.
    ///
    /// # Errors
    ///
    /// When the kernel has no more timers.
    pub(crate) fn timer(tid: i32, period: Nanos) -> io::Result<Source> {
        let timer = Timer::new(tid)?;
        timer.set(period)?;
        Ok(Source::Timer(timer))
    }

    /// Sets the period anew.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, and goes on with the one before.
    pub(crate) fn set_period(&self, period: Nanos) -> io::Result<()> {
        match self {
            Source::Perf { event, exact, .. } => {
                let value = if *exact { period.0 } else { 1_000_000_000 / period.0.max(1) };
                set_period(event, value.unsigned_abs())
            }
            Source::Timer(timer) => timer.set(period),
        }
    }

    /// Sends no more. To close a perf event is not enough: a child of fork may hold its descriptor
    /// too.
    pub(crate) fn stop(&self) {
        match self {
            // Not by the crate perf-event, which has a thread-local for it that may be gone while a
            // thread ends.
            Source::Perf { event, .. } => disable(event),
            // The kernel does not refuse what it allowed before.
            Source::Timer(timer) => timer.set(Nanos::ZERO).unwrap_or_default(),
        }
    }

    /// Its descriptor, if it has one.
    pub(crate) fn file(&self) -> Option<RawFd> {
        match self {
            Source::Perf { event, .. } => Some(event.as_raw_fd()),
            Source::Timer(_) => None,
        }
    }

    /// Whether it is a perf event.
    pub(crate) fn is_perf(&self) -> bool {
        matches!(self, Source::Perf { .. })
    }

    /// Whether each sample stands for the period. If not, for the CPU time since the one before.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, Source::Perf { exact: true, .. })
    }

    /// How many samples the kernel took since the last call, and how often it held them back.
    /// `None` where it does not tell.
    pub(crate) fn taken(&mut self) -> Option<(u64, u64)> {
        let Source::Perf { ring: Some(ring), .. } = self else { return None };
        let (mut samples, mut throttled) = (0, 0);
        ring.read(|record| match record {
            Record::Sample => samples += 1,
            Record::Lost(n) => samples += n,
            Record::Throttled => throttled += 1,
        });
        Some((samples, throttled))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sets the period of a perf event anew, or its frequency if it has one.
pub(crate) fn set_period(event: &Counter, period: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the kernel reads a number through the pointer.
    // (perf-event-open-sys hands on the number itself.)
    let code = unsafe { libc::ioctl(event.as_raw_fd(), PERIOD as libc::Ioctl, &raw const period) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has a perf event count no more.
pub(crate) fn disable(event: &Counter) {
    // SAFETY: the descriptor is open, and takes no argument; the kernel does not refuse it.
    unsafe { libc::ioctl(event.as_raw_fd(), DISABLE as libc::Ioctl, 0) };
}

/// Has the kernel send the signal to the thread at each overflow of the event.
pub(crate) fn send_signal(event: RawFd, tid: i32) -> io::Result<()> {
    // From the kernel's uapi; the libc crate has them for some targets only.
    const F_SETSIG: c_int = 10;
    const F_SETOWN_EX: c_int = 15;
    const F_OWNER_TID: c_int = 0;
    #[repr(C)]
    struct Owner {
        kind: c_int,
        id: libc::pid_t,
    }
    let owner = Owner { kind: F_OWNER_TID, id: tid };
    // SAFETY: the descriptor is open; the kernel reads `owner`, and plain numbers.
    let done = unsafe {
        libc::fcntl(event, F_SETOWN_EX, &raw const owner) == 0
            && libc::fcntl(event, F_SETSIG, SIGNAL as c_int) == 0
            && libc::fcntl(event, libc::F_SETFL, libc::O_ASYNC) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A timer of a thread's CPU time.
#[derive(Debug)]
pub(crate) struct Timer(timer_t);

// SAFETY: a timer's id belongs to the process.
unsafe impl Send for Timer {}

impl Timer {
    fn new(tid: i32) -> io::Result<Timer> {
        // The kernel's encoding of a thread's CPU clock: see MAKE_THREAD_CPUCLOCK in its
        // posix-timers.h.
        let clock = (!tid << 3) | 6 as clockid_t;
        let mut id = ptr::null_mut();
        // SAFETY: all zeroes is a valid `sigevent`; the kernel reads it, and writes to `id`.
        let code = unsafe {
            let mut event = std::mem::zeroed::<libc::sigevent>();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL as c_int;
            event.sigev_value = mark();
            event.sigev_notify_thread_id = tid;
            libc::timer_create(clock, &raw mut event, &raw mut id)
        };
        if code == 0 { Ok(Timer(id)) } else { Err(io::Error::last_os_error()) }
    }

    /// A period of zero stops it.
    fn set(&self, period: Nanos) -> io::Result<()> {
        let period =
            libc::timespec { tv_sec: period.0 / 1_000_000_000, tv_nsec: period.0 % 1_000_000_000 };
        let time = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: the timer lives as long as `self`; the kernel reads `time` and writes nothing
        // through the null pointer.
        let code = unsafe { libc::timer_settime(self.0, 0, &raw const time, ptr::null_mut()) };
        if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is not used again.
        unsafe { libc::timer_delete(self.0) };
    }
}
