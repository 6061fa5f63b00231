//! Whether the machine was disturbed by others than this program and its world outside.

use crate::machine;
use andweorc_core::clock;
use andweorc_core::target::{Target, targets};
use andweorc_core::time::{Nanos, Real};
use andweorc_profile::{SamplesRecord, TargetTime};
use nix::sys::time::TimeValLike;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Above this share of all processors' time a stretch is disturbed. The kernel counts the time of
/// all by looking every few ms: on a quiet machine the share came out between -8 % and +3 % in nine
/// of ten stretches.
const MOST: f64 = 0.06;

/// A machine that stood still for longer was disturbed. A host may stop a virtual machine and not
/// count that as stolen (by a trace, once for 15 ms): all requests that are under way take so much
/// longer, and six of 500 are their p99.
const MOST_STILL: Nanos = Nanos::from_millis(2);

/// How often that is looked at.
const BEAT: Duration = Duration::from_millis(4);

/// Name of the thread that looks.
pub(crate) const HEARTBEAT: &str = "heartbeat";

/// Watches the processors.
#[derive(Debug)]
pub(crate) struct Watch {
    outside: ClockId,
    cores: f64,
    /// For how long the machine stood still at most since that was last asked, ns.
    still: Arc<AtomicI64>,
}

/// Processor time used up to a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    at: Real,
    /// By all, seconds of processor time.
    all: f64,
    /// By this process and its world outside.
    own: f64,
    /// By the world outside.
    outside: f64,
}

impl Watch {
    /// Counts the time of this process and of the process `outside` as its own.
    pub(crate) fn new(outside: u32) -> io::Result<Watch> {
        let cores = thread::available_parallelism().map_or(1, usize::from) as f64;
        let still = Arc::<AtomicI64>::default();
        let longest = still.clone();
        thread::Builder::new().name(HEARTBEAT.to_owned()).spawn(move || beat(&longest))?;
        Ok(Watch { outside: clock_getcpuclockid(Pid::from_raw(outside as i32))?, cores, still })
    }

    /// Returns what was used up by now. From now on it is watched anew whether the machine stands
    /// still.
    pub(crate) fn used(&self) -> Used {
        self.still.store(0, SeqCst);
        let outside = clock_gettime(self.outside).map_or(0, |time| time.num_nanoseconds());
        let outside = outside as f64 / 1e9;
        let own = clock::process_cpu().as_secs_f64() + outside;
        Used { at: clock::now(), all: busy().unwrap_or(0.0), own, outside }
    }

    /// Returns what the program and the world outside have used since `before`, and its targets,
    /// which had these busy times then, as a session records it.
    pub(crate) fn samples_since(&self, before: Used, busy: &HashMap<u32, u64>) -> SamplesRecord {
        let now = self.used();
        let outside = now.outside - before.outside;
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let time = |target: &&'static Target| {
            let busy_ns = target.busy_ns() - busy.get(&target.id()).copied().unwrap_or(0);
            TargetTime::new(target.id(), busy_ns, 1)
        };
        let (real, own) = ((now.at - before.at).as_secs_f64(), now.own - before.own - outside);
        let mut samples = SamplesRecord::new("timed", ns(real), ns(own));
        samples.others_ns = Some(ns(outside));
        samples.targets = targets().iter().map(time).collect();
        samples
    }

    /// Returns what disturbed the machine since `before`, if it was too much.
    pub(crate) fn disturbed_since(&self, before: Used) -> Option<String> {
        let still = Nanos(self.still.load(SeqCst));
        if still > MOST_STILL {
            return Some(format!(
                "the machine stood still for {:.0} ms",
                still.as_secs_f64() * 1e3
            ));
        }
        let now = self.used();
        let others = (now.all - before.all) - (now.own - before.own);
        let share = others / (self.cores * (now.at - before.at).as_secs_f64());
        (share > MOST).then(|| format!("others used {:.0} % of the processors", share * 100.0))
    }
}

/// Notes the longest time for which nothing ran, by how late a thread wakes up that goes before all
/// others. Does nothing where it may not: as an ordinary user.
fn beat(longest: &AtomicI64) {
    if machine::go_first().is_err() {
        return;
    }
    // By the kernel's timer: the program's own clock, by which it sleeps, is slower in experiments.
    let timer = TimerFd::new(timerfd::ClockId::CLOCK_MONOTONIC, TimerFlags::empty());
    let Ok(timer) = timer else { return };
    loop {
        let due = clock::now() + Nanos::from(BEAT);
        let beat = Expiration::OneShot(BEAT.into());
        let slept = timer.set(beat, TimerSetTimeFlags::empty()).and_then(|()| timer.wait());
        if slept.is_err() {
            return;
        }
        longest.fetch_max((clock::now() - due).0, SeqCst);
    }
}

/// Seconds that all processors were busy for programs, or taken away by the host. The kernel counts
/// in hundredths.
fn busy() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    // `cpu user nice system idle iowait irq softirq steal ...`
    let fields = text.lines().next()?.split_ascii_whitespace().skip(1);
    let ticks: Vec<f64> = fields.take(8).flat_map(str::parse).collect();
    let [user, nice, system, _, _, _, _, steal] = ticks[..] else { return None };
    Some((user + nice + system + steal) / 100.0)
}
