//! Disturbances of an experiment: other things that the machine did meanwhile.

use crate::clock;
use crate::experiment::throttle::Throttled;
use crate::pause;
use crate::stall::stalled;
use crate::time::Nanos;
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::fs;

/// By how much the share of stolen time may exceed what is stolen otherwise: above that the truth
/// itself was another one meanwhile. A machine from which always a tenth is stolen is a slower
/// machine, and experiments on it are compared with baselines on it.
const MOST_STOLEN: f64 = 0.05;

/// By how much the share that other processes used may exceed what they use otherwise: a load
/// generator on this machine is always there, a compiler that starts is not. The kernel counts in
/// ticks of some ms, so that the share of a short experiment is known to a few hundredths only.
const MOST_FOREIGN: f64 = 0.10;

/// By how much longer than otherwise the machine may stand still.
const MOST_STALLED: Nanos = Nanos::from_millis(2);

/// From so many experiments it is known what others use otherwise.
const KNOWN: usize = 3;

/// So many experiments back count for it.
const LAST: usize = 15;

/// Tells which experiments are spoiled.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Shares of all processors that other processes used.
    foreign: Usual,
    /// Shares of them that were stolen.
    stolen: Usual,
    /// Seconds for which the machine [stood still](crate::stall).
    stalled: Usual,
}

/// Values of something in the last experiments.
#[derive(Debug, Default)]
struct Usual(VecDeque<f64>);

impl Usual {
    /// The median of those before, once there are enough, and takes in one more.
    fn next(&mut self, one: f64) -> Option<f64> {
        let usual = (self.0.len() >= KNOWN).then(|| median(self.0.iter().copied()));
        if self.0.len() == LAST {
            self.0.pop_front();
        }
        self.0.push_back(one);
        usual
    }
}

impl Watch {
    /// Why what happened between two readings must not be used, if so.
    pub(crate) fn spoiled(&mut self, before: &Noise, after: &Noise) -> Option<String> {
        let limited = Throttled::spoiled(before.throttled, after.throttled);
        let stalled = self.stalled(after.stalled - before.stalled);
        limited.or_else(|| self.disturbed(before, after)).or(stalled)
    }

    /// Why, if the machine stood still for so long.
    fn stalled(&mut self, stalled: Nanos) -> Option<String> {
        let usually = self.stalled.next(stalled.as_secs_f64()).unwrap_or(0.0);
        let is_more = stalled.as_secs_f64() - usually > MOST_STALLED.as_secs_f64();
        is_more
            .then(|| format!("the machine stood still for {:.0} ms", stalled.as_secs_f64() * 1e3))
    }

    /// Why, if the machine did something else.
    fn disturbed(&mut self, before: &Noise, after: &Noise) -> Option<String> {
        if before.ticks_per_second == 0.0 {
            // There was nothing to read.
            return None;
        }
        let all = after.all.checked_sub(before.all).filter(|&all| all > 0)? as f64;
        let share = |before: u64, after: u64| after.saturating_sub(before) as f64 / all;
        let stolen = share(before.stolen, after.stolen);
        let own = (after.own - before.own).as_secs_f64() * after.ticks_per_second / all;
        let foreign = (share(before.busy, after.busy) - own).max(0.0);

        let usual = self.foreign.next(foreign);
        let usually_stolen = self.stolen.next(stolen).unwrap_or(0.0);

        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        if stolen - usually_stolen > MOST_STOLEN {
            return Some(format!("the machine stole {} of the time", percent(stolen)));
        }
        let usual = usual.filter(|usual| foreign - usual > MOST_FOREIGN)?;
        Some(format!(
            "other processes used {} of the machine, {} otherwise",
            percent(foreign),
            percent(usual)
        ))
    }
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = of.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Ticks of all processors since boot, as /proc/stat counts them, this process's part, and how
/// often it was stopped for a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    all: u64,
    busy: u64,
    stolen: u64,
    own: Nanos,
    /// In which a processor that this process may use was idle, or ran what is nice: that mostly
    /// stands back for whoever wants it. Threads of this process that alone are nice count as such
    /// too.
    idle: u64,
    /// In which such a processor did anything else.
    busy_here: u64,
    ticks_per_second: f64,
    throttled: Throttled,
    stalled: Nanos,
}

impl Noise {
    /// Reads the counters; zeros where there are none, so that nothing is ever called spoiled.
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
            throttled: Throttled::default(),
            stalled: Nanos::ZERO,
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
        if Throttled::spoiled(self.throttled, after.throttled).is_some() {
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
mod tests {
    use super::*;

    #[test]
    fn reads_this_machine() {
        assert!(Noise::read().all > 0);
    }

    fn reading(all: u64, busy: u64, stolen: u64, own_ticks: i64) -> Noise {
        Noise {
            all,
            busy,
            stolen,
            own: Nanos::from_millis(10 * own_ticks),
            idle: all - busy - stolen,
            busy_here: busy,
            ticks_per_second: 100.0,
            throttled: Throttled::default(),
            stalled: Nanos::ZERO,
        }
    }

    #[test]
    fn others_have_what_the_program_has_not() {
        let before = reading(1000, 300, 0, 100);
        let others = |busy: u64, own: i64| before.others(&reading(2000, 300 + busy, 0, 100 + own));
        assert_eq!(others(90, 60), Some(Nanos::from_millis(300)));
        assert_eq!(others(60, 61), Some(Nanos::ZERO), "a tick is less than known");
        assert_eq!(Noise::default().others(&Noise::default()), None);
    }

    #[test]
    fn says_how_long_the_machine_stood_still() {
        let mut watch = Watch::default();
        let before = reading(100, 20, 0, 10);
        let stalled = |ms| Noise { stalled: Nanos::from_millis(ms), ..before };
        let mut spoiled = |ms| watch.spoiled(&before, &stalled(ms));
        assert_eq!(spoiled(15).unwrap(), "the machine stood still for 15 ms");
        assert_eq!(spoiled(2), None);
        // What goes on for long is how the machine is.
        for _ in 0..LAST {
            spoiled(40);
        }
        assert_eq!(spoiled(41), None);
        assert_eq!(spoiled(45).unwrap(), "the machine stood still for 45 ms");
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
        let (before, after) = (reading(100, 20, 0, 10), reading(300, 90, 10, 50));
        assert_eq!(before.idle(&after, Nanos::from_millis(1000)), 1.2);
        assert_eq!(Noise::default().idle(&Noise::default(), Nanos::from_millis(1000)), 0.0);
        let limited = Noise { throttled: Throttled::at(10, 8), ..after };
        assert_eq!(
            before.idle(&limited, Nanos::from_millis(1000)),
            0.0,
            "stopped in 8 of 10 periods"
        );
    }

    #[test]
    fn knows_nothing_without_a_first_reading() {
        let after = reading(200, 60, 100, 50);
        assert_eq!(Watch::default().spoiled(&Noise::default(), &after), None);
    }

    #[test]
    fn says_how_much_was_stolen() {
        let mut watch = Watch::default();
        let (before, after) = (reading(100, 20, 0, 10), reading(200, 60, 10, 50));
        assert_eq!(watch.spoiled(&before, &after).unwrap(), "the machine stole 10 % of the time");
        assert_eq!(watch.spoiled(&before, &before), None);
        // What goes on for long is how the machine is.
        for _ in 0..KNOWN {
            watch.spoiled(&before, &after);
        }
        assert_eq!(watch.spoiled(&before, &after), None);
        let more = reading(200, 60, 20, 40);
        assert_eq!(watch.spoiled(&before, &more).unwrap(), "the machine stole 20 % of the time");
    }

    #[test]
    fn says_when_others_use_more_than_otherwise() {
        let mut watch = Watch::default();
        let start = reading(0, 0, 0, 0);
        // The load generator always uses a fifth.
        for _ in 0..KNOWN {
            assert_eq!(watch.spoiled(&start, &reading(100, 70, 0, 50)), None);
        }
        assert_eq!(watch.spoiled(&start, &reading(100, 75, 0, 48)), None);
        assert_eq!(
            watch.spoiled(&start, &reading(100, 80, 0, 40)).unwrap(),
            "other processes used 40 % of the machine, 20 % otherwise"
        );
        // What goes on for long is how the machine is.
        for _ in 0..LAST {
            watch.spoiled(&start, &reading(100, 80, 0, 40));
        }
        assert_eq!(watch.spoiled(&start, &reading(100, 80, 0, 40)), None);
    }
}
