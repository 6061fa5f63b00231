//! How a thread is credited while a sampled target is that of the running experiment: by samples,
//! or by its expected share.
//!
//! A sample is a lump as wide as the period, and it may come when the poll that it belongs to is
//! long over. What a thread does between two samples is known beforehand, though, from the targets
//! that it is in: of the time in polls of one kind of task, or in one span, a certain *share* is
//! inside the line or function, and all samples of the run tell how large it is. Polls in which the
//! task does different things are told apart, as far as its turns (`thread/poll_phase.rs`) do. So
//! where visits of that *context* are shorter than a few periods, or all alike, the thread is
//! credited with the share of each visit, as it ends and at each sample in it ([`Credit::Share`]).
//! Where they are longer, samples are fine enough ([`Credit::Samples`]).

pub(crate) use super::contexts::PHASES;
use super::contexts::TARGETS;
use crate::process::asked::Switches;
use crate::process::{contexts, process};
use crate::sampler::FINE;
use crate::time::Nanos;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Where in a context the number of the poll's kind begins: below it is the target's id.
const PHASE: u32 = 20;

/// Nothing of what [`in_phase`] says is below this.
pub(crate) const IN_PHASE: u32 = 1 << PHASE;

const _: () = assert!(TARGETS <= 1 << PHASE);

/// How a thread in a context is credited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credit {
    /// By samples that find it inside the target.
    Samples,
    /// By this part of its time, ppm.
    Share(u32),
}

/// The number of the experiment whose target is sampled; 0 while there is none. Everything in the
/// hot paths asks this first.
#[inline]
pub(crate) fn aim() -> u32 {
    // Relaxed: a thread that sees the change later is credited later. The shares are stored before,
    // and each stands for itself.
    process().asked.aim.load(Ordering::Relaxed)
}

/// Whether shares are learned at the moment, from threads that are sampled.
#[inline]
pub(crate) fn learns() -> bool {
    process().asked.is_any_on(Switches::LEARNS)
}

/// Whether they ever were, so that a thread may be on a timeline.
#[inline]
pub(crate) fn has_learned() -> bool {
    process().asked.is_any_on(Switches::HAS_LEARNED)
}

/// Sets whether shares are learned from now on.
pub(super) fn set_learns(learns: bool) {
    if learns {
        process().asked.switch_on(Switches::HAS_LEARNED);
    }
    process().asked.switch(Switches::LEARNS, learns);
}

/// Part of a poll's context beside the target's id, if the poll is of the kind `number`.
pub(crate) fn in_phase(number: u32) -> u32 {
    number.min(PHASES - 1) << PHASE
}

/// The context of the same target where the poll is of this kind.
pub(crate) fn of_phase(context: u32, phase: u32) -> u32 {
    context & ((1 << PHASE) - 1) | phase
}

/// The id of the target that a context is in.
pub(crate) fn target_of(context: u32) -> u32 {
    context & ((1 << PHASE) - 1)
}

/// The place of a context that is no step of a timeline, if it has one.
fn place(context: u32) -> Option<usize> {
    let (phase, target) = (context >> PHASE, context as usize & ((1 << PHASE) - 1));
    (phase < PHASES && target < TARGETS).then_some(phase as usize * TARGETS + target)
}

/// How a thread in `context` is credited. Async-signal-safe.
pub(crate) fn credit(context: u32) -> Credit {
    let share = place(context).map_or(0, |place| contexts().shares[place].load(Ordering::Relaxed));
    share.checked_sub(1).map_or(Credit::Samples, |share| Credit::Share(share as u32))
}

/// A visit of `context` begins, while shares are learned.
pub(crate) fn visited(context: u32) {
    if let Some(place) = place(context) {
        // Relaxed: a count.
        contexts().visits[place].fetch_add(1, Ordering::Relaxed);
    }
}

/// Visits of `context` while shares were learned.
pub(super) fn visits(context: u32) -> u64 {
    place(context).map_or(0, |place| contexts().visits[place].load(Ordering::Relaxed))
}

/// Forgets the visits.
pub(super) fn forget_visits() {
    clear(contexts().visits);
}

fn clear(places: &[AtomicU64]) {
    // Only read where nothing was written, so that there is no memory for it.
    let written = |place: &&AtomicU64| place.load(Ordering::Relaxed) != 0;
    places.iter().filter(written).for_each(|place| place.store(0, Ordering::Relaxed));
}

/// Begins an experiment on a sampled target, with these shares of contexts; the others are credited
/// by samples.
pub(crate) fn begin(shares: impl Iterator<Item = (u32, u32)>) {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let table = contexts().shares;
    clear(table);
    for (context, share) in shares {
        if let Some(place) = place(context) {
            table[place].store(u64::from(share) + 1, Ordering::Relaxed);
        }
    }
    // First: who sees the aim sees that there is one. Relaxed: only that the number differs from
    // the one before matters.
    process().asked.switch_on(Switches::AIMS);
    process().asked.aim.store(NEXT.fetch_add(1, Ordering::Relaxed).max(1), Ordering::SeqCst);
}

/// Ends it.
pub(crate) fn end() {
    process().asked.aim.store(0, Ordering::SeqCst);
    process().asked.switch_off(Switches::AIMS);
}

/// Evidence of the samples on a context and a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Samples in the context.
    pub(super) samples: u64,
    /// Of these, inside the target.
    pub(super) inside: u64,
    /// The time that the samples stand for.
    pub(super) time: Nanos,
    /// Visits of the context meanwhile.
    pub(super) visits: u64,
}

impl Seen {
    /// Fewer samples than this are no share.
    const LEAST: u64 = 20;

    /// Visits that last this long are long enough for samples.
    const LONG: Nanos = Nanos(4 * FINE.0);

    /// Ppm. Nearer than this to none or all, the visits are alike.
    const ALIKE: u32 = 80_000;

    /// Whether the samples are enough for a share.
    pub(super) fn is_known(&self) -> bool {
        self.samples >= Seen::LEAST
    }

    /// The share of the context's time, ppm, where it is to be credited so.
    pub(super) fn share(&self) -> Option<u32> {
        if !self.is_known() {
            return None;
        }
        let share = (self.inside * 1_000_000 / self.samples) as u32;
        let alike = !(Seen::ALIKE..=1_000_000 - Seen::ALIKE).contains(&share);
        let visits = i64::try_from(self.visits).unwrap_or(i64::MAX);
        let short = self.time.0 < Seen::LONG.0.saturating_mul(visits);
        (alike || short).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::site_timeline;

    #[test]
    fn polls_of_each_kind_have_a_share_of_their_own() {
        let places: Vec<_> = (0..PHASES).map(|phase| place(7 | in_phase(phase))).collect();
        assert!(places.iter().enumerate().all(|(i, it)| it.is_some() && !places[..i].contains(it)));
        assert_eq!(place(TARGETS as u32), None, "there are too many targets");
        assert_eq!(place(site_timeline::IS_STEP | 7), None);
    }

    #[test]
    fn short_visits_and_such_that_are_alike_have_a_share() {
        let seen = |inside, visits| {
            let time = Nanos::from_millis(100);
            Seen { samples: 100, inside, time, visits }.share()
        };
        assert_eq!(seen(40, 1000), Some(400_000), "short");
        assert_eq!(seen(40, 10), None, "long, and half of it inside");
        assert_eq!(seen(97, 10), Some(970_000), "long, and all of it inside");
        assert_eq!(seen(0, 10), Some(0));
        let hardly = Seen { samples: 10, inside: 4, time: Nanos::from_millis(10), visits: 1000 };
        assert_eq!(hardly.share(), None, "hardly known");
    }
}
