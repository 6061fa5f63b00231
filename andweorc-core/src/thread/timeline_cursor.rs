//! Where the calling thread is on its [timeline](crate::sampler::site_timeline), if it is a plain
//! one, outside of all spans, that is sampled.

use super::Thread;
use crate::clock;
use crate::sampler::FINE;
use crate::sampler::site_timeline::SiteTimeline;
use crate::sampler::target_fraction;
use crate::time::{Nanos, Real};

/// How far the thread has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimelineCursor {
    pub(super) timeline: &'static SiteTimeline,
    /// When it began. Later by what was paused since.
    pub(super) at: Real,
    /// Up to when it is credited.
    pub(super) credited: Real,
}

impl TimelineCursor {
    /// Returns how much of the time since the last call, of which the thread really ran for `ran`,
    /// is inside the target. It is `now`.
    pub(super) fn inside(&mut self, ran: Nanos, now: Real) -> Nanos {
        let (from, to) = (self.credited - self.at, now - self.at);
        self.credited = now;
        let inside = self.timeline.inside(from, to);
        if to - from <= ran {
            return inside;
        }
        // It was preempted, or slept, nobody knows where.
        Nanos((i128::from(inside.0) * i128::from(ran.0) / i128::from((to - from).0)) as i64)
    }

    /// Returns what [`inside`](TimelineCursor::inside) does, as a sample is noticed, which
    /// interrupted the thread `at`. The interrupt is `inside` if the sample found it there.
    pub(super) fn sampled(&mut self, ran: Nanos, at: Real, now: Real, inside: bool) -> Nanos {
        let interrupted = (now - at).min(ran);
        let came = self.inside(ran - interrupted, at);
        self.interrupted(at, now);
        came + if inside { interrupted } else { Nanos::ZERO }
    }

    /// The thread came no farther from `at` until `now`.
    pub(super) fn interrupted(&mut self, at: Real, now: Real) {
        self.at = self.at + (now - at);
        self.credited = now;
    }

    /// Part of the time until the next sample that is expected to be inside the target.
    pub(super) fn expected(&self) -> Nanos {
        let far = self.credited - self.at;
        self.timeline.inside(far, far + FINE)
    }
}

impl Thread {
    /// Where the thread is on its timeline; `None` when it is on none.
    #[inline]
    pub(super) fn stretch(&self) -> Option<TimelineCursor> {
        let on_timeline = self.context.get() == 0 && self.state.get().participates();
        self.stretch.get().filter(|_| on_timeline)
    }

    /// The thread has just acted at `site`, an address: a timeline begins.
    #[inline]
    pub(super) fn acted_at(&self, site: usize) {
        if target_fraction::has_learned() {
            self.acts_at(site);
        }
    }

    #[cold]
    fn acts_at(&self, site: usize) {
        if target_fraction::learns() {
            self.begin_stretch(site);
        } else if self.stretch.get().is_some() {
            self.end_stretch();
        }
    }

    /// The thread has just left the target `context`: outside of all, a timeline begins.
    #[inline]
    pub(super) fn left(&self, context: u32) {
        if target_fraction::learns() {
            self.begin_stretch(context as usize);
        }
    }

    #[cold]
    fn begin_stretch(&self, site: usize) {
        if self.context.get() == 0 && self.state.get().participates() {
            self.end_stretch();
            let now = clock::now();
            let timeline = self.timelines.get().and_then(|timelines| timelines.begin(site));
            self.stretch.set(timeline.map(|timeline| TimelineCursor {
                timeline,
                at: now,
                credited: now,
            }));
            self.looks_anew();
            self.share();
        }
    }

    /// The thread is on no timeline any more.
    pub(super) fn end_stretch(&self) {
        self.share_no_more();
        self.stretch.set(None);
    }

    /// The thread has paused since `begun`: it came no farther meanwhile.
    pub(super) fn paused_since(&self, begun: Real, now: Real) {
        if let Some(stretch) = self.stretch.get() {
            self.stretch.set(Some(TimelineCursor { at: stretch.at + (now - begun), ..stretch }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::Own;
    use crate::sampler::site_timeline::SiteTimelines;
    use crate::target::target;
    use crate::thread::target_scope::SPENT;
    use crate::thread::{enable, enter, exit, ledger, register, with};
    use crate::time::Speedup;
    use andweorc_profile::TargetKind;
    use tests_support::kept;

    /// A timeline whose first 128 us are outside the target, and what follows inside.
    fn timeline() -> &'static SiteTimeline {
        let timeline = kept(SiteTimelines::new()).begin(8).unwrap();
        timeline.set(|step| if step < 2 { 0 } else { 1_000_000 });
        timeline
    }

    #[test]
    fn each_look_tells_what_was_inside_since_the_last() {
        let us = Nanos::from_micros;
        let begun = Real(1_000_000);
        let mut stretch = TimelineCursor { timeline: timeline(), at: begun, credited: begun };
        assert_eq!(stretch.expected(), us(122));
        assert_eq!(stretch.inside(us(100), begun + us(100)), Nanos::ZERO);
        assert_eq!(stretch.inside(us(100), begun + us(200)), us(72));
        assert_eq!(stretch.expected(), us(250));
        assert_eq!(stretch.inside(us(50), begun + us(300)), us(50), "preempted for half of it");
        stretch.at = stretch.at + us(1000);
        stretch.credited = begun + us(1000);
        assert_eq!(stretch.inside(us(228), begun + us(1228)), us(100), "paused");
    }

    #[test]
    fn sample_cost_is_time_of_its_place_but_not_timeline_progress() {
        let us = Nanos::from_micros;
        let begun = Real(1_000_000);
        let mut stretch = TimelineCursor { timeline: timeline(), at: begun, credited: begun };
        let (at, now) = (begun + us(100), begun + us(130));
        assert_eq!(stretch.sampled(us(130), at, now, false), Nanos::ZERO);
        assert_eq!(
            stretch.inside(us(50), now + us(50)),
            us(22),
            "28 us were left of the steps outside"
        );
        let (at, now) = (begun + us(280), begun + us(310));
        assert_eq!(stretch.sampled(us(130), at, now, true), us(100 + 30));
        assert_eq!(stretch.expected(), us(250));
    }

    #[test]
    fn only_outside_of_spans_is_a_participant_on_a_course() {
        let span = target(TargetKind::Span, "on no timeline", None, None);
        std::thread::spawn(move || {
            let begin = || with(|thread| thread.begin_stretch(8));
            let is_on_timeline = || with(|thread| thread.stretch().is_some());
            begin();
            assert!(!is_on_timeline(), "nobody yet");
            register();
            assert!(!is_on_timeline());
            begin();
            assert!(is_on_timeline());
            let visit = enter(span, clock::now());
            assert!(!is_on_timeline());
            begin();
            exit(visit, clock::now());
            with(Thread::end_stretch);
            assert!(!is_on_timeline());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_timeline_that_begins_in_an_experiment_counts_from_there_on() {
        Own::run(|_| {
            enable();
            ledger().begin(Speedup::from_ppm(1), clock::now());
            target_fraction::begin(std::iter::empty());
            register();
            with(Thread::share);
            let goes_the_long_way = || with(|thread| thread.caught_up()).is_none();
            assert!(!goes_the_long_way());
            with(|thread| thread.begin_stretch(8));
            assert!(goes_the_long_way());
            let spent = SPENT.get();
            with(Thread::share);
            assert!(SPENT.get() > spent, "what it takes to say how far it has come is delay");
            target_fraction::end();
            with(Thread::end_stretch);
            ledger().end(clock::now());
        })
    }
}
