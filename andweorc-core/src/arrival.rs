//! When something came from the world outside that a worker has just noticed.
//!
//! Tokio looks for timers and sockets when a worker has nothing else to do, and every 61 polls. On a busy runtime what came lies there for
//! milliseconds until somebody looks, and a task that is woken by it has long been ready. Its wait must not be stretched by the delays that grew
//! meanwhile: it would be held for them once more, and a service at its limit would be predicted to gain half of what it gains.
//!
//! One worker waits in the driver; while that one works, nobody looks, also if others are idle.
//!
//! When it came is not to be known, only between which two looks, and after the task began to wait. Tasks of its kind whose wakes were noticed at once
//! tell how long they wait ([`Typical`]); where none was, the middle is the best guess.
//!
//! Looks are those of all runtimes of the program together: with several that are busy, what came is taken to be younger than it is.

mod typical;

pub use typical::Typical;

use crate::time::{Nanos, Real};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A worker that looks comes back with what lay there within this; what comes later came while it slept. Where no park tells, wakes of one
/// look follow each other within it.
const AT_ONCE: Nanos = Nanos::from_micros(40);

/// The looks of the workers of a program.
#[derive(Debug, Default)]
pub struct Looks {
    /// When all that had come was last known to be noticed, real ns; 0 before any look.
    looked: AtomicI64,
}

/// Those of this process.
pub(crate) static LOOKS: Looks = Looks::new();

/// The look that a worker takes at the moment, or took last.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Since when the worker was idle, if it was.
    idle: Option<Real>,
    /// When it noticed something last.
    at: Real,
    /// The look before, of any worker. What is noticed in this one came after it.
    after: Real,
}

/// When something came that a worker has noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// When, as far as it is known.
    pub at: Real,
    /// It was noticed at once: its time is known, and no guess.
    pub at_once: bool,
}

impl Look {
    /// None yet.
    pub const NONE: Look = Look { idle: None, at: Real(0), after: Real(0) };

    /// Whether what is noticed at `now` by a worker that is idle since `idle` is part of this look.
    fn goes_on(&self, now: Real, idle: Option<Real>) -> bool {
        self.idle == idle && (idle.is_some() || now - self.at < AT_ONCE)
    }
}

impl Looks {
    /// None yet.
    pub const fn new() -> Looks {
        Looks { looked: AtomicI64::new(0) }
    }

    // All accesses are Relaxed: they publish nothing else, and looks that race with each other are one look.

    /// A worker waited in the driver from `since` until `now`: it has looked, and if it slept, there was nothing.
    pub fn slept(&self, since: Real, now: Real) {
        let looked = if now - since > AT_ONCE { now } else { since };
        self.looked.fetch_max(looked.0, Relaxed);
    }

    /// When that came which a worker noticed at `now` that is idle since `idle`, if it is; it woke a task that waits since `waits`, if that is
    /// known, and `typical` are the waits of its kind. `look` is the worker's last one.
    pub fn came(
        &self,
        look: &Cell<Look>,
        now: Real,
        idle: Option<Real>,
        waits: Option<Real>,
        typical: &Typical,
    ) -> Came {
        let looked = Real(self.looked.fetch_max(now.0, Relaxed));
        let before = look.get();
        let after = if before.goes_on(now, idle) { before.after } else { looked };
        look.set(Look { idle, at: now, after });
        let latest = match idle {
            Some(since) if now - since > AT_ONCE => return Came { at: now, at_once: true },
            Some(since) => since,
            None => now,
        };
        let earliest = after.max(waits.unwrap_or(Real(0)));
        let at = if earliest == Real(0) || earliest >= latest {
            latest
        } else if let Some(waits) = waits {
            waits + typical.between(earliest - waits, latest - waits)
        } else {
            earliest + Nanos((latest - earliest).0 / 2)
        };
        Came { at, at_once: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Typical {
        Typical::default()
    }

    fn us(us: i64) -> Real {
        Real(us * 1000)
    }

    fn guess(at: Real) -> Came {
        Came { at, at_once: false }
    }

    #[test]
    fn a_sleeping_worker_is_woken_at_once() {
        let (looks, look) = (Looks::new(), Cell::new(Look::NONE));
        let came = looks.came(&look, us(500), Some(us(300)), Some(us(100)), &nothing());
        assert_eq!(came, Came { at: us(500), at_once: true });
    }

    #[test]
    fn what_lay_there_came_between_the_two_looks() {
        let (looks, look) = (Looks::new(), Cell::new(Look::NONE));
        looks.slept(us(0), us(1000));
        // A worker that is busy until 2000, then looks.
        assert_eq!(looks.came(&look, us(2010), Some(us(2000)), None, &nothing()), guess(us(1500)));
        // The same look goes on, however many it wakes.
        assert_eq!(looks.came(&look, us(2039), Some(us(2000)), None, &nothing()), guess(us(1500)));
        // The next one, every 61 polls, while nobody is idle.
        assert_eq!(looks.came(&look, us(4039), None, None, &nothing()), guess(us(3039)));
        assert_eq!(looks.came(&look, us(4049), None, None, &nothing()), guess(Real(3_044_000)));
    }

    #[test]
    fn a_look_that_found_nothing_is_one_too() {
        let (looks, look) = (Looks::new(), Cell::new(Look::NONE));
        looks.slept(us(0), us(1000));
        // Woken by another worker as soon as it had looked.
        looks.slept(us(1800), us(1805));
        assert_eq!(looks.came(&look, us(2010), Some(us(2000)), None, &nothing()), guess(us(1900)));
        // Another worker's look in between is not this one's.
        looks.slept(us(2005), us(2015));
        assert_eq!(looks.came(&look, us(2020), Some(us(2000)), None, &nothing()), guess(us(1900)));
    }

    #[test]
    fn nothing_comes_before_the_task_waits_for_it() {
        let (looks, look) = (Looks::new(), Cell::new(Look::NONE));
        looks.slept(us(0), us(1000));
        assert_eq!(
            looks.came(&look, us(2010), Some(us(2000)), Some(us(1800)), &nothing()),
            guess(us(1900))
        );
        assert_eq!(
            looks.came(&look, us(2015), Some(us(2000)), Some(us(2005)), &nothing()),
            guess(us(2000))
        );
    }

    #[test]
    fn without_a_look_before_it_came_with_this_one() {
        let (looks, look) = (Looks::new(), Cell::new(Look::NONE));
        assert_eq!(looks.came(&look, us(2010), None, None, &nothing()), guess(us(2010)));
    }

    #[test]
    fn waits_that_were_noticed_at_once_tell_of_those_that_were_not() {
        let (looks, look, typical) = (Looks::new(), Cell::new(Look::NONE), Typical::default());
        looks.slept(us(0), us(1000));
        typical.count(Nanos::from_micros(500));
        let came = |now, idle, waits| {
            looks.came(&look, us(now), Some(us(idle)), Some(us(waits)), &typical)
        };
        assert_eq!(came(2010, 2000, 1200), guess(us(1700)));
        assert_eq!(came(2011, 2000, 1800), guess(us(2000)), "not after the look");
        assert_eq!(came(2012, 2000, 100), guess(us(1000)), "not before the last one");
    }
}
