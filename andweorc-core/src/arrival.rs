//! When something came from the world outside that a worker has just noticed.
//!
//! Tokio looks for timers and sockets when a worker has nothing else to do, and every 61 polls. On a busy runtime what came lies there for
//! milliseconds until somebody looks, and a task that is woken by it has long been ready. Its wait must not be stretched by the delays that grew
//! meanwhile: it would be held for them once more, and a service at its limit would be predicted to gain half of what it gains.
//!
//! When it came is not to be known, only between which two looks, and after the task began to wait. The middle is what is right on average.
//!
//! Looks are those of all runtimes of the program together: with several that are busy, what came is taken to be younger than it is.

use crate::time::{Nanos, Real};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A worker that looks comes back with what lay there within this; what comes later came while it slept. So do two wakes of one look
/// follow each other.
const AT_ONCE: Nanos = Nanos::from_micros(40);

/// The looks of the workers.
#[derive(Debug)]
pub(crate) struct Looks {
    /// The last one, real ns, as far as it is known: when it found something, or when who looked slept. 0 before any.
    last: AtomicI64,
    /// The one before. 0 before any.
    before: AtomicI64,
}

/// Those of this process.
pub(crate) static LOOKS: Looks = Looks::new();

impl Looks {
    const fn new() -> Looks {
        Looks { last: AtomicI64::new(0), before: AtomicI64::new(0) }
    }

    // All accesses are Relaxed: they publish nothing else, and looks that race with each other are one look.

    /// A worker slept until `now`, and somebody would have woken it, or another one, had there been anything.
    pub(crate) fn slept(&self, since: Real, now: Real) {
        if now - since > AT_ONCE {
            self.last.fetch_max(now.0, Relaxed);
        }
    }

    /// When that came which a worker noticed at `now` that is idle since `idle`, if it is; it woke a task that waits since `waits`, if that is
    /// known.
    pub(crate) fn came(&self, now: Real, idle: Option<Real>, waits: Option<Real>) -> Real {
        let last = self.last.swap(now.0, Relaxed);
        let before = if now - Real(last) < AT_ONCE {
            self.before.load(Relaxed)
        } else {
            self.before.store(last, Relaxed);
            last
        };
        let latest = match idle {
            Some(since) if now - since > AT_ONCE => return now,
            Some(since) => since,
            None => now,
        };
        let earliest = Real(before).max(waits.unwrap_or(Real(0)));
        if earliest == Real(0) || earliest >= latest {
            return latest;
        }
        earliest + Nanos((latest - earliest).0 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: i64) -> Real {
        Real(us * 1000)
    }

    #[test]
    fn a_sleeping_worker_is_woken_at_once() {
        let looks = Looks::new();
        assert_eq!(looks.came(us(500), Some(us(300)), Some(us(100))), us(500));
    }

    #[test]
    fn what_lay_there_came_between_the_two_looks() {
        let looks = Looks::new();
        looks.slept(us(0), us(1000));
        // A worker that is busy until 2000, then looks.
        assert_eq!(looks.came(us(2010), Some(us(2000)), None), us(1500));
        // The same look goes on.
        assert_eq!(looks.came(us(2020), Some(us(2000)), None), us(1500));
        // The next one, every 61 polls, while nobody is idle.
        assert_eq!(looks.came(us(4020), None, None), us(3020));
    }

    #[test]
    fn nothing_comes_before_the_task_waits_for_it() {
        let looks = Looks::new();
        looks.slept(us(0), us(1000));
        assert_eq!(looks.came(us(2010), Some(us(2000)), Some(us(1800))), us(1900));
        assert_eq!(looks.came(us(2015), Some(us(2000)), Some(us(2005))), us(2000));
    }

    #[test]
    fn without_a_look_before_it_came_with_this_one() {
        let looks = Looks::new();
        assert_eq!(looks.came(us(2010), None, None), us(2010));
        let looks = Looks::new();
        looks.slept(us(990), us(1000));
        assert_eq!(looks.came(us(2010), None, None), us(2010), "a short stop is no sleep");
    }
}
