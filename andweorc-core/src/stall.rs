//! Stalls: times in which the machine, or all of the process, stood still, and nobody tells.
//!
//! A host stops a virtual machine now and then, for some ms, and does not count all of that as
//! stolen. (By a trace of the scheduler, once for 15 ms in which nothing was: a worker was said to
//! run.) All requests that are under way take so much longer, and half a dozen of five hundred are
//! the p99 of an experiment. A thread that sleeps again and again sees it, by how late it comes
//! back, less what it waited for a processor: that the kernel tells.

use crate::process::process;
use crate::schedstat::Schedstat;
use crate::time::Nanos;
use std::sync::atomic::Ordering::Relaxed;

/// Shortest stall that counts: anything shorter is how threads wake up.
const LEAST: Nanos = Nanos::from_millis(2);

/// For how long the machine stood still in all, as far as anybody looked.
pub(crate) fn stalled() -> Nanos {
    // Relaxed: it publishes nothing.
    Nanos(process().machine.stalled.load(Relaxed))
}

/// Stalls as seen by a thread that sleeps again and again. To be used by one thread only.
pub(crate) struct Stalls {
    schedstat: Schedstat,
    /// How long it had waited for processors when that was last asked.
    waited: Option<Nanos>,
}

impl Stalls {
    pub(crate) fn new() -> Stalls {
        let schedstat = Schedstat::new();
        let waited = schedstat.waited();
        Stalls { schedstat, waited }
    }

    /// The calling thread came back from its sleep so `late`.
    pub(crate) fn woke(&mut self, late: Nanos) {
        // Asked every time: what it waited for before is no concern of this sleep.
        let waited = self.schedstat.waited();
        let before = std::mem::replace(&mut self.waited, waited);
        // Where the kernel does not tell it may have waited all the time.
        if let Some(stall) = before.zip(waited).and_then(|(before, now)| stall(late, now - before))
        {
            process().machine.stalled.fetch_add(stall.0, Relaxed);
        }
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.schedstat.close();
    }
}

/// Part of being `late` that was a stall, if the thread `waited` so long for a processor.
fn stall(late: Nanos, waited: Nanos) -> Option<Nanos> {
    Some(late - waited).filter(|&stall| stall >= LEAST)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn wait_for_a_processor_is_no_stall() {
        let ms = Nanos::from_millis;
        assert_eq!(stall(ms(15), Nanos::ZERO), Some(ms(15)));
        assert_eq!(stall(ms(15), ms(5)), Some(ms(10)));
        assert_eq!(stall(ms(15), ms(14)), None);
        assert_eq!(stall(ms(1), Nanos::ZERO), None);
    }

    #[test]
    fn stalls_add_up() {
        let before = stalled();
        let mut stalls = Stalls::new();
        if stalls.waited.is_none() {
            return println!("skipped: this kernel tells no waits for processors");
        }
        // Longer than it can have waited for a processor since.
        let late = Nanos::from_millis(1_000_000);
        stalls.woke(late);
        stalls.woke(Nanos::ZERO);
        assert!(stalled() - before > Nanos(late.0 / 2), "{}", stalled() - before);
    }
}
