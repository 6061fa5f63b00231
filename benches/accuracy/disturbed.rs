//! Whether the machine was disturbed by others than this program and its world outside.

use andweorc_core::clock;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::fs;
use std::time::Instant;

/// Above this share of all processors' time a stretch is disturbed. The kernel counts the time of all by looking every few ms: on a quiet
/// machine the share came out between -8 % and +3 % in nine of ten stretches.
const MOST: f64 = 0.06;

/// Watches the processors.
#[derive(Debug)]
pub(crate) struct Watch {
    outside: ClockId,
    cores: f64,
}

/// What was used up by now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    at: Instant,
    /// By all, seconds of processor time.
    all: f64,
    /// By this process and its world outside.
    own: f64,
}

impl Watch {
    /// Counts the time of this process and of the process `outside` as its own.
    pub(crate) fn new(outside: u32) -> nix::Result<Watch> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        Ok(Watch { outside: clock_getcpuclockid(Pid::from_raw(outside as i32))?, cores })
    }

    pub(crate) fn used(&self) -> Used {
        let outside = clock_gettime(self.outside).map_or(0, |time| time.num_nanoseconds());
        let own = clock::process_cpu().as_secs_f64() + outside as f64 / 1e9;
        Used { at: Instant::now(), all: busy().unwrap_or(0.0), own }
    }

    /// What others did since `before`, if it was too much.
    pub(crate) fn disturbed_since(&self, before: Used) -> Option<String> {
        let now = self.used();
        let others = (now.all - before.all) - (now.own - before.own);
        let share = others / (self.cores * (now.at - before.at).as_secs_f64());
        (share > MOST).then(|| format!("others used {:.0} % of the processors", share * 100.0))
    }
}

/// Seconds that all processors were busy for programs, or taken away by the host. The kernel counts in hundredths.
fn busy() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    // `cpu user nice system idle iowait irq softirq steal ...`
    let fields = text.lines().next()?.split_ascii_whitespace().skip(1);
    let ticks: Vec<f64> = fields.take(8).flat_map(str::parse).collect();
    let [user, nice, system, _, _, _, _, steal] = ticks[..] else { return None };
    Some((user + nice + system + steal) / 100.0)
}
