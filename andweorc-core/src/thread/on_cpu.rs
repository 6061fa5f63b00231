//! For how long a thread really ran, without asking the kernel each time.
//!
//! The CPU clock is a system call of more than a microsecond, and a target may be entered some
//! hundred thousand times a second: in experiments alone, so that it would seem to be slower than
//! it is. What is asked here is never what time it is, only how long the thread ran in one
//! *stretch*, from one look to the next. A stretch that is shorter than a preemption is taken to
//! have run throughout; the CPU clock is read after longer ones, and once in a while. What was said
//! too much by then is taken off what is said next, so that in the long run the sum is the CPU
//! time.
//!
//! Between stretches, outside of what is timed, a thread may well sleep, and briefly: so the CPU
//! clock is read at the end of a *gap* too, if that was long enough to sleep and to be woken.
//!
//! What andweorc's own threads took of the processor meanwhile counts as time in which the thread
//! ran ([`profiler_overhead`](super::profiler_overhead)), and part of what others did
//! ([`preemption`](super::preemption)).

use super::preemption::{Preemption, idle};
use super::profiler_overhead;
use crate::clock;
use crate::schedstat::Schedstat;
use crate::time::{Nanos, Real};
use std::cell::Cell;

/// A stretch that is no longer ran throughout. The scheduler's slices, and so preemptions, are of
/// milliseconds.
const STRETCH: Nanos = Nanos::from_micros(50);

/// And so did a gap: no thread falls asleep and is woken within this.
const GAP: Nanos = Nanos::from_micros(5);

/// After this the CPU clock is read, however short stretches and gaps are.
const SERVES: Nanos = Nanos::from_millis(1);

/// Running time of the calling thread, as far as it is known. Plain cells without a destructor: a
/// signal handler may use them that interrupted nobody who does.
pub(super) struct OnCpu {
    /// The end of the last stretch or gap.
    at: Cell<Real>,
    /// When the CPU clock was last read, and what it said.
    read: Cell<(Real, Nanos)>,
    /// How long the thread is said to have run since, up to `at`.
    said: Cell<Nanos>,
    /// Running time that was said too much.
    over: Cell<Nanos>,
    /// Processor time that andweorc's own threads took from the thread.
    taken: profiler_overhead::From,
    /// Processor time that others took from the thread, inside the target.
    preempted: Preemption,
}

impl OnCpu {
    pub(super) const fn new() -> OnCpu {
        OnCpu {
            at: Cell::new(Real(0)),
            read: Cell::new((Real(0), Nanos::ZERO)),
            said: Cell::new(Nanos::ZERO),
            over: Cell::new(Nanos::ZERO),
            taken: profiler_overhead::From::new(),
            preempted: Preemption::new(),
        }
    }

    /// Both clocks: the real one after the other, whose system call is nobody's time. With its
    /// `schedstat`, of a thread that was inside.
    #[cold]
    fn clocks(&self, schedstat: Option<&Schedstat>) -> (Real, Nanos) {
        let cpu = clock::thread_cpu() + self.taken.in_all();
        if let Some(schedstat) = schedstat {
            let (at, before) = self.read.get();
            let lost = (clock::now() - at) - (cpu + self.preempted.in_all() - before);
            self.preempted.inside(lost, idle(), || schedstat.waited());
        }
        (clock::now(), cpu + self.preempted.in_all())
    }

    /// A stretch begins at `now`, after a gap.
    #[inline]
    pub(super) fn begin(&self, now: Real) {
        self.begin_by(now, || self.clocks(None));
    }

    /// The CPU clock at the end of the last stretch or gap, as far as it is known without asking.
    pub(super) fn cpu(&self) -> Nanos {
        let (_, read) = self.read.get();
        let added = self.taken.known() + self.preempted.in_all();
        read + self.said.get() - self.over.get() - added
    }

    /// A stretch ends at `now`, and the next one begins. Returns how long the thread ran in it.
    #[inline]
    pub(super) fn end(&self, now: Real, schedstat: &Schedstat) -> Nanos {
        self.end_by(now, || self.clocks(Some(schedstat)))
    }

    /// A stretch ends at `now` of which nobody asks how long the thread ran. False if that is not
    /// known without the CPU clock: then what follows is a gap, up to the next
    /// [`begin`](OnCpu::begin).
    #[inline]
    pub(super) fn pass(&self, now: Real) -> bool {
        self.passed(now, STRETCH).is_some()
    }

    /// The end of the last stretch or gap.
    pub(super) fn at(&self) -> Real {
        self.at.get()
    }

    #[inline]
    fn begin_by(&self, now: Real, clocks: impl FnOnce() -> (Real, Nanos)) {
        if self.passed(now, GAP).is_none() {
            // How long it ran in the gap is not known; less than nothing it was not.
            let ran = self.read(clocks);
            self.owe(Nanos::ZERO - ran);
        }
    }

    #[inline]
    fn end_by(&self, now: Real, clocks: impl FnOnce() -> (Real, Nanos)) -> Nanos {
        let ran = self.passed(now, STRETCH).unwrap_or_else(|| self.read(clocks));
        let over = self.over.get();
        if over == Nanos::ZERO && ran >= Nanos::ZERO {
            return ran;
        }
        self.over.set(Nanos::ZERO);
        self.owe(over - ran);
        (ran - over).max(Nanos::ZERO)
    }

    /// Goes on to `now`. Returns how long that took, unless the CPU clock has to be read for it:
    /// since it took longer than `most`.
    #[inline]
    fn passed(&self, now: Real, most: Nanos) -> Option<Nanos> {
        let passed = (now - self.at.get()).max(Nanos::ZERO);
        if passed > most || now - self.read.get().0 > SERVES {
            return None;
        }
        self.at.set(self.at.get() + passed);
        self.said.set(self.said.get() + passed);
        Some(passed)
    }

    /// Reads the CPU clock. Returns how long the thread ran, beyond what was said before: less than
    /// nothing if that was too much.
    #[cold]
    fn read(&self, clocks: impl FnOnce() -> (Real, Nanos)) -> Nanos {
        let (now, cpu) = clocks();
        let (_, before) = self.read.replace((now, cpu));
        self.at.set(now);
        (cpu - before) - self.said.replace(Nanos::ZERO)
    }

    /// Takes note of what was said too much, if it is more than nothing.
    fn owe(&self, too_much: Nanos) {
        // Where the clocks themselves were set or stopped, that is soon forgotten.
        self.over.set((self.over.get() + too_much.max(Nanos::ZERO)).min(SERVES));
    }
}

#[cfg(test)]
mod tests;
