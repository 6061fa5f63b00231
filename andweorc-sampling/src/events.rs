//! Perf events, by the crate perf-event (0.4.9): from it come the attributes and the system call.

pub(crate) use crate::ring::{Record, Ring};
pub(crate) use perf_event::Counter;
pub(crate) use perf_event_open_sys::bindings::{DISABLE, PERIOD};

use andweorc_profile::settings::Event;
use andweorc_profile::time::Nanos;
use nix::errno::Errno;
use perf_event::Builder;
use perf_event::events::{Hardware, Software};
use std::io;

/// Opens an event on a thread of this process, disabled: every `period` of its CPU time in user
/// space, or about as often as that.
///
/// # Errors
///
/// When the kernel refuses it.
pub(crate) fn open(tid: i32, event: Event, period: Nanos) -> io::Result<Counter> {
    let builder = Builder::new().observe_pid(tid).any_cpu();
    let mut builder = match event {
        Event::TaskClock => builder.kind(Software::TASK_CLOCK),
        Event::Cycles => builder.kind(Hardware::CPU_CYCLES),
        Event::Instructions => builder.kind(Hardware::INSTRUCTIONS),
        Event::CacheMisses => builder.kind(Hardware::CACHE_MISSES),
        Event::BranchMisses => builder.kind(Hardware::BRANCH_MISSES),
        // None that crates of one version know.
        _ => return Err(Errno::EOPNOTSUPP.into()),
    };
    let period = u64::try_from(period.0).unwrap_or(1).max(1);
    match event {
        Event::TaskClock => builder.sample_period(period),
        _ => builder.sample_frequency(1_000_000_000 / period),
    };
    builder.exclude_kernel(true).exclude_hv(true).wakeup_events(1);
    builder.build()
}
