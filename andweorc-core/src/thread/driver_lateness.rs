//! Workers that wait for a processor on which the target runs, as they are woken in the driver.
//!
//! A worker that slept in the driver, and waited so when it was woken, notices late what woke it.
//! [That came](Thread::came_late) earlier by what the worker waited behind the target. What the
//! worker waited is no part of the task's wait for the world outside: a task that is held for it
//! waits behind the target once more as it is due, as often as it would behind a faster one, since
//! V moves slowly while the target runs. In real time what wakes a worker finds the target there
//! more often.

use super::context_switches::Switches;
use super::processor::{Lately, Processor};
use super::{Thread, ledger};
use crate::process::processors;
use crate::time::{Nanos, Real, Speedup};
use std::cell::Cell;

/// Below this it is left: to ask the kernel takes more than a microsecond.
const LEAST: Nanos = Nanos::from_micros(5);

/// Waits of the calling thread for its processor, as far as they are known. Plain cells without a
/// destructor: a signal handler may use them that interrupted nobody who does.
pub(super) struct DriverLateness {
    /// How long it had waited for processors when the kernel was last asked.
    waited: Cell<Nanos>,
    /// How often it had given its processor up when the kernel was asked before it [went to
    /// sleep](Thread::begin_sleep).
    switches: Cell<Option<Switches>>,
    /// How it [came late](Thread::came_late) from the sleep that began then.
    late: Cell<(Real, Late)>,
}

/// A thread was woken, and waited for its processor behind the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Late {
    /// For how long.
    pub(super) waited: Nanos,
    /// Growth of D meanwhile: were the target faster, the thread would have come earlier by as
    /// much.
    pub(super) grown: Nanos,
}

impl Late {
    const NOT: Late = Late { waited: Nanos::ZERO, grown: Nanos::ZERO };

    /// Returns how late a thread came that was woken at `woken` and waited for `processor` until
    /// `now`: how much of that was behind the target, which `lately` tells of. It may have waited
    /// behind others too, as it does without an experiment.
    fn behind(
        lately: &Lately,
        processor: Processor,
        slope: Speedup,
        woken: Real,
        now: Real,
    ) -> Late {
        let grown = lately.between(processor, woken, now).min(slope.of(now - woken));
        Late { waited: slope.whole(grown), grown }
    }
}

impl DriverLateness {
    pub(super) const fn new() -> DriverLateness {
        DriverLateness {
            waited: Cell::new(Nanos::ZERO),
            switches: Cell::new(None),
            late: Cell::new((Real(0), Late::NOT)),
        }
    }
}

#[cfg(test)]
impl DriverLateness {
    /// Sets how late the thread came from the sleep that began at `since`.
    pub(super) fn set_late(&self, since: Real, waited: Nanos, grown: Nanos) {
        self.late.set((since, Late { waited, grown }));
    }
}

impl Thread {
    /// For how long the thread has waited for processors since this was last asked, where the
    /// kernel tells.
    fn waited(&self) -> Option<Nanos> {
        let waited = self.schedstat.waited()?;
        Some(waited - self.queued.waited.replace(waited))
    }

    /// L of the thread has grown by `grown` inside the target, where it runs; it is `now`.
    pub(super) fn grew(&self, grown: Nanos, now: Real) {
        let Some(processor) = Processor::current().filter(|_| grown > Nanos::ZERO) else { return };
        processors().grew.add(processor, grown, now - ledger().slope().whole(grown), now);
    }

    /// The thread, a worker, is about to sleep; if it `watches` the driver, until the world outside
    /// has something for it.
    pub(super) fn begin_sleep(&self, watches: bool) {
        if ledger().is_held() {
            // Of those too that seem not to: who parks just as the one goes that watched comes to
            // the driver behind its back.
            let switches = self.sleeps.ask();
            // A worker that has much to do comes here often without having slept, and so has waited
            // for nothing since.
            if watches && (switches.is_none() || switches != self.queued.switches.replace(switches))
            {
                self.waited();
            }
        }
    }

    /// Returns how long the thread, which has slept since `since` and was woken, waited for its
    /// processor behind the target then; it is `now`.
    pub(super) fn came_late(&self, since: Real, now: Real) -> Late {
        let (known, late) = self.queued.late.get();
        if known == since {
            return late;
        }
        let late = Processor::current()
            .filter(|&processor| processors().grew.between(processor, since, now) >= LEAST)
            .and_then(|processor| {
                let woken = since.max(now - self.waited()?);
                Some(Late::behind(&processors().grew, processor, ledger().slope(), woken, now))
            })
            .unwrap_or(Late::NOT);
        self.queued.late.set((since, late));
        late
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock;
    use crate::process::tests::Own;
    use crate::schedstat::tests::kernel_tells_waits;
    use crate::thread::processor::tests::{allowed, alone, stay_on, work};
    use crate::thread::{register, with};
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    /// Lets the calling thread run only where nobody else wants to.
    fn stand_back() {
        // SAFETY: all zeros are a valid value, and the kernel reads no more than it.
        let code = unsafe {
            let param: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param)
        };
        assert_eq!(code, 0);
    }

    #[test]
    fn worker_queued_behind_other_threads_is_not_late() {
        static LATELY: Lately = Lately::new();
        let (processor, slope) = (Processor::current().unwrap(), Speedup::new(0.25).unwrap());
        let (us, at) = (Nanos::from_micros, |us: i64| Real(us * 1000));
        LATELY.add(processor, us(25), at(1000), at(1100));
        let behind = |woken, now| Late::behind(&LATELY, processor, slope, at(woken), at(now));
        assert_eq!(behind(1020, 1100), Late { waited: us(80), grown: us(20) });
        assert_eq!(
            behind(1060, 1150),
            Late { waited: us(40), grown: us(10) },
            "then behind others"
        );
        assert_eq!(behind(1110, 1150), Late::NOT, "the target had left");
    }

    #[test]
    fn thread_woken_behind_the_target_came_late() {
        if !kernel_tells_waits() {
            return;
        }
        Own::run(|own| {
            let _alone = alone();
            let processor = allowed().next().unwrap();
            let both = Barrier::new(2);
            ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
            let rounds = 0..200;
            let late = thread::scope(|scope| {
                scope.spawn(|| {
                    own.enter();
                    stay_on(processor);
                    let account = register().unwrap();
                    for _ in rounds.clone() {
                        both.wait();
                        // Only now does the other one get the processor, and goes to sleep.
                        thread::sleep(Duration::from_micros(200));
                        ledger().enter(account, clock::now());
                        let began = clock::thread_cpu();
                        work(Nanos::from_millis(1));
                        let (now, ran) = (clock::now(), clock::thread_cpu() - began);
                        with(|thread| thread.grew(ledger().exit(account, now, ran), now));
                        both.wait();
                    }
                });
                let sleeps = scope.spawn(|| {
                    own.enter();
                    stay_on(processor);
                    stand_back();
                    let round = |_| {
                        with(|thread| thread.begin_sleep(true));
                        both.wait();
                        let since = clock::now();
                        thread::sleep(Duration::from_micros(600));
                        let now = clock::now();
                        let [late, again] = [now, clock::now()]
                            .map(|now| with(|thread| thread.came_late(since, now)));
                        both.wait();
                        (now - since, late, again)
                    };
                    rounds.clone().map(round).collect::<Vec<_>>()
                });
                sleeps.join().unwrap()
            });
            ledger().end(clock::now());
            for &(slept, late, again) in &late {
                let Late { waited, grown } = late;
                let is_part = waited <= slept && grown == ledger().slope().of(waited);
                assert!(is_part && late == again, "{late:?}, {again:?} of {slept}");
            }
            // If it is let in before the target is left, nothing is known yet: so it is now and
            // then, and often where this program is not a nice one.
            assert!(late.iter().any(|it| it.1.grown > Nanos::ZERO), "never late");
        })
    }

    #[test]
    fn thread_not_switched_out_is_not_asked_how_long_it_waited() {
        /// A wait that no thread has had: it stays where nobody asked.
        const NOT_ASKED: Nanos = Nanos(-1);
        if !kernel_tells_waits() {
            return;
        }
        Own::run(|_| {
            ledger().begin(Speedup::ZERO, clock::now());
            let asked = || {
                with(|thread| {
                    thread.queued.waited.set(NOT_ASKED);
                    thread.begin_sleep(true);
                    thread.queued.waited.get() != NOT_ASKED
                })
            };
            let slept = || {
                thread::sleep(Duration::from_millis(1));
                asked()
            };
            // Now and then it is switched out for another thread.
            let (slept, was_not) = ((0..5).all(|_| slept()), (0..100).any(|_| !asked()));
            ledger().end(clock::now());
            assert!(slept, "who has slept may have waited");
            assert!(was_not);
        })
    }
}
