//! Whether sampling slows the program: what it does in a second before it is sampled, and while it
//! is.
//!
//! A perf event by the clock is a timer of the thread's own, which the kernel sets anew each time
//! that the thread gets its processor. On a virtual machine, where that takes an exit to the host,
//! a switch between two threads takes ten times as long. A program whose threads hand over some ten
//! thousand times a second is slowed by that, and experiments would tell of a program that nobody
//! runs. CPU timers, at which the kernel looks in its ticks, cost a switch next to nothing: so they
//! take the samples of such a program, fewer of them.

/// Work of a point over a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Hits of the point.
    pub(super) hits: u64,
    /// Length of the stretch.
    pub(super) real_ns: u64,
    /// CPU time of the program in it.
    pub(super) cpu_ns: u64,
}

/// A fall of the rate to less than this part is told.
const SLOWED: f64 = 0.9;

/// A rise of the CPU time a hit to more than this multiple is told.
const COSTLIER: f64 = 1.25;

/// Differences of less than so many standard deviations are chance.
const DEVIATIONS: f64 = 4.0;

/// With fewer hits on either side nothing is told.
const MIN_HITS: u64 = 50;

impl Pace {
    /// Hits a second, and their standard deviation, as that of a count.
    fn rate(self) -> (f64, f64) {
        let seconds = self.real_ns.max(1) as f64 / 1e9;
        (self.hits as f64 / seconds, (self.hits as f64).sqrt() / seconds)
    }

    fn cpu_of_each(self) -> f64 {
        self.cpu_ns as f64 / self.hits.max(1) as f64
    }

    /// Says how the program, whose point is `name`, is slowed by this: where it does less while it
    /// is `sampled` than it did before, or needs more CPU time for it.
    pub(super) fn slowed(self, sampled: Pace, name: &str, by: &str) -> Option<String> {
        if self.hits < MIN_HITS || sampled.hits < MIN_HITS {
            return None;
        }
        let ((before, before_off), (rate, off)) = (self.rate(), sampled.rate());
        let costs = sampled.cpu_of_each() / self.cpu_of_each();
        let is_slowed =
            rate < SLOWED * before && before - rate > DEVIATIONS * before_off.hypot(off);
        if !is_slowed && costs < COSTLIER {
            return None;
        }
        Some(format!(
            "{by} slows the program: `{name}` was hit {before:.0} times a second before it and \
             {rate:.0} with it, and each hit takes {costs:.1} times the CPU time"
        ))
    }
}

/// Sampling, in the note.
pub(super) const SAMPLING: &str = "sampling lines and functions";

/// End of the note where CPU timers take the samples from then on.
pub(super) const USES_TIMERS: &str = "Its threads hand over so often that a perf event for each costs too much. CPU timers take the \
    samples instead, a sample in each tick of the kernel, 4 ms most often: give the run more time";

/// End of the note where nothing else can take them.
pub(super) const STAYS_SLOW: &str = "What is predicted is about the sampled program. Tasks, spans and waits need no samples: name \
    those in ANDWEORC_TARGETS, or put spans around the work";

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(hits: u64, cpu_ms: u64) -> Pace {
        Pace { hits, real_ns: 1_000_000_000, cpu_ns: cpu_ms * 1_000_000 }
    }

    #[test]
    fn slower_program_is_told_with_its_rates() {
        let note = pace(3000, 900).slowed(pace(1000, 950), "walk", SAMPLING).unwrap();
        assert!(note.contains("`walk` was hit 3000 times a second before it and 1000"), "{note}");
        assert!(note.contains("3.2 times the CPU time"), "{note}");
    }

    #[test]
    fn load_at_its_own_pace_costs_more_cpu_time() {
        assert!(pace(1000, 300).slowed(pace(1000, 500), "walk", SAMPLING).is_some());
        assert_eq!(pace(1000, 300).slowed(pace(1000, 330), "walk", SAMPLING), None);
    }

    #[test]
    fn chance_is_not_told() {
        assert_eq!(pace(1000, 300).slowed(pace(960, 300), "walk", SAMPLING), None);
        assert_eq!(pace(100, 30).slowed(pace(75, 24), "walk", SAMPLING), None, "2 deviations");
        assert_eq!(pace(40, 12).slowed(pace(10, 12), "walk", SAMPLING), None, "too few");
        assert_eq!(
            pace(1000, 300).slowed(pace(3000, 900), "walk", SAMPLING),
            None,
            "the load has grown"
        );
    }
}
