//! Threads that wait for a processor on which the target runs.
//!
//! With a target that were really faster they would have waited less: a wait of `x` behind it is one of `x - s x` in virtual time, so that what D grew by
//! meanwhile has been taken and is not paid again. Behind anything else they would have waited as long, and do pay. (Two workers, a blocking pool and a
//! load generator on two processors: a worker that had waited half a millisecond behind a thread of the pool, while the other processor was idle, paused for
//! 0.75 of it on top, and a speedup of the pool's work by 75 % was predicted as +20 % where it is +44 %; with this as +26 %. What is left is not known.)
//!
//! Each processor has a count of what targets grew by that ran there. A thread remembers that of its own processor, at an instant when it ran and owed
//! nothing for a wait; what it has risen by since, the thread has waited for, unless it slept meanwhile. So the kernel is asked for how long it
//! has waited for a processor, and no more than that is taken.
//!
//! It is asked before the thread pays, before its virtual time is told, and before it enters the target itself, where L grows from what it is by then. A worker that is preempted by the target in the middle of a poll has not paid as the poll ends: if
//! it had not taken what it waited for by then, its task would park so much later, and be held for as long as the world outside answers. (In `blocking`, one request in
//! fifty: a thread of the pool that a handler has just given its work preempts the worker, so that the handler finds the answer in the same poll.)
//!
//! A worker that slept in the driver, and waited so when it was woken, notices late what woke it. [That came](Thread::came_late) earlier by what the worker waited behind the target.
//! What the worker waited is no part of the task's wait for the world outside: a task that is held for it waits behind the target once more as it is due, as often as it would
//! behind a faster one, since V moves slowly while the target runs. In real time what wakes a worker finds the target there more often.

use super::processor::{Lately, Processor, Times};
use super::sleeps::Switches;
use super::{LEDGER, Thread};
use crate::ledger::Account;
use crate::time::{Nanos, Real, Speedup};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Below this it is left: to ask the kernel takes more than a microsecond.
const LEAST: Nanos = Nanos::from_micros(5);

/// By how much L of threads inside the target grew that were on a processor.
static GROWN: Times = Times::new();

/// The same, and when: of the last time in which they did.
static LATELY: Lately = Lately::new();

/// The kernel did not tell how long a thread had waited behind the target. Relaxed: it publishes nothing.
static UNTOLD: AtomicBool = AtomicBool::new(false);

/// Whether threads may have paid what they had waited for behind the target, since the kernel did not tell how long that was.
pub(crate) fn paid_waits_again() -> bool {
    UNTOLD.load(Relaxed)
}

/// What is known of the calling thread. Plain cells without a destructor: a signal handler may use them that interrupted nobody who does.
pub(super) struct Queued {
    /// Where it ran last and owed nothing for a wait.
    place: Cell<Option<Place>>,
    /// How long it had waited for processors when the kernel was last asked.
    waited: Cell<Nanos>,
    /// How often it had given its processor up when the kernel was asked before it [went to sleep](Thread::goes_to_sleep).
    switches: Cell<Option<Switches>>,
    /// How it [came late](Thread::came_late) from the sleep that began then.
    late: Cell<(Real, Late)>,
}

/// A thread was woken, and waited for its processor behind the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Late {
    /// For how long.
    pub(super) waited: Nanos,
    /// What D grew by meanwhile: were the target faster, it would have come earlier by as much.
    pub(super) grown: Nanos,
}

impl Late {
    const NOT: Late = Late { waited: Nanos::ZERO, grown: Nanos::ZERO };

    /// It was woken at `woken` and waited for `processor` until `now`: how much of that was behind the target, which `lately` tells of. It may have waited behind others
    /// too, as it does without an experiment.
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

#[derive(Clone, Copy, Debug)]
struct Place {
    processor: Processor,
    /// What other threads grew there by then.
    grown: Nanos,
    experiment: u32,
}

impl Place {
    /// What targets grew by on this processor since.
    fn behind(self) -> Nanos {
        GROWN.of(self.processor) - self.grown
    }

    /// Whether that is in the running experiment.
    fn counts(self) -> bool {
        self.experiment == LEDGER.experiment()
    }
}

impl Queued {
    pub(super) const fn new() -> Queued {
        Queued {
            place: Cell::new(None),
            waited: Cell::new(Nanos::ZERO),
            switches: Cell::new(None),
            late: Cell::new((Real(0), Late::NOT)),
        }
    }
}

#[cfg(test)]
impl Queued {
    /// It came so late from the sleep that began at `since`.
    pub(super) fn set_late(&self, since: Real, waited: Nanos, grown: Nanos) {
        self.late.set((since, Late { waited, grown }));
    }
}

impl Thread {
    /// For how long the thread has waited for processors since this was last asked, where the kernel tells.
    fn waited(&self) -> Option<Nanos> {
        let waited = self.schedstat.waited()?;
        Some(waited - self.queued.waited.replace(waited))
    }

    /// The same, where the target ran before the thread: if the kernel does not tell, that is noted.
    fn waited_behind_the_target(&self) -> Option<Nanos> {
        let waited = self.waited();
        if waited.is_none() {
            UNTOLD.store(true, Relaxed);
        }
        waited
    }

    /// L of the thread has grown by `grown` inside the target, where it runs; it is `now`.
    pub(super) fn grew(&self, grown: Nanos, now: Real) {
        let Some(processor) = Processor::current().filter(|_| grown > Nanos::ZERO) else { return };
        GROWN.add(processor, grown);
        LATELY.add(processor, grown, now - LEDGER.slope().whole(grown), now);
        // Nobody waits behind itself.
        if let Some(place) = self.queued.place.get()
            && place.processor == processor
        {
            self.queued.place.set(Some(Place { grown: place.grown + grown, ..place }));
        }
    }

    /// The thread was idle or blocked until now, for `idle`: so it has taken what it owed, as far as that goes.
    pub(super) fn idled(&self, account: &Account, idle: Nanos, now: Real) {
        LEDGER.idle(account, idle, now);
        self.is_level_here();
    }

    /// The thread runs, and owes nothing for a wait.
    pub(super) fn is_level_here(&self) {
        // Between experiments there is nothing to remember.
        let processor = LEDGER.is_held().then(Processor::current).flatten();
        self.queued.place.set(processor.map(|processor| Place {
            processor,
            grown: GROWN.of(processor),
            experiment: LEDGER.experiment(),
        }));
    }

    /// The thread, a worker, is about to sleep; if it `watches` the driver, until the world outside has something for it.
    pub(super) fn goes_to_sleep(&self, watches: bool) {
        if LEDGER.is_held() {
            // Of those too that seem not to: who parks just as the one goes that watched comes to the driver behind its back.
            let switches = self.sleeps.ask();
            // A worker that has much to do comes here often without having slept, and so has waited for nothing since.
            if watches && (switches.is_none() || switches != self.queued.switches.replace(switches))
            {
                self.waited();
            }
        }
    }

    /// It has slept since `since`, and was woken; it is `now`. How long it waited for its processor behind the target then.
    pub(super) fn came_late(&self, since: Real, now: Real) -> Late {
        let (known, late) = self.queued.late.get();
        if known == since {
            return late;
        }
        let late = Processor::current()
            .filter(|&processor| LATELY.between(processor, since, now) >= LEAST)
            .and_then(|processor| {
                let woken = since.max(now - self.waited_behind_the_target()?);
                Some(Late::behind(&LATELY, processor, LEDGER.slope(), woken, now))
            })
            .unwrap_or(Late::NOT);
        self.queued.late.set((since, late));
        late
    }

    /// Whether there may be something to [take](Thread::take_what_it_queued_for), as far as is known without the kernel.
    pub(super) fn may_have_queued(&self) -> bool {
        let may = |place: Place| !place.counts() || place.behind() >= LEAST;
        LEDGER.is_held() && self.queued.place.get().is_none_or(may)
    }

    /// Takes what D grew by while the thread waited for its processor behind the target.
    pub(super) fn take_what_it_queued_for(&self, account: &Account, now: Real) {
        let Some(place) = self.queued.place.get().filter(|place| place.counts()) else {
            // What it has waited for before this experiment is nothing that it owes.
            self.waited();
            return self.is_level_here();
        };
        let behind = place.behind();
        if behind >= LEAST {
            // Where the kernel does not tell it has taken nothing, and is asked again only when more has grown.
            let waited = self.waited_behind_the_target().unwrap_or(Nanos::ZERO);
            self.idled(account, behind.min(LEDGER.slope().of(waited)), now);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock;
    use crate::profile::TargetKind;
    use crate::target::{Target, target};
    use crate::thread::processor::tests::{allowed, stay_on, work};
    use crate::thread::schedstat::tests::kernel_tells_waits;
    use crate::thread::{EXPERIMENTS, Poll, entity_at, register, with};
    use crate::time::Virtual;
    use std::sync::{Barrier, PoisonError};
    use std::thread;
    use std::time::Duration;

    /// How L is told of a thread in a poll.
    type Tells = fn(&mut Poll, Real) -> Nanos;

    /// It wakes another task.
    const ACTS: Tells = |_, now| entity_at(now).unwrap().delay_at(now);

    /// Its task parks.
    const PARKS: Tells = |poll, now| poll.end(false, now).taken;

    /// It enters the target itself: L grows there from where it is.
    const ENTERS: Tells = |_, now| {
        with(|thread| {
            thread.enter_credited(now);
            let account = thread.account(now).unwrap();
            let taken = LEDGER.taken(account, now);
            thread.exit_credited(now);
            taken
        })
    };

    /// It goes on with a task that had taken nothing when it got ready, and pays for that.
    const JOINS: Tells = |_, now| {
        let ready = now.less(LEDGER.floor());
        let next = Poll::begin(task(), ready, None, now);
        let began = next.began();
        // What it did not pay for.
        LEDGER.owed(now) - (ready - began.less(next.taken())).max(Nanos::ZERO)
    };

    /// It pays, which takes it no time.
    const PAYS: Tells = |_, now| {
        with(|thread| {
            let account = thread.account(now).unwrap();
            thread.take_what_it_queued_for(account, now);
            LEDGER.taken(account, now)
        })
    };

    fn task() -> &'static Target {
        target(TargetKind::Task, "queued", None, None)
    }

    /// What a thread still owes after a poll on processor `mine`, as it is told then, of what D grew by while another one was inside the target on `other`;
    /// both in ms.
    fn owes(mine: usize, other: usize, told: Tells) -> (f64, f64) {
        let task = task();
        let alone = EXPERIMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let both = Barrier::new(2);
        let speedup = Speedup::new(0.5).unwrap();
        let before = LEDGER.begin(speedup, clock::now());
        let (owes, grown) = thread::scope(|scope| {
            scope.spawn(|| {
                stay_on(other);
                let account = register().unwrap();
                both.wait();
                LEDGER.enter(account, clock::now());
                let began = clock::thread_cpu();
                work(Nanos::from_millis(60));
                let ran = clock::thread_cpu() - began;
                let now = clock::now();
                with(|thread| thread.grew(LEDGER.exit(account, now, ran), now));
                both.wait();
            });
            let waits = scope.spawn(|| {
                stay_on(mine);
                let account = register().unwrap();
                with(|thread| thread.take_what_it_queued_for(account, clock::now()));
                let mut poll = Poll::begin(task, Virtual(0), None, clock::now());
                both.wait();
                work(Nanos::from_millis(60));
                both.wait();
                let now = clock::now();
                let taken = told(&mut poll, now);
                (LEDGER.owed(now) - taken, LEDGER.owed(now) - before)
            });
            waits.join().unwrap()
        });
        LEDGER.end(clock::now());
        drop(alone);
        (owes.as_secs_f64() * 1e3, grown.as_secs_f64() * 1e3)
    }

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
    fn what_others_than_the_target_keep_a_worker_from_is_not_late() {
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
    fn who_is_woken_behind_the_target_came_late() {
        if !kernel_tells_waits() {
            return;
        }
        let alone = EXPERIMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let processor = allowed().next().unwrap();
        let both = Barrier::new(2);
        LEDGER.begin(Speedup::new(0.5).unwrap(), clock::now());
        let rounds = 0..200;
        let late = thread::scope(|scope| {
            scope.spawn(|| {
                stay_on(processor);
                let account = register().unwrap();
                for _ in rounds.clone() {
                    both.wait();
                    // Only now does the other one get the processor, and goes to sleep.
                    thread::sleep(Duration::from_micros(200));
                    LEDGER.enter(account, clock::now());
                    let began = clock::thread_cpu();
                    work(Nanos::from_millis(1));
                    let (now, ran) = (clock::now(), clock::thread_cpu() - began);
                    with(|thread| thread.grew(LEDGER.exit(account, now, ran), now));
                    both.wait();
                }
            });
            let sleeps = scope.spawn(|| {
                stay_on(processor);
                stand_back();
                let round = |_| {
                    with(|thread| thread.goes_to_sleep(true));
                    both.wait();
                    let since = clock::now();
                    thread::sleep(Duration::from_micros(600));
                    let now = clock::now();
                    let [late, again] =
                        [now, clock::now()].map(|now| with(|thread| thread.came_late(since, now)));
                    both.wait();
                    (now - since, late, again)
                };
                rounds.clone().map(round).collect::<Vec<_>>()
            });
            sleeps.join().unwrap()
        });
        LEDGER.end(clock::now());
        drop(alone);
        for &(slept, late, again) in &late {
            let Late { waited, grown } = late;
            let is_part = waited <= slept && grown == LEDGER.slope().of(waited);
            assert!(is_part && late == again, "{late:?}, {again:?} of {slept}");
        }
        // If it is let in before the target is left, nothing is known yet: so it is now and then, and often where this program is not a nice one.
        assert!(late.iter().any(|it| it.1.grown > Nanos::ZERO), "never late");
    }

    #[test]
    fn who_was_not_switched_out_is_not_asked_for_how_long_it_waited() {
        /// As no thread has waited.
        const NOT_ASKED: Nanos = Nanos(-1);
        if !kernel_tells_waits() {
            return;
        }
        let alone = EXPERIMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        LEDGER.begin(Speedup::ZERO, clock::now());
        let asked = || {
            with(|thread| {
                thread.queued.waited.set(NOT_ASKED);
                thread.goes_to_sleep(true);
                thread.queued.waited.get() != NOT_ASKED
            })
        };
        let slept = || {
            thread::sleep(Duration::from_millis(1));
            asked()
        };
        // Now and then it is switched out for another thread.
        let (slept, was_not) = thread::scope(|scope| {
            let sleeper = || ((0..5).all(|_| slept()), (0..100).any(|_| !asked()));
            scope.spawn(sleeper).join().unwrap()
        });
        LEDGER.end(clock::now());
        drop(alone);
        assert!(slept, "who has slept may have waited");
        assert!(was_not);
    }

    #[test]
    fn who_waited_behind_the_target_does_not_pay_for_it_again() {
        if !kernel_tells_waits() {
            return;
        }
        let mut processors = allowed();
        let first = processors.next().unwrap();
        for told in [PAYS, ACTS, PARKS, ENTERS, JOINS] {
            let (owed, grown) = owes(first, first, told);
            assert!((25.0..40.0).contains(&grown), "{grown} ms");
            assert!(owed < grown / 2.0, "{owed} of {grown} ms on one processor");
        }
        let Some(second) = processors.next() else { return println!("skipped: one processor") };
        for told in [PAYS, ACTS, PARKS, ENTERS] {
            let (owed, grown) = owes(first, second, told);
            assert!(owed > grown * 0.9, "{owed} of {grown} ms beside the target");
        }
    }

    #[test]
    fn a_kernel_that_tells_no_waits_is_asked_once_for_what_grew() {
        let alone = EXPERIMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        LEDGER.begin(Speedup::new(0.5).unwrap(), clock::now());
        let processor = allowed().next().unwrap();
        let asked = thread::spawn(move || {
            stay_on(processor);
            let account = register().unwrap();
            with(|thread| {
                let take = || {
                    let may = thread.may_have_queued();
                    thread.take_what_it_queued_for(account, clock::now());
                    may
                };
                take();
                thread.schedstat.tells_nothing();
                let taken = LEDGER.taken(account, clock::now());
                GROWN.add(Processor::current().unwrap(), Nanos::from_millis(1));
                let asked = [take(), take()];
                (asked, LEDGER.taken(account, clock::now()) - taken)
            })
        });
        let asked = asked.join().unwrap();
        LEDGER.end(clock::now());
        let told = UNTOLD.swap(false, Relaxed);
        drop(alone);
        assert_eq!(asked, ([true, false], Nanos::ZERO));
        assert!(told, "the report says so");
    }
}
