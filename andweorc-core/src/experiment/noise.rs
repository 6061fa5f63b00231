//! Counters of the kernel that tell what other things the machine did.

use crate::clock;
use crate::experiment::throttle::Throttled;
use crate::pause;
use crate::stall::stalled;
use crate::time::Nanos;
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use std::fs;

/// Ticks of all processors since boot, as /proc/stat counts them, this process's part, and how
/// often it was stopped for a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    pub(super) all: u64,
    pub(super) busy: u64,
    pub(super) stolen: u64,
    pub(super) own: Nanos,
    /// In which a processor that this process may use was idle, or ran what is nice: that mostly
    /// stands back for whoever wants it. Threads of this process that alone are nice count as such
    /// too.
    idle: u64,
    /// In which such a processor did anything else.
    busy_here: u64,
    pub(super) ticks_per_second: f64,
    pub(super) throttled: Throttled,
    pub(super) stalled: Nanos,
}

impl Noise {
    /// Reads the counters; zeros where there are none, so that nothing is ever called discarded.
    pub(crate) fn read() -> Noise {
        let allowed = sched_getaffinity(Pid::this()).ok();
        let allowed = |number| allowed.is_none_or(|set| set.is_set(number) == Ok(true));
        let noise = fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|text| Noise::parse(&text, clock::process_cpu(), allowed, pause::nice() > 0))
            .unwrap_or_default();
        Noise { throttled: Throttled::read(), stalled: stalled(), ..noise }
    }

    /// Parses the first lines: `cpu user nice system idle iowait irq softirq steal guest
    /// guest_nice`, and the same for `cpu0` and each other processor, of which the process may use
    /// those that are `allowed`. If it `is_nice` itself, what runs as nice may be itself.
    fn parse(
        text: &str,
        own: Nanos,
        allowed: impl Fn(usize) -> bool,
        is_nice: bool,
    ) -> Option<Noise> {
        let mut lines = text.lines();
        let all = ticks(lines.next()?.strip_prefix("cpu ")?)?;
        let [user, nice, system, _, _, irq, softirq, stolen] = all;
        let idle_and_busy = |line: &str| {
            let (number, line) = line.strip_prefix("cpu")?.split_once(' ')?;
            let [user, nice, system, idle, waits, irq, softirq, _] = ticks(line)?;
            let stands_back = if is_nice { 0 } else { nice };
            let busy = user + nice + system + irq + softirq - stands_back;
            number.parse().is_ok_and(&allowed).then_some((idle + waits + stands_back, busy))
        };
        let processors = lines.take_while(|line| line.starts_with("cpu"));
        let (idle, busy_here) = processors
            .filter_map(idle_and_busy)
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Some(Noise {
            all: all.iter().sum(),
            busy: user + nice + system + irq + softirq,
            stolen,
            own,
            idle,
            busy_here,
            ticks_per_second: clock::ticks_per_second(),
            ..Noise::default()
        })
    }

    /// The CPU time that other processes had from here until `after` on the processors that the
    /// process may use. The kernel counts it in ticks of some ms. `None` where it tells nothing.
    pub(crate) fn others(&self, after: &Noise) -> Option<Nanos> {
        let busy = after.busy_here.saturating_sub(self.busy_here) as f64 / self.ticks_per_second;
        let others = busy - (after.own - self.own).as_secs_f64();
        (busy > 0.0 && others.is_finite()).then(|| Nanos((others.max(0.0) * 1e9) as i64))
    }

    /// How many of the processors that the process may use were idle from here until `after`, on
    /// average. None at its limit on processor time: there it can't have what is idle.
    pub(crate) fn idle(&self, after: &Noise, time: Nanos) -> f64 {
        if Throttled::reason_to_discard(self.throttled, after.throttled).is_some() {
            return 0.0;
        }
        let seconds = after.idle.saturating_sub(self.idle) as f64 / self.ticks_per_second;
        // Without ticks there was nothing to read: then none is known to be.
        if seconds.is_finite() { seconds / time.as_secs_f64() } else { 0.0 }
    }
}

/// Ticks that follow the name in a line of `/proc/stat`. Guest time, which comes after these, is
/// contained in user time already.
fn ticks(line: &str) -> Option<[u64; 8]> {
    let fields = line.split_ascii_whitespace().take(8).map(str::parse);
    fields.collect::<Result<Vec<_>, _>>().ok()?.try_into().ok()
}

#[cfg(test)]
impl Noise {
    /// A reading of so many ticks, of 10 ms each.
    pub(super) fn at(all: u64, busy: u64, stolen: u64, own_ticks: i64) -> Noise {
        Noise {
            all,
            busy,
            stolen,
            own: Nanos::from_millis(10 * own_ticks),
            idle: all - busy - stolen,
            busy_here: busy,
            ticks_per_second: 100.0,
            ..Noise::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_machine() {
        assert!(Noise::read().all > 0);
    }

    #[test]
    fn others_have_what_the_program_has_not() {
        let before = Noise::at(1000, 300, 0, 100);
        let others =
            |busy: u64, own: i64| before.others(&Noise::at(2000, 300 + busy, 0, 100 + own));
        assert_eq!(others(90, 60), Some(Nanos::from_millis(300)));
        assert_eq!(others(60, 61), Some(Nanos::ZERO), "a tick is less than known");
        assert_eq!(Noise::default().others(&Noise::default()), None);
    }

    #[test]
    fn parses_what_the_kernel_writes() {
        let text = "cpu  50 1 20 120 7 2 3 10 40 0\n\
            cpu0 20 0 10 60 1 1 1 5 20 0\ncpu1 30 1 10 60 6 1 2 5 20 0\nintr 1 2";
        let parse = |allowed: fn(usize) -> bool, is_nice| {
            Noise::parse(text, Nanos(5), allowed, is_nice).unwrap()
        };
        let noise = |allowed| parse(allowed, false);
        let all = noise(|_| true);
        assert_eq!((all.all, all.busy, all.stolen, all.own), (213, 76, 10, Nanos(5)));
        assert_eq!((all.idle, noise(|number| number == 1).idle), (128, 67));
        assert_eq!((all.busy_here, noise(|number| number == 1).busy_here), (75, 43));
        assert_eq!(parse(|_| true, true).idle, 127, "what is nice may be this process");
        for text in ["intr 1 2", "cpu 1 x", "cpu 1 2 3"] {
            assert_eq!(Noise::parse(text, Nanos(0), |_| true, false), None);
        }
    }

    #[test]
    fn tells_how_many_processors_were_idle() {
        let (before, after) = (Noise::at(100, 20, 0, 10), Noise::at(300, 90, 10, 50));
        assert_eq!(before.idle(&after, Nanos::from_millis(1000)), 1.2);
        assert_eq!(Noise::default().idle(&Noise::default(), Nanos::from_millis(1000)), 0.0);
        let limited = Noise { throttled: Throttled::at(10, 8), ..after };
        assert_eq!(
            before.idle(&limited, Nanos::from_millis(1000)),
            0.0,
            "stopped in 8 of 10 periods"
        );
    }
}
