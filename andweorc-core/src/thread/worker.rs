//! When a worker is idle, as its hooks tell, and what it notices when it looks for events.

use super::wakeup_latency::last_wake;
use super::{THREAD, Thread, ledger, with};
use crate::clock;
use crate::defer;
use crate::engine::{Rested, ThreadKind, ThreadState};
use crate::late_events::{Arrival, DriverPoll, WaitHistory};
use crate::process::process;
use crate::time::{Nanos, Real};

/// A worker that waited in the driver for as long has slept, most likely.
const SLEPT: Nanos = Nanos::from_micros(40);

impl Thread {
    /// Whether it has slept that waits in the driver since `since`, until `now`, or until it
    /// noticed something there before.
    fn has_slept(&self, since: Real, now: Real) -> bool {
        // Between experiments nothing is asked of it that would have to be known so well.
        let told = ledger().is_held().then(|| self.sleeps.has_slept()).flatten();
        told.unwrap_or(now - since > SLEPT)
    }

    /// Returns the look of the thread, which notices something in the driver.
    fn notices(&self, now: Real) -> DriverPoll {
        let idle = self.parked_since();
        let has_slept = || idle.is_some_and(|since| self.has_slept(since, now));
        process().driver_polls.notice(&self.look, now, idle, has_slept, &process().readiness)
    }
}

/// For the park hook of a worker: it is idle from now on. `watches` says whether it is the one that
/// waits in the driver.
pub fn parked(watches: bool) {
    with(|thread| {
        let now = clock::now();
        thread.kind.set(ThreadKind::Worker);
        thread.set_state(ThreadState::parked(watches));
        thread.idle_since.set(Some(now));
        thread.parked.set(now);
        thread.begin_sleep(watches);
        thread.leave_processor();
    });
    defer::worker_parked();
}

/// Since when the calling thread is idle, between the two hooks of a worker.
pub fn parked_since() -> Option<Real> {
    THREAD.with(Thread::parked_since)
}

/// Whether the calling thread is a worker with something to do: what it wakes between two polls it
/// has found in the driver, in passing, or the runtime has put off. One that has never parked, or
/// has no hooks, is known by the task that it polled last.
#[inline]
pub fn is_busy_worker() -> bool {
    THREAD.with(|thread| {
        let works = thread.kind.get() == ThreadKind::Worker || thread.idle_since.get().is_some();
        works && !thread.state.get().is_idle()
    })
}

/// For the unpark hook of a worker: it was idle until now.
pub fn unparked() {
    with(|thread| {
        let now = clock::now();
        let (state, parked) = (thread.state.get(), thread.parked_since());
        if let Some(since) = parked {
            thread.set_state(state.unparked());
            if state == ThreadState::Watching {
                let slept = !thread.look.get().is_same(parked, now) && thread.has_slept(since, now);
                process().driver_polls.record_wait(since, now, slept);
            }
            defer::worker_unparked(since, now);
        }
        if let Some(since) = thread.idle_since.take()
            && let Some(account) = thread.account(now)
        {
            let noticed = thread.look.get().is_of(parked);
            thread.resume(account, Rested::of_worker(since, noticed, last_wake(), now), now);
        }
    });
}

/// When that came from the world outside which the calling thread noticed at `now`, and which woke
/// a task that waits since `waits`, as far as that is known; `typical` are the waits of its kind:
/// `now`, unless this is a worker that had not looked for a while. Between experiments it makes no
/// difference, and is `now`.
#[inline]
pub fn came(now: Real, waits: Option<Real>, typical: &WaitHistory) -> Real {
    if ledger().is_held() { came_before(now, waits, typical) } else { now }
}

#[cold]
#[inline(never)]
fn came_before(now: Real, waits: Option<Real>, typical: &WaitHistory) -> Real {
    let came = with(|thread| {
        if thread.kind.get() != ThreadKind::Worker {
            return Arrival { at: now, at_once: true };
        }
        let idle = thread.parked_since();
        let mut look = thread.notices(now);
        let came = look.arrival(waits, typical, &process().readiness);
        let late = idle.filter(|_| came.at_once).map(|since| thread.came_late(since, came.at));
        let waited = late.map_or(Nanos::ZERO, |late| late.waited);
        look.set_waited(waited);
        thread.look.set(look);
        Arrival { at: came.at - waited, ..came }
    });
    if let Some(waits) = waits {
        typical.count(came.at - waits);
    }
    came.at
}

/// A worker that sleeps in the driver needs so long on average to get going when something comes.
pub fn wakes_in(mean: Nanos) {
    process().driver_polls.set_wakeup_latency(mean);
}

/// The calling thread has found something in the driver that is no event of the world outside: what
/// else it finds there now has come by now.
pub fn noticed() {
    let now = clock::now();
    with(|thread| thread.notices(now));
}

/// For a thread of the blocking pool, which begins what somebody spawned whose L was `by`: it is no
/// worker now.
pub fn in_pool(by: Nanos) {
    with(|thread| {
        let now = clock::now();
        let kind = thread.kind.replace(ThreadKind::Other);
        let Some(account) = thread.account(now) else { return };
        let idle = thread.idle_since.take();
        if let Some(rested) = Rested::in_pool(kind, idle, by, now) {
            thread.resume(account, rested, now);
        }
    });
}

/// A worker was handed a task that must not run yet, and has given it back: it is idle until it has
/// something else to run.
pub fn handed_back() {
    with(|thread| {
        let now = clock::now();
        if let Some(since) = thread.idle_since.replace(Some(now)) {
            // It has looked into the driver since, or another one is there.
            if thread.kind.get() == ThreadKind::Worker {
                process().driver_polls.record_wait(since, now, false);
            }
            if let Some(account) = thread.account(now) {
                thread.resume(account, Rested::until_found(since, now), now);
            }
        }
    });
    defer::release_due();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::Own;
    use crate::thread::context_switches::ContextSwitches;
    use crate::time::Speedup;
    use std::time::Duration;

    /// The thread parks just as the one goes that watched the driver, and so seems not to watch it.
    #[test]
    fn worker_finding_events_behind_the_watcher_has_not_slept() {
        let finds_at_once = || {
            std::thread::sleep(Duration::from_millis(1));
            parked(false);
            let now = clock::now();
            let mut look = with(|thread| thread.notices(now));
            unparked();
            look.arrival(None, &WaitHistory::default(), &process().readiness).at_once
        };
        Own::run(|own| {
            ledger().begin(Speedup::ZERO, clock::now());
            let worker = std::thread::spawn(move || {
                own.enter();
                std::thread::sleep(Duration::from_millis(1));
                let tells = ContextSwitches::new().has_slept().is_some();
                // Now and then it waits for a page in between.
                (tells, (0..20).all(|_| finds_at_once()))
            });
            let (tells, always) = worker.join().unwrap();
            ledger().end(clock::now());
            if !tells {
                return println!("skipped: this kernel does not count how often a thread sleeps");
            }
            assert!(!always);
        })
    }

    #[test]
    fn event_found_by_a_busy_worker_came_before_its_look() {
        std::thread::spawn(|| {
            let (now, typical) = (clock::now(), WaitHistory::default());
            assert_eq!(came_before(now, None, &typical), now, "no worker");
            parked(true);
            std::thread::sleep(std::time::Duration::from_millis(1));
            unparked();
            let waits = clock::now();
            std::thread::sleep(std::time::Duration::from_millis(1));
            let now = clock::now();
            let came = came_before(now, Some(waits), &typical);
            assert!(waits <= came && came < now, "{waits:?} {came:?} {now:?}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn worker_woken_late_dates_events_back() {
        std::thread::spawn(|| {
            let (late, typical) = (Nanos::from_micros(300), WaitHistory::default());
            parked(true);
            std::thread::sleep(std::time::Duration::from_millis(1));
            with(|thread| {
                thread.queued.set_late(thread.parked.get(), late, Nanos::ZERO);
            });
            let now = clock::now();
            assert_eq!(came_before(now, None, &typical), now - late);
            unparked();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn every_wait_is_counted_as_what_it_is_taken_to_be() {
        let draw = |typical: &WaitHistory, ms| typical.draw(Nanos::ZERO, Nanos::from_millis(ms));
        std::thread::spawn(move || {
            let (now, typical) = (clock::now(), WaitHistory::default());
            let waits = Real(now.0 - Nanos::from_millis(7).0);
            assert_eq!(came_before(now, Some(waits), &typical), now, "no worker");
            assert_eq!(draw(&typical, 100), Nanos::from_millis(7));

            // A busy worker: when it came is a guess.
            parked(true);
            unparked();
            let (now, typical) = (clock::now(), WaitHistory::default());
            let waits = Real(now.0 - Nanos::from_millis(7).0);
            let came = came_before(now, Some(waits), &typical);
            assert!(waits < came && came <= now, "{waits:?} {came:?} {now:?}");
            assert_eq!(draw(&typical, 100), came - waits);
        })
        .join()
        .unwrap();
    }
}
