//! Where a plain thread is, outside of all spans: so far on its way from the last thing that it
//! did.
//!
//! Such a thread has no context of which a target could have a share, but it has a timeline. What
//! it does after it came out of a certain lock, woke whoever waits at a certain barrier, or hit a
//! certain point, is most often the same each time. So where it last acted, its *site*, and how
//! long it has run since, say as much as the name of a span would, and more: each [`STEP`] of the
//! way has a share of its own.
//!
//! A thread has a few sites, which are its own: two threads that meet at one barrier do different
//! things afterwards.

use crate::sampler::target_fraction::{Credit, IN_PHASE, PHASES, Seen};
use crate::time::{Nanos, Speedup};
use std::array;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The steps of a timeline. The last is all that comes later.
pub(super) const STEPS: usize = 32;

/// How long a step is, but for the last.
const STEP: Nanos = Nanos::from_micros(64);

/// Sites of a thread. What comes after others has no timeline.
const SITES: usize = 16;

/// The share of a step that is credited by samples.
const BY_SAMPLES: u32 = u32::MAX;

/// Set in the contexts that are steps of a timeline; the others are those of
/// [`target_fraction`](super::target_fraction).
pub(super) const IS_STEP: u32 = 1 << 31;

const _: () = assert!(IS_STEP / IN_PHASE >= PHASES, "a context of a target is none of a step");
const _: () = assert!(STEPS.is_power_of_two() && SITES.is_power_of_two());

/// SiteTimeline of a thread: what it does after it acted at one site.
#[derive(Debug)]
pub(crate) struct SiteTimeline {
    /// Address of what the thread acts on; 0 for none yet.
    site: AtomicUsize,
    /// How often it did while samples are taken.
    visits: AtomicU64,
    /// The context that its first step is.
    first: AtomicU32,
    /// Of each step the part that is inside the target, ppm, or [`BY_SAMPLES`].
    shares: [AtomicU32; STEPS],
}

/// The timelines of a thread.
#[derive(Debug)]
pub(crate) struct SiteTimelines([SiteTimeline; SITES]);

impl SiteTimeline {
    fn new() -> SiteTimeline {
        SiteTimeline {
            site: AtomicUsize::new(0),
            visits: AtomicU64::new(0),
            first: AtomicU32::new(IS_STEP),
            shares: [const { AtomicU32::new(BY_SAMPLES) }; STEPS],
        }
    }

    /// The context of a thread that has come so far. Async-signal-safe, as all that follows here.
    pub(crate) fn context(&self, far: Nanos) -> u32 {
        self.first.load(Ordering::Relaxed) + step(far) as u32
    }

    /// How a thread that has come so far is credited.
    pub(crate) fn credit(&self, far: Nanos) -> Credit {
        match self.shares[step(far)].load(Ordering::Relaxed) {
            BY_SAMPLES => Credit::Samples,
            share => Credit::Share(share),
        }
    }

    /// How much of the way from `from` to `to` is inside the target, by the shares of its steps.
    pub(crate) fn inside(&self, from: Nanos, to: Nanos) -> Nanos {
        let mut inside = Nanos::ZERO;
        for step in step(from)..=step(to) {
            let share = self.shares[step].load(Ordering::Relaxed);
            if share != BY_SAMPLES {
                let begin = Nanos(STEP.0 * step as i64);
                let way = to.min(begin + STEP) - from.max(begin);
                inside += Speedup::from_ppm(share).of(way.max(Nanos::ZERO));
            }
        }
        inside
    }

    /// Sets the shares.
    #[cfg(test)]
    pub(crate) fn set(&self, share: impl Fn(usize) -> u32) {
        self.shares.iter().enumerate().for_each(|(i, it)| it.store(share(i), Ordering::Relaxed));
    }

    /// Which of all timelines it is.
    pub(super) fn id(&self) -> u32 {
        self.first.load(Ordering::Relaxed)
    }

    /// Sets the shares of an experiment by what was seen of each step.
    pub(super) fn learn(&self, seen: Option<&Steps>) {
        let visits = self.visits.load(Ordering::Relaxed);
        for (step, share) in self.shares.iter().enumerate() {
            let known = seen.filter(|_| step < STEPS - 1).and_then(|seen| seen.share(step, visits));
            share.store(known.unwrap_or(BY_SAMPLES), Ordering::Relaxed);
        }
    }

    fn forget(&self) {
        self.visits.store(0, Ordering::Relaxed);
        self.learn(None);
    }
}

// Relaxed, all of these atomics: a thread's sites and visits are written by itself, or while it is
// not sampled; ids and shares stand each for itself, and what is read late counts from the next
// look on.
impl SiteTimelines {
    pub(crate) fn new() -> SiteTimelines {
        SiteTimelines(array::from_fn(|_| SiteTimeline::new()))
    }

    /// Hands them to another thread, the `number`-th of all.
    pub(super) fn hand_on(&self, number: u32) {
        for (timeline, at) in self.0.iter().zip(0..) {
            timeline.site.store(0, Ordering::Relaxed);
            let id = number.wrapping_mul(SITES as u32).wrapping_add(at).wrapping_mul(STEPS as u32);
            timeline.first.store(IS_STEP | id, Ordering::Relaxed);
            timeline.forget();
        }
    }

    /// Forgets what was learned.
    pub(super) fn forget(&self) {
        self.0.iter().for_each(SiteTimeline::forget);
    }

    /// The owner acts at `site`. `None` when it has too many of them.
    pub(crate) fn begin(&self, site: usize) -> Option<&SiteTimeline> {
        let timeline = self.0.iter().find(|timeline| {
            let found = timeline.site.load(Ordering::Relaxed);
            if found == 0 {
                timeline.site.store(site, Ordering::Relaxed);
            }
            found == 0 || found == site
        })?;
        timeline.visits.fetch_add(1, Ordering::Relaxed);
        Some(timeline)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &SiteTimeline> {
        self.0.iter()
    }
}

/// The step of a thread that has come so far.
fn step(far: Nanos) -> usize {
    usize::try_from(far.0 / STEP.0).unwrap_or(0).min(STEPS - 1)
}

/// The timeline and the step that `context` is, if it is one.
pub(super) fn of(context: u32) -> Option<(u32, usize)> {
    let mask = STEPS as u32 - 1;
    (context & IS_STEP != 0).then_some((context & !mask, (context & mask) as usize))
}

/// Observations of the steps of a timeline.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps([Seen; STEPS]);

impl Steps {
    pub(super) fn add(&mut self, step: usize, seen: Seen) {
        self.0[step] = seen;
    }

    /// The share of a step. `None` where it was not seen often enough: what is near says nothing of
    /// it, since a thread may come that far in experiments alone, where others keep it waiting for
    /// less. `visits` are those of the timeline.
    fn share(&self, step: usize, visits: u64) -> Option<u32> {
        let time = self.0.iter().fold(Nanos::ZERO, |time, seen| time + seen.time);
        Seen { time, visits, ..self.0[step] }.share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VISITS: u64 = 1000;

    /// Steps as seen in visits of which `inside` says which steps are inside, all of them or by
    /// halves.
    fn seen(inside: [u64; 4], each: u64) -> Steps {
        let mut steps = Steps::default();
        for (step, inside) in inside.into_iter().enumerate() {
            let time = Nanos(STEP.0 * VISITS as i64);
            steps.add(step, Seen { samples: each, inside: each * inside / 2, time, visits: 0 });
        }
        steps
    }

    #[test]
    fn each_step_has_its_share() {
        let timelines = SiteTimelines::new();
        timelines.hand_on(3);
        let timeline = timelines.begin(0x10).unwrap();
        assert_eq!(timeline.credit(Nanos::ZERO), Credit::Samples);
        assert_eq!(timeline.inside(Nanos::ZERO, Nanos::from_millis(1)), Nanos::ZERO);
        timeline.visits.store(VISITS, Ordering::Relaxed);
        timeline.learn(Some(&seen([0, 1, 2, 2], 40)));
        assert_eq!(timeline.inside(Nanos::ZERO, STEP), Nanos::ZERO);
        assert_eq!(timeline.inside(Nanos::ZERO, Nanos(2 * STEP.0)), Nanos(STEP.0 / 2));
        assert_eq!(
            timeline.inside(Nanos(STEP.0 * 3 / 2), Nanos(STEP.0 * 5 / 2)),
            Nanos(STEP.0 * 3 / 4)
        );
        assert_eq!(timeline.inside(STEP, STEP), Nanos::ZERO);
        assert_eq!(timeline.credit(Nanos(STEP.0 * 2)), Credit::Share(1_000_000));
        assert_eq!(
            timeline.credit(Nanos::from_millis(10)),
            Credit::Samples,
            "beyond the last step"
        );
        let context = timeline.context(Nanos(STEP.0 * 2));
        assert_eq!(of(context), Some((timeline.id(), 2)));
        assert_eq!(of(77), None, "a target");
    }

    #[test]
    fn a_step_that_was_hardly_seen_has_no_share_whatever_is_around_it() {
        let mut steps = seen([0, 2, 2, 2], 30);
        steps.add(2, Seen { samples: 1, inside: 0, ..Seen::default() });
        assert_eq!(
            [0, 1, 2, 3, 4].map(|step| steps.share(step, VISITS)),
            [Some(0), Some(1_000_000), None, Some(1_000_000), None]
        );
    }

    #[test]
    fn where_long_stretches_differ_samples_tell() {
        assert_eq!(seen([0, 1, 1, 2], 40).share(1, 4), None);
        assert_eq!(seen([0, 1, 1, 2], 40).share(3, 4), Some(1_000_000), "they do not differ here");
    }

    #[test]
    fn a_thread_knows_its_sites_again_and_hands_none_on() {
        let timelines = SiteTimelines::new();
        timelines.hand_on(1);
        let ids: Vec<u32> = (1..=SITES).map(|site| timelines.begin(site).unwrap().id()).collect();
        assert_eq!(timelines.begin(7).unwrap().id(), ids[6]);
        assert!(timelines.begin(SITES + 1).is_none());
        timelines.hand_on(2);
        let other = timelines.begin(SITES + 1).unwrap();
        assert!(!ids.contains(&other.id()));
        assert_eq!(other.visits.load(Ordering::Relaxed), 1);
    }
}
