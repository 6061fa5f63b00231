//! The processor that a thread runs on, times that are counted for each, and who had it last.

use crate::cache_padded::CachePadded;
use crate::ledger::Account;
use crate::time::{Nanos, Real};
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};

/// Processors beyond these are not told apart from unknown ones.
const PROCESSORS: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Processor(usize);

impl Processor {
    /// That which the calling thread runs on.
    pub(super) fn current() -> Option<Processor> {
        // SAFETY: takes nothing, and returns a plain number.
        let processor = unsafe { libc::sched_getcpu() };
        usize::try_from(processor).ok().filter(|it| *it < PROCESSORS).map(Processor)
    }
}

/// A time for each processor, counted by the threads that run there.
pub(super) struct Times([AtomicI64; PROCESSORS]);

impl Times {
    pub(super) const fn new() -> Times {
        Times([const { AtomicI64::new(0) }; PROCESSORS])
    }

    pub(super) fn add(&self, processor: Processor, time: Nanos) {
        // Relaxed: who had to wait until this thread left the processor reads it by way of the
        // kernel, which let it run then.
        self.0[processor.0].fetch_add(time.0, Relaxed);
    }

    /// Since the program began.
    pub(super) fn of(&self, processor: Processor) -> Nanos {
        Nanos(self.0[processor.0].load(Relaxed))
    }
}

/// The last time on each processor in which something grew there, with short breaks.
pub(super) struct Lately([CachePadded<[AtomicI64; 3]>; PROCESSORS]);

/// Breaks up to this are part of it.
const BREAK: Nanos = Nanos::from_micros(50);

impl Lately {
    pub(super) const fn new() -> Lately {
        Lately([const { CachePadded::new([const { AtomicI64::new(0) }; 3]) }; PROCESSORS])
    }

    /// Something grew there by `grown`, from `from` until `until`.
    // Relaxed: see `Times`. Who is stopped in between, and has another thread of the target write
    // there, makes one guess wrong.
    pub(super) fn add(&self, processor: Processor, grown: Nanos, from: Real, until: Real) {
        let [began, ended, sum] = &*self.0[processor.0];
        if from - Real(ended.load(Relaxed)) > BREAK {
            began.store(from.0, Relaxed);
            sum.store(0, Relaxed);
        }
        ended.store(until.0, Relaxed);
        sum.fetch_add(grown.0, Relaxed);
    }

    /// By how much it grew there from `from` until `until`, as if it had grown steadily.
    pub(super) fn between(&self, processor: Processor, from: Real, until: Real) -> Nanos {
        let [began, ended, sum] = self.0[processor.0].each_ref().map(|it| it.load(Relaxed));
        let common = until.0.min(ended) - from.0.max(began);
        let part = i128::from(common.max(0)) * i128::from(sum) / i128::from((ended - began).max(1));
        Nanos(i64::try_from(part).unwrap_or(0))
    }
}

/// Which of the program's threads was seen last on each processor.
///
/// Relaxed, all: a thread that had to wait until another one left the processor reads what that one
/// wrote by way of the kernel, which let it run then. A read while somebody writes is a wrong
/// guess, once.
pub(super) struct Occupants([CachePadded<Occupied>; PROCESSORS]);

struct Occupied {
    by: AtomicPtr<Account>,
    /// When it left, or [`Real::NEVER`] while it has the processor, or was made to give it away.
    left: AtomicI64,
    /// Its L as it left.
    taken: AtomicI64,
}

/// A thread that had a processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occupant {
    pub(super) account: &'static Account,
    /// When it left of its own accord, and its L then. `None` if it has not.
    pub(super) left: Option<(Real, Nanos)>,
}

impl Occupants {
    pub(super) const fn new() -> Occupants {
        Occupants(
            [const {
                CachePadded::new(Occupied {
                    by: AtomicPtr::new(ptr::null_mut()),
                    left: AtomicI64::new(0),
                    taken: AtomicI64::new(0),
                })
            }; PROCESSORS],
        )
    }

    /// This thread has the processor.
    pub(super) fn takes(&self, processor: Processor, account: &'static Account) {
        let occupied = &*self.0[processor.0];
        occupied.left.store(Real::NEVER.0, Relaxed);
        occupied.by.store(ptr::from_ref(account).cast_mut(), Relaxed);
    }

    /// This thread, whose L is `taken`, gives the processor up.
    pub(super) fn leaves(
        &self,
        processor: Processor,
        account: &'static Account,
        taken: Nanos,
        now: Real,
    ) {
        let occupied = &*self.0[processor.0];
        occupied.taken.store(taken.0, Relaxed);
        occupied.by.store(ptr::from_ref(account).cast_mut(), Relaxed);
        occupied.left.store(now.0, Relaxed);
    }

    /// This thread was moved to another processor: it has left this one, if it is the last known
    /// here.
    pub(super) fn was_moved(
        &self,
        processor: Processor,
        account: &'static Account,
        taken: Nanos,
        now: Real,
    ) {
        let last = self.last(processor);
        if last.is_some_and(|last| ptr::eq(last.account, account) && last.left.is_none()) {
            self.leaves(processor, account, taken, now);
        }
    }

    /// The last thread that was seen there.
    pub(super) fn last(&self, processor: Processor) -> Option<Occupant> {
        let occupied = &*self.0[processor.0];
        // SAFETY: nothing else is stored there than null and references that live forever.
        let account = unsafe { occupied.by.load(Relaxed).as_ref() }?;
        let left = Real(occupied.left.load(Relaxed));
        let left = (left != Real::NEVER).then(|| (left, Nanos(occupied.taken.load(Relaxed))));
        Some(Occupant { account, left })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::clock;
    use crate::sync::{Mutex, MutexGuard};
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    use std::sync::LazyLock;

    /// The numbers of those that the calling thread may run on.
    pub(in crate::thread) fn allowed() -> impl Iterator<Item = usize> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        (0..CpuSet::count()).filter(move |it| allowed.is_set(*it).unwrap())
    }

    /// Waits until no other test wants a processor for itself.
    pub(in crate::thread) fn alone() -> MutexGuard<'static, ()> {
        static ALONE: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
        ALONE.lock()
    }

    /// Puts the calling thread on one.
    pub(in crate::thread) fn stay_on(processor: usize) {
        let mut only = CpuSet::new();
        only.set(processor).unwrap();
        sched_setaffinity(Pid::from_raw(0), &only).unwrap();
    }

    /// Works until the calling thread has run for so long.
    pub(in crate::thread) fn work(time: Nanos) {
        let began = clock::thread_cpu();
        while clock::thread_cpu() - began < time {}
    }

    #[test]
    fn processor_growth_is_prorated_over_its_time() {
        static LATELY: Lately = Lately::new();
        let here = Processor(3);
        let us = |us: i64| Real(us * 1000);
        let between = |from, until| LATELY.between(here, us(from), us(until)).0;
        assert_eq!(between(0, 100), 0, "nothing yet");
        LATELY.add(here, Nanos(50_000), us(1000), us(1100));
        assert_eq!(
            [between(1000, 1100), between(1050, 2000), between(0, 1020)],
            [50_000, 25_000, 10_000]
        );
        assert_eq!([between(0, 1000), between(1100, 1200), between(1200, 1000)], [0; 3]);
        // After a short break it goes on, after a long one it is another.
        LATELY.add(here, Nanos(25_000), us(1150), us(1200));
        assert_eq!(between(0, 2000), 75_000);
        LATELY.add(here, Nanos(7_000), us(1300), us(1310));
        assert_eq!(between(0, 2000), 7_000);
        assert_eq!(LATELY.between(Processor(4), us(0), us(2000)).0, 0, "another processor");
    }
}
