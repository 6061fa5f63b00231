//! Opening perf events, and what to say when the kernel refuses.

use crate::descriptors::Permit;
use crate::events::{self, Counter};
use crate::period::COARSE;
use andweorc_profile::settings::{CountedEvent, Event};
use andweorc_profile::time::Nanos;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::borrow::Cow;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::{error, fmt, fs, io};

/// Opens an event on a thread of this process, disabled: every `period` of its CPU time in user
/// space, or about as often as that.
///
/// # Errors
///
/// When the kernel refuses it, and where andweorc holds [as many descriptors](crate::descriptors)
/// as it may.
pub(crate) fn open(tid: i32, event: Event, period: Nanos) -> Result<(Counter, Permit), PerfError> {
    permitted(|| events::open(tid, event, period)).map_err(|error| PerfError::of(event, error))
}

/// Opens a counter of an event on a thread of this process, disabled, which interrupts the thread
/// after each `period` of its events in user space.
///
/// # Errors
///
/// When the kernel refuses it, and where andweorc holds [as many descriptors](crate::descriptors)
/// as it may.
pub(crate) fn open_counter(
    tid: i32,
    event: CountedEvent,
    period: u64,
) -> io::Result<(Counter, Permit)> {
    permitted(|| events::open_counter(tid, event, period))
}

/// Opens a perf event, where andweorc may open one more file.
fn permitted(open: impl FnOnce() -> io::Result<Counter>) -> io::Result<(Counter, Permit)> {
    let permit = Permit::take().ok_or(Errno::EMFILE)?;
    let counter = open()?;
    // The crate does not ask for it as it opens. A program that this one executes would hold the
    // event, and count against its own limit.
    fcntl(borrow(&counter), FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok((counter, permit))
}

/// A period that does not come to its end in a run.
pub(crate) const NEVER: u64 = 1 << 40;

/// Whether the kernel counts an event for this process, asked as [`Counters`] asks.
///
/// # Errors
///
/// When it does not, with the reason.
///
/// [`Counters`]: crate::counters::Counters
pub fn probe_counter(event: CountedEvent) -> Result<(), NotCounted> {
    open_counter(0, event, NEVER).map(drop).map_err(|error| NotCounted::new(event, error))
}

/// Whether the kernel gives this process perf events.
///
/// # Errors
///
/// When it does not, with what to do about it.
pub fn probe() -> Result<(), PerfError> {
    open(0, Event::default(), COARSE).map(drop)
}

fn borrow(counter: &Counter) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open for as long as the counter that is borrowed.
    unsafe { BorrowedFd::borrow_raw(counter.as_raw_fd()) }
}

/// The setting `kernel.perf_event_paranoid`.
fn paranoid() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

/// Sentence on what to do where the kernel refuses an event with this error.
fn remedy(error: &io::Error, paranoid: Option<i32>) -> Cow<'static, str> {
    match (error.raw_os_error(), paranoid) {
        (Some(libc::EACCES | libc::EPERM), Some(paranoid)) if paranoid > 2 => format!(
            "kernel.perf_event_paranoid is {paranoid}: allow it with `sudo sysctl kernel.perf_event_paranoid=2`, or give the program \
             CAP_PERFMON"
        )
        .into(),
        (Some(libc::EACCES | libc::EPERM), _) => {
            "A seccomp filter or a missing capability forbids it: in a container, run it with `--cap-add PERFMON` and a \
             seccomp profile that allows perf_event_open"
                .into()
        }
        (Some(libc::ENOSYS), _) => {
            "This kernel or sandbox has no perf_event_open: run the program outside of it".into()
        }
        (Some(libc::EMFILE), _) => {
            "The program has too many open files: raise the limit with `ulimit -n`".into()
        }
        _ => "See perf_event_open(2) for what this error means".into(),
    }
}

/// Whether the processor says that a hypervisor runs it; `false` where it says nothing of that, as
/// on other processors than x86.
fn is_virtual() -> bool {
    let Ok(processors) = fs::read_to_string("/proc/cpuinfo") else { return false };
    let flags = processors.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
}

/// An event that the kernel does not count, with the reason.
#[derive(Debug)]
pub struct NotCounted {
    /// The event.
    pub event: CountedEvent,
    source: io::Error,
    paranoid: Option<i32>,
    /// Whether the machine is surely a virtual one.
    is_virtual: bool,
}

impl NotCounted {
    pub(crate) fn new(event: CountedEvent, source: io::Error) -> NotCounted {
        NotCounted { event, source, paranoid: paranoid(), is_virtual: is_virtual() }
    }

    /// The reasons why these events are not counted, each with its events, in the order in which
    /// they come.
    pub fn by_reason(refused: &[NotCounted]) -> Vec<(String, Vec<CountedEvent>)> {
        let mut reasons: Vec<(String, Vec<CountedEvent>)> = Vec::new();
        for one in refused {
            let why = one.to_string();
            match reasons.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, events)) => events.push(one.event),
                None => reasons.push((why, vec![one.event])),
            }
        }
        reasons
    }
}

impl fmt::Display for NotCounted {
    /// The reason, without the event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = &self.source;
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL)
                if self.is_virtual =>
            {
                write!(
                    f,
                    "this virtual machine has no such event ({source}): its host keeps the counters of the processor to itself, so \
                     count on a machine that is not virtual, or have the host give its guests these counters"
                )
            }
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL) => {
                write!(
                    f,
                    "this processor has no such event, or the kernel does not know its counters ({source})"
                )
            }
            _ => write!(f, "the kernel refuses it ({source}). {}", remedy(source, self.paranoid)),
        }
    }
}

/// The kernel gives no perf events.
#[derive(Debug)]
pub struct PerfError {
    source: io::Error,
    paranoid: Option<i32>,
    /// The event that was asked for.
    event: Event,
    /// The program, not the kernel, is the cause: it has a handler for the signal.
    signal_is_taken: bool,
}

impl PerfError {
    pub(crate) fn new(source: io::Error) -> PerfError {
        PerfError::of(Event::TaskClock, source)
    }

    fn of(event: Event, source: io::Error) -> PerfError {
        PerfError { source, paranoid: paranoid(), event, signal_is_taken: false }
    }

    /// Whether it is for want of a file descriptor: a timer needs none.
    pub(crate) fn lacks_files(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
    }

    /// The program has a handler for the signal.
    pub fn signal_is_taken() -> PerfError {
        let error = PerfError::new(io::ErrorKind::ResourceBusy.into());
        PerfError { signal_is_taken: true, ..error }
    }

    /// Whether the kernel gives this process no perf events at all: a timer can stand in for them.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS))
    }
}

impl fmt::Display for PerfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.signal_is_taken {
            return f.write_str(
                "the program handles SIGURG itself, so lines and functions can't be sampled; tasks and spans are timed and go on. Do \
                 without that handler to have them",
            );
        }
        if self.event != Event::TaskClock
            && let Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL) = self.source.raw_os_error()
        {
            let event = self.event.name();
            return write!(
                f,
                "this processor, or virtual machine, has no event `{event}` ({}): leave ANDWEORC_EVENT out, and CPU time is sampled",
                self.source
            );
        }
        write!(f, "the kernel refuses perf events ({})", self.source)?;
        f.write_str(
            ", so lines and functions can't be sampled; tasks and spans are timed and go on. ",
        )?;
        f.write_str(&remedy(&self.source, self.paranoid))
    }
}

impl error::Error for PerfError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;

    #[test]
    fn every_refusal_says_what_to_do() {
        let say = |code, paranoid| {
            PerfError {
                source: io::Error::from_raw_os_error(code),
                paranoid,
                event: Event::TaskClock,
                signal_is_taken: false,
            }
            .to_string()
        };
        assert!(say(libc::EACCES, Some(4)).contains("sudo sysctl kernel.perf_event_paranoid=2"));
        assert!(say(libc::EPERM, Some(1)).contains("--cap-add PERFMON"));
        assert!(say(libc::ENOSYS, None).contains("no perf_event_open"));
        assert!(say(libc::EMFILE, None).contains("ulimit"));
        assert!(say(libc::EINVAL, None).contains("perf_event_open(2)"));
    }

    fn refused(event: CountedEvent, code: i32, is_virtual: bool) -> NotCounted {
        let source = io::Error::from_raw_os_error(code);
        NotCounted { event, source, paranoid: Some(4), is_virtual }
    }

    #[test]
    fn an_event_that_is_not_there_and_one_that_is_forbidden_have_different_reasons() {
        let say = |code| refused(CountedEvent::Cycles, code, false).to_string();
        assert!(say(libc::ENOENT).starts_with("this processor has no such event"));
        let guest = refused(CountedEvent::Cycles, libc::ENOENT, true).to_string();
        assert!(guest.starts_with("this virtual machine has no such event"), "{guest}");
        let forbidden = say(libc::EACCES);
        assert!(forbidden.contains("sudo sysctl kernel.perf_event_paranoid=2"), "{forbidden}");
        assert!(say(libc::ENOSYS).contains("no perf_event_open"));
    }

    #[test]
    fn events_that_are_refused_for_one_reason_are_told_together() {
        let [cycles, faults, misses] =
            [CountedEvent::Cycles, CountedEvent::PageFaults, CountedEvent::CacheMisses];
        let all = [
            refused(cycles, libc::ENOENT, true),
            refused(faults, libc::EACCES, true),
            refused(misses, libc::ENOENT, true),
        ];
        let told = NotCounted::by_reason(&all);
        let events: Vec<_> = told.iter().map(|(_, events)| &events[..]).collect();
        assert_eq!(events, [&[cycles, misses][..], &[faults]]);
    }

    #[test]
    fn events_of_the_kernel_are_probed_as_those_of_the_processor_are() {
        let (allowed, counted) = (probe(), probe_counter(CountedEvent::PageFaults));
        assert_eq!(allowed.is_ok(), counted.is_ok(), "{allowed:?} {counted:?}");
        for event in CountedEvent::ALL {
            let probed = probe_counter(event);
            let (_, refused) = Counters::open(&[event]);
            let told = |of: &NotCounted| (of.event, of.to_string());
            assert_eq!(probed.as_ref().err().map(told), refused.first().map(told));
        }
    }
}
