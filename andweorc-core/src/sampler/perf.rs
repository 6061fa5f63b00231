//! Opening perf events, and what to say when the kernel refuses.

use crate::time::Nanos;
use perf_event::events::Software;
use perf_event::{Builder, Counter};
use perf_event_open_sys::bindings::{PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_IP};
use std::{error, fmt, fs, io};

/// Opens a sampling event on the calling thread: every `period` of its CPU time, its user-space call chain.
///
/// From the crate perf-event (0.4.9) come the attributes and the system call; the ring is our own, since perf-event has none and
/// perf-event2's does not parse all records. The event is the software clock `task-clock`, which works in virtual machines without
/// hardware counters.
pub(crate) fn open(period: Nanos) -> Result<Counter, PerfError> {
    let mut builder = Builder::new().kind(Software::TASK_CLOCK).observe_self().any_cpu();
    builder
        .sample_period(u64::try_from(period.0).unwrap_or(1).max(1))
        .exclude_kernel(true)
        .exclude_hv(true)
        .exclude_callchain_kernel(true)
        .enabled(true);
    builder.attrs_mut().sample_type = (PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN).into();
    builder.build().map_err(PerfError::new)
}

/// The kernel gives no perf events.
#[derive(Debug)]
pub struct PerfError {
    source: io::Error,
    paranoid: Option<i32>,
}

impl PerfError {
    pub(crate) fn new(source: io::Error) -> PerfError {
        let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
            .ok()
            .and_then(|text| text.trim().parse().ok());
        PerfError { source, paranoid }
    }
}

impl fmt::Display for PerfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel refuses perf events ({})", self.source)?;
        f.write_str(
            ", so lines and functions can't be sampled; tasks and spans are timed and go on. ",
        )?;
        match (self.source.raw_os_error(), self.paranoid) {
            (Some(libc::EACCES | libc::EPERM), Some(paranoid)) if paranoid > 2 => write!(
                f,
                "kernel.perf_event_paranoid is {paranoid}: allow it with `sudo sysctl kernel.perf_event_paranoid=2`, or give the program \
                 CAP_PERFMON"
            ),
            (Some(libc::EACCES | libc::EPERM), _) => f.write_str(
                "A seccomp filter or a missing capability forbids it: in a container, run it with `--cap-add PERFMON` and a \
                 seccomp profile that allows perf_event_open",
            ),
            (Some(libc::ENOSYS), _) => f.write_str(
                "This kernel or sandbox has no perf_event_open: run the program outside of it",
            ),
            (Some(libc::EMFILE), _) => {
                f.write_str("The program has too many open files: raise the limit with `ulimit -n`")
            }
            _ => f.write_str("See perf_event_open(2) for what this error means"),
        }
    }
}

impl error::Error for PerfError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        let say = |code, paranoid| {
            PerfError { source: io::Error::from_raw_os_error(code), paranoid }.to_string()
        };
        assert!(say(libc::EACCES, Some(4)).contains("sudo sysctl kernel.perf_event_paranoid=2"));
        assert!(say(libc::EPERM, Some(1)).contains("--cap-add PERFMON"));
        assert!(say(libc::ENOSYS, None).contains("no perf_event_open"));
        assert!(say(libc::EMFILE, None).contains("ulimit"));
        assert!(say(libc::EINVAL, None).contains("perf_event_open(2)"));
    }
}
