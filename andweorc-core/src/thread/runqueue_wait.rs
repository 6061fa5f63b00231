//! Threads that wait for a processor behind others of the program.
//!
//! A processor is a resource, as a lock is. A thread that gets it after a wait goes on in the
//! virtual time of the one that had it: `L = max(L, min(m, L + waited))`, where the L of that one
//! is m. In virtual time the thread was ready at `r - L` and the processor was free at `t - m`; the
//! thread begins at the later of the two. So
//!
//! - what another thread had paid before it gave the processor up, who waited for it has paid too,
//! - what the target grew by on the processor, who waited behind it need not pay,
//! - what grew elsewhere while another thread worked on the processor, and what that one has not
//!   paid either, remains to be paid.
//!
//! Threads tell themselves who had a processor ([`Occupants`]): as they pay, as they enter the
//! target, and as their waits begin and end. Two kinds of waits are behind nobody:
//!
//! - Behind a thread that had left before this one was woken: the processor wakes up, which takes
//!   as long whatever is made faster.
//! - Behind another process: the last thread that was seen there is this one.
//!
//! The kernel is asked for how long a thread has waited, which takes half a microsecond, only where
//! it owes something and another one was seen on its processor last. It is asked before the thread
//! pays, before its virtual time is told, before it enters the target, where L grows from what it
//! is by then, and as it comes back from a sleep. A worker that is preempted in the middle of a
//! poll has not paid as that ends: were it not asked then, its task would park so much later, and
//! be held for so much longer.
//!
//! # A target that has no processor
//!
//! A target without a processor does not go on, and nor does D. Who pays reads the CPU clock of the
//! thread inside, to know for how long that one has run: else whoever preempts the target would pay
//! for the time in which it does so.

use super::preemption::idle;
use super::processor::Processor;
use super::{Thread, ledger};
use crate::clock;
use crate::ledger::Account;
use crate::process::{process, processors};
use crate::time::{Nanos, Real};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// A smaller debt is left: to ask the kernel takes a system call.
const LEAST: Nanos = Nanos::from_micros(5);

/// A thread that is inside the target for no longer has most likely run throughout.
const STRETCH: Nanos = Nanos::from_micros(50);

/// Whether threads may have paid what they had waited for, since the kernel did not tell how long
/// that was.
pub(crate) fn paid_waits_again() -> bool {
    // Relaxed: it publishes nothing.
    process().threads.has_untold_waits.load(Relaxed)
}

/// The calling thread's place and waits. Plain cells without a destructor: a signal handler may use
/// them that interrupted nobody who does.
pub(super) struct RunqueueWait {
    /// Where it was seen last, unless it left of its own accord.
    on: Cell<Option<Processor>>,
    /// How long it had waited for processors when the kernel was last asked.
    waited: Cell<Nanos>,
    /// When it last owed nothing.
    caught_up_at: Cell<Real>,
    /// The experiment of that time.
    experiment: Cell<u32>,
}

impl RunqueueWait {
    pub(super) const fn new() -> RunqueueWait {
        RunqueueWait {
            on: Cell::new(None),
            waited: Cell::new(Nanos::ZERO),
            caught_up_at: Cell::new(Real(0)),
            experiment: Cell::new(0),
        }
    }
}

/// How the thread came to its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comes {
    /// Ready to run all the time.
    Preempted,
    /// From a sleep, woken just now.
    Woken,
}

impl Thread {
    /// The thread has its processor at `now`.
    fn occupies(&self, account: &'static Account, now: Real) {
        let here = Processor::current();
        let before = self.runqueue_wait.on.replace(here);
        if let Some(there) = before.filter(|_| before != here) {
            processors().occupants.was_moved(
                there,
                account,
                ledger().local_delay(account, now),
                now,
            );
        }
        if let Some(here) = here {
            processors().occupants.takes(here, account);
        }
    }

    /// The thread gives its processor up, of its own accord.
    pub(super) fn leave_processor(&self) {
        // Between experiments there is nothing to remember.
        if ledger().is_held()
            && let Some(account) = self.account.get()
            && let Some(here) = Processor::current()
        {
            let now = clock::now();
            self.runqueue_wait.on.set(None);
            processors().occupants.leaves(here, account, ledger().local_delay(account, now), now);
        }
    }

    /// The thread runs at `now`, and owes nothing for a wait.
    #[inline]
    pub(super) fn note_caught_up(&self, now: Real) {
        if ledger().is_held() {
            self.note_caught_up_while_held(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_caught_up_while_held(&self, now: Real) {
        if let Some(account) = self.account.get() {
            self.runqueue_wait.caught_up_at.set(now);
            self.runqueue_wait.experiment.set(ledger().experiment());
            self.occupies(account, now);
        }
    }

    /// The debt of the thread, without what D would grow by while those inside the target have no
    /// processor.
    pub(super) fn owes_now(&self, account: &Account, now: Real) -> Nanos {
        let debt = ledger().lag(account, now);
        if debt < LEAST {
            return debt;
        }
        ledger().global_delay_less(now, |inside, since| stopped(inside, since, now))
            - ledger().local_delay(account, now)
    }

    /// Takes what the thread owed and has waited for, behind who had its processor.
    #[inline]
    pub(super) fn absorb_runqueue_wait(&self, account: &'static Account, comes: Comes, now: Real) {
        if ledger().is_held() {
            self.absorb_runqueue_wait_while_held(account, comes, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn absorb_runqueue_wait_while_held(&self, account: &'static Account, comes: Comes, now: Real) {
        if self.runqueue_wait.experiment.get() != ledger().experiment() {
            // Waits before this experiment pay for nothing in it.
            let waited = self.schedstat.waited().unwrap_or(Nanos::ZERO);
            self.runqueue_wait.waited.set(waited);
            return self.note_caught_up(now);
        }
        if ledger().lag(account, now) >= LEAST
            && let Some((waited, by)) = self.waited_behind(account, comes, now)
        {
            ledger().inherit(account, waited, by.min(ledger().global_delay(now)), now);
        }
        self.occupies(account, now);
    }

    /// For how long the thread waited for its processor behind another one, and L of that one.
    fn waited_behind(&self, account: &Account, comes: Comes, now: Real) -> Option<(Nanos, Nanos)> {
        let last = processors().occupants.last(Processor::current()?)?;
        if ptr::eq(last.account, account) {
            return None;
        }
        let Some(in_all) = self.schedstat.waited() else {
            // Relaxed, as above.
            process().threads.has_untold_waits.store(true, Relaxed);
            return None;
        };
        let waited = in_all - self.runqueue_wait.waited.replace(in_all);
        // Before it was caught up it owed nothing that a wait could pay for.
        let waited = waited.min(now - self.runqueue_wait.caught_up_at.get());
        Some(match last.left {
            None => {
                let stopped = |inside: &Account, since| stopped(inside, since, now);
                (waited, ledger().local_delay_less(last.account, now, stopped))
            }
            Some((_, taken)) if comes == Comes::Preempted => (waited, taken),
            Some((left, taken)) => {
                let ready = now - waited;
                (waited.min((left - Real(ready.0)).max(Nanos::ZERO)), taken)
            }
        })
    }
}

/// For how long the owner of `account`, inside the target since `since`, had no processor until
/// `now`, as its CPU clock tells: but for what [counts](super::preemption) as the target's time.
fn stopped(account: &Account, since: Real, now: Real) -> Nanos {
    let inside = now - since;
    let ran = (inside > STRETCH)
        .then(|| account.thread().and_then(clock::cpu_of_thread))
        .flatten()
        .map_or(inside, |cpu| cpu - account.cpu());
    let stopped = (inside - ran).max(Nanos::ZERO);
    stopped - idle().of(stopped)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::processor::{Occupant, Occupants};
    use super::*;
    use crate::process::tests::Own;
    use crate::schedstat::tests::kernel_tells_waits;
    use crate::target::{Target, target};
    use crate::thread::processor::tests::{allowed, alone, stay_on, work};
    use crate::thread::{
        Blocking, Poll, blocked, enable, parked, participant_at, register, unparked, with,
    };
    use crate::time::{Speedup, Virtual};
    use andweorc_profile::TargetKind;
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    /// How L is told of a thread in a poll.
    type Tells = fn(&mut Poll, Real) -> Nanos;

    /// The thread wakes another task.
    const ACTS: Tells = |_, now| participant_at(now).unwrap().delay_at(now);

    /// Its task parks.
    const PARKS: Tells = |poll, now| poll.end(false, now).taken;

    /// The thread enters the target itself: L grows there from where it is.
    const ENTERS: Tells = |_, now| {
        with(|thread| {
            thread.enter_credited(now);
            let account = thread.account(now).unwrap();
            let taken = ledger().local_delay(account, now);
            thread.exit_credited(now);
            taken
        })
    };

    /// The thread goes on with a task that had taken nothing when it got ready, and pays for that.
    const JOINS: Tells = |_, now| {
        let ready = now.less(ledger().forgiven_delay());
        let next = Poll::begin(task(), ready, None, now);
        let began = next.began();
        // All of D that it did not pay for.
        ledger().global_delay(now) - (ready - began.less(next.local_delay())).max(Nanos::ZERO)
    };

    /// The thread pays, which takes it no time.
    const PAYS: Tells = |_, now| {
        with(|thread| {
            let account = thread.account(now).unwrap();
            thread.absorb_runqueue_wait(account, Comes::Preempted, now);
            ledger().local_delay(account, now)
        })
    };

    fn task() -> &'static Target {
        target(TargetKind::Task, "queued", None, None)
    }

    /// The debt that a thread still has after a poll on processor `mine`, as it is told then, of
    /// what D grew by while another one was inside the target on `other`; both in ms.
    fn owes(mine: usize, other: usize, told: Tells) -> (f64, f64) {
        let task = task();
        Own::run(|own| {
            let _alone = alone();
            let both = Barrier::new(2);
            let speedup = Speedup::new(0.5).unwrap();
            let before = ledger().begin(speedup, clock::now());
            let (owes, grown) = thread::scope(|scope| {
                scope.spawn(|| {
                    own.enter();
                    stay_on(other);
                    register().unwrap();
                    both.wait();
                    with(|thread| thread.enter_credited(clock::now()));
                    work(Nanos::from_millis(60));
                    with(|thread| thread.exit_credited(clock::now()));
                    both.wait();
                });
                let waits = scope.spawn(|| {
                    own.enter();
                    stay_on(mine);
                    register().unwrap();
                    with(|thread| thread.note_caught_up(clock::now()));
                    let mut poll = Poll::begin(task, Virtual(0), None, clock::now());
                    both.wait();
                    work(Nanos::from_millis(60));
                    both.wait();
                    let now = clock::now();
                    let taken = told(&mut poll, now);
                    (ledger().global_delay(now) - taken, ledger().global_delay(now) - before)
                });
                waits.join().unwrap()
            });
            ledger().end(clock::now());
            (owes.as_secs_f64() * 1e3, grown.as_secs_f64() * 1e3)
        })
    }

    #[test]
    fn thread_that_waited_behind_the_target_does_not_pay_again() {
        if !kernel_tells_waits() {
            return;
        }
        let mut processors = allowed();
        let first = processors.next().unwrap();
        for told in [PAYS, ACTS, PARKS, ENTERS, JOINS] {
            let (owed, grown) = owes(first, first, told);
            // More where others preempt the target and a processor was idle in the last baseline.
            assert!(grown > 25.0, "{grown} ms");
            assert!(owed < grown / 2.0, "{owed} of {grown} ms on one processor");
        }
        let Some(second) = processors.next() else { return println!("skipped: one processor") };
        for told in [PAYS, ACTS, PARKS, ENTERS] {
            let (owed, grown) = owes(first, second, told);
            assert!(owed > grown * 0.9, "{owed} of {grown} ms beside the target");
        }
    }

    const US: fn(i64) -> Nanos = Nanos::from_micros;

    /// Runs `f` in an experiment in which everybody owes 100 us and one thread has taken `taken` of
    /// them, on a thread that has taken none and was level 1 ms ago.
    fn behind(taken: Nanos, f: impl FnOnce(&Thread, Occupant) -> Nanos + Send) -> Nanos {
        Own::run(|own| {
            let _alone = alone();
            let before = ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
            let processor = allowed().next().unwrap();
            let took = thread::scope(|scope| {
                let waits = scope.spawn(|| {
                    own.enter();
                    stay_on(processor);
                    register().unwrap();
                    let other = ledger().open(clock::now()).unwrap();
                    ledger().took(other, taken, clock::now());
                    with(|thread| {
                        let now = clock::now();
                        thread.absorb_runqueue_wait(
                            thread.account(now).unwrap(),
                            Comes::Preempted,
                            now,
                        );
                        thread
                            .runqueue_wait
                            .caught_up_at
                            .set(Real(now.0 - Nanos::from_millis(1).0));
                        let target = ledger().open(now).unwrap();
                        ledger().credit(target, US(200));
                        ledger().close(target, now);
                        let took = f(thread, Occupant { account: other, left: None });
                        ledger().close(other, clock::now());
                        took
                    })
                });
                waits.join().unwrap()
            });
            assert!(ledger().end(clock::now()) - before >= US(100));
            took
        })
    }

    /// By how much L of the thread grows when the kernel says that it has waited for so long,
    /// behind `other`.
    fn takes(thread: &Thread, other: Occupant, waited: Option<Nanos>, comes: Comes) -> Nanos {
        let here = Processor::current().unwrap();
        match other.left {
            None => processors().occupants.takes(here, other.account),
            Some((left, taken)) => processors().occupants.leaves(here, other.account, taken, left),
        }
        match waited {
            Some(waited) => thread.schedstat.tells(thread.runqueue_wait.waited.get() + waited),
            None => thread.schedstat.tells_nothing(),
        }
        let now = clock::now();
        let account = thread.account(now).unwrap();
        let before = ledger().local_delay(account, now);
        thread.absorb_runqueue_wait(account, comes, now);
        ledger().local_delay(account, now) - before
    }

    #[test]
    fn thread_waiting_behind_another_goes_on_in_its_virtual_time() {
        let preempted = |taken, waited| {
            behind(taken, |thread, other| takes(thread, other, Some(waited), Comes::Preempted))
        };
        assert_eq!(preempted(US(100), US(500)), US(100), "the other one had paid all");
        assert_eq!(preempted(US(60), US(500)), US(60), "and owes as much as that one");
        assert_eq!(preempted(US(100), US(30)), US(30), "and has not waited for more");
        assert_eq!(preempted(US(0), US(500)), US(0), "the other one had paid nothing");
        assert_eq!(preempted(US(900), US(500)), US(100), "credit of others is none of its own");
    }

    #[test]
    fn woken_thread_waits_only_until_the_other_has_left() {
        let woken = |left_ago: i64, comes| {
            behind(US(100), move |thread, other| {
                let left = Real(clock::now().0 - US(left_ago).0);
                let other = Occupant { left: Some((left, ledger().global_delay(left))), ..other };
                takes(thread, other, Some(US(80)), comes)
            })
        };
        assert_eq!(woken(300, Comes::Woken), US(0), "its processor woke up");
        // The clock goes on meanwhile.
        let part = woken(50, Comes::Woken);
        assert!(part <= US(30), "{part}");
        assert_eq!(woken(300, Comes::Preempted), US(80), "it was ready throughout");
    }

    #[test]
    fn thread_behind_itself_or_a_silent_kernel_takes_nothing() {
        let own = behind(US(100), |thread, other| {
            let account = thread.account(clock::now()).unwrap();
            takes(thread, Occupant { account, ..other }, Some(US(500)), Comes::Preempted)
        });
        assert_eq!(own, US(0));
        let silent = behind(US(100), |thread, other| {
            assert!(!paid_waits_again());
            let took = takes(thread, other, None, Comes::Preempted);
            assert!(paid_waits_again(), "the report says so");
            took
        });
        assert_eq!(silent, US(0));
    }

    #[test]
    fn moved_thread_has_left_its_old_processor() {
        let occupants = Occupants::new();
        let here = Processor::current().unwrap();
        let [one, other] = [0, 1].map(|_| ledger().open(clock::now()).unwrap());
        let left = || occupants.last(here).unwrap().left;
        assert!(occupants.last(here).is_none());
        occupants.takes(here, one);
        assert_eq!(left(), None);
        occupants.was_moved(here, other, US(7), Real(5));
        assert_eq!(left(), None, "another one has it");
        occupants.was_moved(here, one, US(7), Real(5));
        assert_eq!(left(), Some((Real(5), US(7))));
        occupants.was_moved(here, one, US(8), Real(6));
        assert_eq!(left(), Some((Real(5), US(7))), "it had left by then");
        for account in [one, other] {
            ledger().close(account, clock::now());
        }
    }

    #[test]
    fn thread_that_blocks_or_parks_leaves_its_processor() {
        Own::run(|own| {
            let _alone = alone();
            ledger().begin(Speedup::ZERO, clock::now());
            let processor = allowed().next().unwrap();
            let seen = thread::spawn(move || {
                own.enter();
                stay_on(processor);
                enable();
                let account = register().unwrap();
                let has_left = || {
                    let last = processors().occupants.last(Processor::current().unwrap()).unwrap();
                    ptr::eq(last.account, account).then(|| last.left.is_some())
                };
                let runs = || with(|thread| thread.note_caught_up(clock::now()));
                let blocks = || {
                    let wait = Blocking::begin(8).unwrap();
                    let seen = has_left();
                    wait.end_by_time();
                    seen
                };
                let says_so = || blocked(has_left);
                let parks = || {
                    parked(false);
                    let seen = has_left();
                    unparked();
                    seen
                };
                let waits: [&dyn Fn() -> Option<bool>; 3] = [&blocks, &says_so, &parks];
                waits.map(|wait| {
                    (0..100)
                        .map(|_| {
                            runs();
                            let before = has_left();
                            (before, wait())
                        })
                        // Threads of other tests may come in between.
                        .find(|(before, inside)| before.is_some() && inside.is_some())
                })
            });
            let seen = seen.join();
            ledger().end(clock::now());
            assert_eq!(seen.unwrap(), [Some((Some(false), Some(true))); 3]);
        })
    }

    #[test]
    fn d_does_not_grow_while_the_target_has_no_processor() {
        Own::run(|own| {
            ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
            let both = Barrier::new(2);
            let (quick, owes) = thread::scope(|scope| {
                scope.spawn(|| {
                    own.enter();
                    register().unwrap();
                    // More than it is inside for: only what it runs there counts.
                    work(Nanos::from_millis(60));
                    with(|thread| thread.enter_credited(clock::now()));
                    thread::sleep(Duration::from_millis(40));
                    both.wait();
                    both.wait();
                    with(|thread| thread.exit_credited(clock::now()));
                });
                let account = register().unwrap();
                both.wait();
                let now = clock::now();
                let debts =
                    (ledger().lag(account, now), with(|thread| thread.owes_now(account, now)));
                both.wait();
                debts
            });
            ledger().end(clock::now());
            assert!(quick >= Nanos::from_millis(20), "{quick}");
            assert!(owes.0 < quick.0 / 2, "{owes} of {quick}");
        })
    }
}
