//! What only an experiment asks of a worker that looks into the driver: to hold a wake, or release one, and to set a timer for it, a system call of some us.
//!
//! Whatever the worker finds there comes so much later, and what it took is nobody's time. But if it finds nothing and goes back to sleep, nobody has waited for it.
//! So that is decided as it goes on. (In the accuracy bench's `mutex_over_wait` a timer is set or put off two times in a round of 640 us, for 3 to 5 us each.)

use super::stay::MOST_SPENT;
use super::{LEDGER, THREAD, Thread, is_busy_worker, with};
use crate::clock;
use crate::ledger::Account;
use crate::time::{Nanos, Real, Speedup};

/// What a worker was at while it looked into the driver. [`MOST_SPENT`] later it has slept since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent {
    until: Real,
    sum: Nanos,
}

impl Spent {
    pub(super) const NOTHING: Spent = Spent { until: Real(0), sum: Nanos::ZERO };

    /// And more, from `since` until `now`.
    fn more(self, since: Real, now: Real) -> Spent {
        Spent { until: now, sum: self.just_now(since) + (now - since) }
    }

    /// For how long the worker was at it that goes on at `now`, and has not slept since.
    fn just_now(self, now: Real) -> Nanos {
        if now - self.until < MOST_SPENT { self.sum.min(MOST_SPENT) } else { Nanos::ZERO }
    }
}

/// The calling thread, a worker that looks into the driver or is about to, was at something that only an experiment asks for, from `since` until now: if it goes on without
/// having slept, it takes that off what it owes.
pub fn spent(since: Real) {
    if LEDGER.speedup() == Speedup::ZERO {
        return;
    }
    let now = clock::now();
    if is_busy_worker() {
        // It looks in passing.
        with(|thread| {
            if let Some(account) = thread.account(now) {
                LEDGER.took(account, (now - since).min(MOST_SPENT), now);
            }
        });
    } else {
        THREAD.with(|thread| thread.spent.set(thread.spent.get().more(since, now)));
    }
}

impl Thread {
    /// The thread, a worker, has looked into the driver, and goes on.
    pub(super) fn looked(&self, account: &Account, now: Real) {
        let spent = self.spent.replace(Spent::NOTHING).just_now(now);
        if spent > Nanos::ZERO && LEDGER.speedup() != Speedup::ZERO {
            LEDGER.took(account, spent, now);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::thread::{EXPERIMENTS, parked, register, unparked};
    use std::sync::PoisonError;

    #[test]
    fn what_follows_each_other_counts_together_unless_the_worker_slept() {
        let us = |us| Real(Nanos::from_micros(us).0);
        let spent = Spent::NOTHING.more(us(1000), us(1003)).more(us(1010), us(1014));
        assert_eq!(spent.just_now(us(1020)), Nanos::from_micros(7));
        assert_eq!(spent.just_now(us(1040)), Nanos::ZERO, "it slept, or was preempted");
        let spent = spent.more(us(1500), us(1504));
        assert_eq!(spent.just_now(us(1505)), Nanos::from_micros(4), "it slept before");
        let spent = spent.more(us(1505), us(1600));
        assert_eq!(spent.just_now(us(1601)), MOST_SPENT, "it was preempted");
    }

    /// By how much L of a worker grows that `spends` time on a look.
    fn grows(speedup: Speedup, spends: impl FnOnce()) -> Nanos {
        let account = register().unwrap();
        LEDGER.begin(speedup, clock::now());
        let before = LEDGER.taken(account, clock::now());
        spends();
        let grown = LEDGER.taken(account, clock::now()) - before;
        LEDGER.end(clock::now());
        grown
    }

    #[test]
    fn what_a_look_costs_is_taken_as_the_worker_goes_on() {
        let alone = EXPERIMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let little = || {
            let since = clock::now();
            while clock::now() - since < Nanos::from_micros(1) {}
            spent(since);
        };
        let some = Speedup::new(0.5).unwrap();
        let grown = std::thread::spawn(move || {
            let worker = |speedup| {
                grows(speedup, || {
                    parked(true);
                    little();
                    unparked();
                })
            };
            // Where the machine stops the thread in between, it is taken to have slept.
            let asleep = (0..1000).map(|_| worker(some)).find(|grown| *grown > Nanos::ZERO);
            let slept = grows(some, || {
                parked(true);
                little();
                std::thread::sleep(MOST_SPENT.to_duration());
                unparked();
            });
            (asleep, grows(some, little), slept, worker(Speedup::ZERO))
        });
        let (asleep, busy, slept, baseline) = grown.join().unwrap();
        drop(alone);
        let least = Nanos::from_micros(1);
        assert!(asleep.is_some_and(|it| (least..=MOST_SPENT).contains(&it)), "{asleep:?}");
        assert!((least..=MOST_SPENT).contains(&busy), "{busy}");
        assert_eq!((slept, baseline), (Nanos::ZERO, Nanos::ZERO));
    }
}
