//! What the machine does beside a program, kept out of it.
//!
//! Where a part is really faster, the program is busy for less, and a machine answers to that, which no virtual speedup can know:
//!
//! - The scheduler. Some kernels of virtual machines *pack*: while processors have little to do, who is woken waits behind who woke it though another
//!   processor is idle, so that the host may have that one. Threads with real-time priority go to a processor that is free, always.
//! - The host. A virtual processor that is idle is given back to it, and comes back the later the longer it was idle. With something to do at all times, which
//!   everybody else takes precedence of, it never is. That is nice, so that its time counts as idle (`andweorc-core/src/experiment/noise.rs`).
//!
//! Programs that are hardly ever idle meet neither. Nothing keeps their processors awake, with which some scattered by tens of percents. And as long as the kernel takes
//! 50 ms of each second from real-time threads that leave it no time, they are left to the fair scheduler.

use crate::disturbed;
use crate::line::{self, Answering};
use crate::report::Scheduling;
use andweorc_core::clock;
use andweorc_core::time::Nanos;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::hint;
use std::io;
use std::path::PathBuf;
use std::process;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A program that has its processors busy for more than this part of the time is hardly ever idle...
const MOST_BUSY: f64 = 0.7;

/// ... and so is one of which a thread is for more than this.
const MOST_BUSY_THREAD: f64 = 0.9;

/// How much of each period the kernel leaves to real-time threads: -1 for all of it.
const REAL_TIME_LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Name of the threads that keep processors awake.
const AWAKE: &str = "awake";

/// Precedence, from those who have the least on.
#[derive(Clone, Copy, Debug)]
enum Precedence {
    /// Whoever keeps a processor awake: everybody else goes first.
    Last,
    /// The program's threads. Those take turns only where there are more of them than processors.
    Program,
    /// andweorc's own, and this one that tells it what to do: as by the fair scheduler, since they sleep most of the time.
    Helpers,
    /// The world outside: it has a processor whenever it wants one, as if it had its own, or ran on another machine. Where it waited for the program's
    /// threads to sleep, the program's timing decided how long an answer took: by 280 us of 960, or not at all.
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
    /// What suits a program that is so busy.
    pub(crate) fn of(busy: Busy) -> Scheduling {
        let is_hardly_idle = busy.processors > MOST_BUSY || busy.thread > MOST_BUSY_THREAD;
        match (is_hardly_idle, has_no_limit()) {
            (false, _) => Scheduling::RealTimeAwake,
            (true, true) => Scheduling::RealTime,
            (true, false) => Scheduling::Fair,
        }
    }

    /// Makes it so, for the threads that there are.
    ///
    /// # Errors
    ///
    /// When the user may not have such priorities.
    pub(crate) fn begin(self) -> Result<(), Box<dyn Error>> {
        self.go_on()?;
        if self == Scheduling::RealTimeAwake { keep_awake() } else { Ok(()) }
    }

    /// To be called again when the program may have more threads.
    ///
    /// # Errors
    ///
    /// As of [`begin`](Scheduling::begin).
    pub(crate) fn go_on(self) -> Result<(), Box<dyn Error>> {
        if self == Scheduling::Fair { Ok(()) } else { take_precedence() }
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
            Ok(name) if name.trim_end() == AWAKE => Precedence::Last,
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
                    "no real-time priority: {error}. Run this as root, or let the user have it (`ulimit -r 3`); or add `--fair`, and what the \
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

/// Keeps each processor that this process may use from sleeping, until the process ends.
fn keep_awake() -> Result<(), Box<dyn Error>> {
    let allowed = sched_getaffinity(Pid::this())?;
    for number in 0..CpuSet::count() {
        if allowed.is_set(number)? {
            let (tell, told) = mpsc::channel();
            thread::Builder::new().name(AWAKE.to_owned()).spawn(move || {
                let ready = stay_on(number)
                    .and_then(|()| set(Pid::from_raw(0), Precedence::Last))
                    .and_then(|()| be_nice());
                let failed = ready.is_err();
                tell.send(ready).expect("it is waited for");
                if failed {
                    return;
                }
                let mut answering = Answering::begin();
                loop {
                    answering.answer();
                    hint::spin_loop();
                }
            })?;
            told.recv()?
                .map_err(|error| format!("processor {number} is not kept awake: {error}"))?;
        }
    }
    Ok(())
}

/// Lets the calling thread run on this processor alone.
fn stay_on(number: usize) -> io::Result<()> {
    let mut one = CpuSet::new();
    one.set(number)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &one)?)
}

/// Lets the time of the calling thread count as that of who is nice.
fn be_nice() -> io::Result<()> {
    // SAFETY: takes plain numbers, 0 for the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the precedence of a thread, 0 for the calling one.
fn set(thread: Pid, precedence: Precedence) -> io::Result<()> {
    let (policy, priority) = match precedence {
        Precedence::Last => (libc::SCHED_IDLE, 0),
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
