//! Perf events, by the crate perf-event (0.4.9): from it come the attributes and the system call.

use crate::counter_cells::Reading;
pub(crate) use crate::ring::{Record, Ring};
pub(crate) use perf_event::Counter;
pub(crate) use perf_event_open_sys::bindings::{DISABLE, PERIOD};

use andweorc_profile::settings::{CountedEvent, Event};
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

/// Opens a counter of an event on a thread of this process, disabled, which overflows after each
/// `period` of its events in user space.
///
/// # Errors
///
/// When the kernel refuses it.
pub(crate) fn open_counter(tid: i32, event: CountedEvent, period: u64) -> io::Result<Counter> {
    let builder = Builder::new().observe_pid(tid).any_cpu();
    let mut builder = match event {
        CountedEvent::Cycles => builder.kind(Hardware::CPU_CYCLES),
        CountedEvent::Instructions => builder.kind(Hardware::INSTRUCTIONS),
        CountedEvent::CacheMisses => builder.kind(Hardware::CACHE_MISSES),
        CountedEvent::BranchMisses => builder.kind(Hardware::BRANCH_MISSES),
        CountedEvent::PageFaults => builder.kind(Software::PAGE_FAULTS),
        CountedEvent::MinorFaults => builder.kind(Software::PAGE_FAULTS_MIN),
        CountedEvent::CpuClock => builder.kind(Software::CPU_CLOCK),
        // None that crates of one version know.
        _ => return Err(Errno::EOPNOTSUPP.into()),
    };
    builder.sample_period(period).exclude_kernel(true).exclude_hv(true).wakeup_events(1);
    builder.build()
}

/// Reads a counter.
///
/// # Errors
///
/// When the kernel refuses it.
pub(crate) fn read(counter: &mut Counter) -> io::Result<Reading> {
    let read = counter.read_count_and_time()?;
    Ok(Reading { count: read.count, enabled: read.time_enabled, running: read.time_running })
}
