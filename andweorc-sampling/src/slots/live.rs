//! A thread that lives, and what takes its samples.

use super::{Asked, Slot, Tally};
use crate::clock;
use crate::perf::PerfError;
use crate::source::{Kind, Source};
use andweorc_profile::time::{Nanos, Real};
use std::sync::atomic::Ordering;

/// A thread of which no sample was taken for so long needs no perf event: a timer, which needs no
/// file descriptor, tells when it is at work again.
const IDLE: Nanos = Nanos::from_millis(1000);

/// A thread that lives.
pub(super) struct Live {
    pub(super) tid: i32,
    /// How many threads were taken up when it was, itself included.
    pub(super) opened: u32,
    pub(super) slot: &'static Slot,
    /// The thread blocks the signal, and is not sampled.
    pub(super) is_deaf: bool,
    pub(super) source: Option<Source>,
    /// The part of its samples that is in the tally.
    counted: u64,
    /// By how much more the kernel took than the handler did, beyond what is in the tally.
    missing: i64,
    /// How many samples it had when it was last seen at work, and when that was.
    at_work: (u64, Real),
}

/// How a thread is sampled from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    NotAsked,
    AsAsked,
    /// For want of a file descriptor.
    ByTimer,
    /// Not at all.
    Deaf,
}

impl Live {
    pub(super) fn new(tid: i32, slot: &'static Slot, opened: u32, is_deaf: bool) -> Live {
        // Relaxed: the slot is this thread's by now.
        let handled = slot.handled.load(Ordering::Relaxed);
        let at_work = (handled, clock::now());
        Live { tid, opened, slot, is_deaf, source: None, counted: handled, missing: 0, at_work }
    }

    /// Samples it.
    pub(super) fn begin(
        &mut self,
        Asked { event, kind, period }: Asked,
    ) -> Result<Begun, PerfError> {
        if self.is_deaf {
            return Ok(Begun::Deaf);
        }
        self.at_work.1 = clock::now();
        let timer = |tid| Source::timer(tid, period).map_err(PerfError::new);
        let (source, begun) = match kind {
            Kind::Perf(_) => match Source::perf(self.tid, event, period) {
                Err(error) if error.lacks_files() => (timer(self.tid)?, Begun::ByTimer),
                source => (source?, Begun::AsAsked),
            },
            Kind::Timer => (timer(self.tid)?, Begun::AsAsked),
        };
        self.takes(source, period);
        Ok(begun)
    }

    /// Is sampled by this source from now on.
    fn takes(&mut self, source: Source, period: Nanos) {
        // A counter that is closed by now may have had this number.
        source.file().into_iter().for_each(|file| self.slot.counters.forget(file));
        self.slot.stands_for(&source, period);
        let cpu = clock::cpu_of_thread(self.tid).unwrap_or_default();
        // Relaxed: a first sample that is somewhat wrong harms nothing.
        self.slot.cpu.store(cpu.0, Ordering::Relaxed);
        self.source = Some(source);
    }

    /// Has a timer if it is idle, and a perf event if it is at work and there is one to be had.
    /// `None` if nothing had to be changed.
    pub(super) fn fit(&mut self, asked: Asked, now: Real, tally: &mut Tally) -> Option<()> {
        let is_perf = self.source.as_ref()?.is_perf();
        // Relaxed: a count.
        let handled = self.slot.handled.load(Ordering::Relaxed);
        let is_at_work = handled != self.at_work.0;
        if is_at_work {
            self.at_work = (handled, now);
        }
        let source = if is_perf && now - self.at_work.1 > IDLE {
            Source::timer(self.tid, asked.period).ok()?
        } else if !is_perf && is_at_work {
            Source::perf(self.tid, asked.event, asked.period).ok()?
        } else {
            return None;
        };
        self.end(tally);
        self.takes(source, asked.period);
        Some(())
    }

    pub(super) fn end(&mut self, tally: &mut Tally) {
        self.source.iter().for_each(Source::stop);
        self.count(tally);
        tally.lost += u64::try_from(self.missing).unwrap_or(0);
        self.missing = 0;
        self.source = None;
    }

    pub(super) fn count(&mut self, tally: &mut Tally) {
        // Relaxed: counts. Read before the ring: what the handler has seen is in that by then.
        let all = self.slot.handled.load(Ordering::Relaxed);
        let handled = all - std::mem::replace(&mut self.counted, all);
        tally.lost += self.slot.dropped.swap(0, Ordering::Relaxed);
        if let Some((taken, throttled)) = self.source.as_mut().and_then(Source::taken) {
            self.missing += taken.cast_signed() - handled.cast_signed();
            tally.throttled += throttled;
        }
        // One may be on its way to the handler.
        let lost = (self.missing - 1).max(0);
        self.missing -= lost;
        tally.lost += lost.cast_unsigned();
    }
}
