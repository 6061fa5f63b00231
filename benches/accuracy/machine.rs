//! Effects of the machine on a program, kept out of what is measured.
//!
//! Where a part is really faster, the program is busy for less, and a machine answers to that,
//! which no virtual speedup can know:
//!
//! - The scheduler. Some kernels of virtual machines *pack*: while processors have little to do,
//!   who is woken waits behind who woke it though another processor is idle, so that the host may
//!   have that one. Threads with real-time priority go to a processor that is free, always.
//! - The host. A virtual processor that is idle is given back to it, and comes back the later the
//!   longer it was idle: after 20 us here within 22 us, after 2 ms within 52. So processors are
//!   [kept awake](Awake): they look for work while they are idle, and have it within 2 to 7 us.
//!
//! As long as the kernel takes 50 ms of each second from real-time threads that leave it no time,
//! programs that are hardly ever idle are left to the fair scheduler.

use crate::disturbed;
use crate::line;
use crate::report::Scheduling;
use andweorc_core::clock;
use andweorc_core::time::Nanos;
use nix::unistd::Pid;
use std::collections::HashMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// A program that has its processors busy for more than this part of the time is hardly ever
/// idle...
const MOST_BUSY: f64 = 0.7;

/// ... and so is one of which a thread is for more than this.
const MOST_BUSY_THREAD: f64 = 0.9;

/// How much of each period the kernel leaves to real-time threads: -1 for all of it.
const REAL_TIME_LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Where a process says how late processors may be that are idle, for as long as it has the file
/// open: the kernel's interface for that quality of service (PM QoS).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Precedence, from those who have the least on.
#[derive(Clone, Copy, Debug)]
enum Precedence {
    /// The program's threads. Those take turns only where there are more of them than processors.
    Program,
    /// andweorc's own, and this one that tells it what to do: as by the fair scheduler, since they
    /// sleep most of the time.
    Helpers,
    /// The world outside: it has a processor whenever it wants one, as if it had its own, or ran on
    /// another machine. Where it waited for the program's threads to sleep, the program's timing
    /// decided how long an answer took: by 280 us of 960, or not at all.
    Outside,
}

/// Since when this process is watched, and what it had used by then.
#[derive(Debug)]
pub(crate) struct Watched {
    since: Instant,
    process: Nanos,
    threads: HashMap<u32, Duration>,
}

/// How busy this process was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    /// For which part of the time processors were.
    pub(crate) processors: f64,
    /// For which part its busiest thread was.
    thread: f64,
}

impl Watched {
    /// From now on.
    pub(crate) fn begin() -> io::Result<Watched> {
        Ok(Watched {
            since: Instant::now(),
            process: clock::process_cpu(),
            threads: processor_times()?,
        })
    }

    /// How busy it was until now.
    pub(crate) fn busy(&self) -> io::Result<Busy> {
        let passed = self.since.elapsed();
        let process = (clock::process_cpu() - self.process).to_duration();
        let cores = thread::available_parallelism()?.get() as f64;
        let had = processor_times()?
            .into_iter()
            .map(|(thread, time)| time - self.threads.get(&thread).copied().unwrap_or_default());
        let most = had.max().unwrap_or_default();
        Ok(Busy {
            processors: process.div_duration_f64(passed) / cores,
            thread: most.div_duration_f64(passed),
        })
    }
}

impl Scheduling {
    /// Returns the scheduling that suits a program that is so busy.
    pub(crate) fn of(busy: Busy) -> Scheduling {
        let is_hardly_idle = busy.processors > MOST_BUSY || busy.thread > MOST_BUSY_THREAD;
        if is_hardly_idle && !has_no_limit() { Scheduling::Fair } else { Scheduling::RealTime }
    }

    /// Makes it so, for the threads that there are. To be called again when the program may have
    /// more.
    ///
    /// # Errors
    ///
    /// When the user may not have such priorities.
    pub(crate) fn set(self) -> Result<(), Box<dyn Error>> {
        if self == Scheduling::Fair { Ok(()) } else { take_precedence() }
    }
}

/// Keeps processors from sleeping while it lives.
#[derive(Debug)]
pub(crate) struct Awake(#[expect(dead_code, reason = "held open")] File);

impl Awake {
    /// # Errors
    ///
    /// When the user may not, or the kernel knows no such thing. (A kernel without a driver for
    /// idle processors lets them sleep all the same.)
    pub(crate) fn keep() -> io::Result<Awake> {
        let mut file = File::options().write(true).open(LATENCY)?;
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(Awake(file))
    }
}

/// Whether real-time threads may have processors all the time.
fn has_no_limit() -> bool {
    fs::read_to_string(REAL_TIME_LIMIT).is_ok_and(|limit| limit.trim_end() == "-1")
}

/// How much of a processor's time each thread of this process had so far.
fn processor_times() -> io::Result<HashMap<u32, Duration>> {
    let time = |(number, path): (u32, PathBuf)| {
        // None of one that has ended.
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        let ns = text.split(' ').next()?.parse().ok()?;
        Some((number, Duration::from_nanos(ns)))
    };
    Ok(threads()?.into_iter().filter_map(time).collect())
}

/// The threads of this process, and where the kernel tells of each.
fn threads() -> io::Result<Vec<(u32, PathBuf)>> {
    let mut threads = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let path = task?.path();
        if let Some(number) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) {
            threads.push((number, path));
        }
    }
    Ok(threads)
}

/// Gives the threads of this process the real-time priorities that are theirs.
fn take_precedence() -> Result<(), Box<dyn Error>> {
    let main = process::id();
    for (number, path) in threads()? {
        let precedence = match fs::read_to_string(path.join("comm")) {
            Ok(name) if [line::OUTSIDE, disturbed::HEARTBEAT].contains(&name.trim_end()) => {
                Precedence::Outside
            }
            // It would interrupt the program for each input, where another processor is idle.
            Ok(name) if name.trim_end() == "andweorc-input" => Precedence::Program,
            Ok(name) if number == main || name.starts_with("andweorc-") => Precedence::Helpers,
            Ok(_) => Precedence::Program,
            // It has ended.
            Err(_) => continue,
        };
        match set(Pid::from_raw(number.cast_signed()), precedence) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                return Err(format!(
                    "no real-time priority: {error}. Run this as root, or let the user have it (`ulimit -r 3`); or leave `--quiet-machine` away, and what the \
                     machine's scheduler and its sleeping processors do is part of the errors"
                )
                .into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Lets the calling thread, and those that it starts, go before the program.
pub(crate) fn go_first() -> io::Result<()> {
    set(Pid::from_raw(0), Precedence::Outside)
}

/// Sets the precedence of a thread, 0 for the calling one.
fn set(thread: Pid, precedence: Precedence) -> io::Result<()> {
    let (policy, priority) = match precedence {
        Precedence::Program => (libc::SCHED_RR, 1),
        Precedence::Helpers => (libc::SCHED_FIFO, 2),
        Precedence::Outside => (libc::SCHED_FIFO, 3),
    };
    let priority = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads `priority`, and sets what belongs to the thread.
    match unsafe { libc::sched_setscheduler(thread.as_raw(), policy, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
