//! Where the calling thread is on its [course](crate::sampler::course), if it is a plain one, outside of all spans, that is sampled.

use super::{Role, Thread};
use crate::clock;
use crate::sampler::FINE;
use crate::sampler::course::{Course, Seeing};
use crate::sampler::share;
use crate::time::{Nanos, Real};

/// How far the thread has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) course: &'static Course,
    /// When it began. Later by what was paused since.
    pub(super) at: Real,
    /// Up to when it is credited.
    pub(super) credited: Real,
    /// Since the last sample, or since it began.
    since: Since,
    /// What was credited too much by then, and is taken off what comes.
    over: Nanos,
}

/// What is known of the way since a sample.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    /// How far the thread had come.
    far: Nanos,
    /// What the sample saw.
    seen: Option<Seeing>,
    /// For how long the thread ran since.
    ran: Nanos,
    /// What of that was expected to be inside the target, and credited.
    expected: Nanos,
}

impl Stretch {
    fn new(course: &'static Course, at: Real, over: Nanos) -> Stretch {
        Stretch { course, at, credited: at, since: Since::default(), over }
    }

    /// What is to be credited of the time since the last call, of which the thread really ran for `ran`. It is `now`.
    pub(super) fn inside(&mut self, ran: Nanos, now: Real) -> Nanos {
        let inside = self.came(ran, now);
        self.credit(inside)
    }

    /// The same as a sample finds the thread `inside` the target, or outside, or nobody knows where: which tells something of all that passed since
    /// the one before. The thread came as far by `at`, and from then on, until `now`, it was interrupted.
    pub(super) fn sampled(
        &mut self,
        ran: Nanos,
        at: Real,
        now: Real,
        inside: Option<bool>,
    ) -> Nanos {
        let interrupted = (now - at).min(ran);
        let mut credited = self.came(ran - interrupted, at);
        if let Some(inside) = inside {
            let far = at - self.at;
            let seen = self.course.seeing(far, inside);
            if seen.is_some() {
                let Since { far: from, seen: before, ran, expected } = self.since;
                let by_both = self.course.inside(from, far, before, seen);
                credited += scaled(by_both, ran, far - from) - expected;
                credited += if inside { interrupted } else { Nanos::ZERO };
            }
            self.since = Since { far, seen, ..Since::default() };
        }
        self.interrupted(at, now);
        self.credit(credited)
    }

    /// It came no farther from `at` until `now`.
    pub(super) fn interrupted(&mut self, at: Real, now: Real) {
        self.at = self.at + (now - at);
        self.credited = now;
    }

    /// The experiment is over: nothing is taken off in the next one.
    pub(super) fn forget(&mut self) {
        self.over = Nanos::ZERO;
    }

    /// What of the time until the next sample is expected to be inside the target.
    pub(super) fn expected(&self) -> Nanos {
        let far = self.credited - self.at;
        let expected = self.course.inside(far, far + FINE, self.since.seen, None);
        (expected - self.over).max(Nanos::ZERO)
    }

    /// It came on until `now`. Returns what of that is expected to be inside.
    fn came(&mut self, ran: Nanos, now: Real) -> Nanos {
        let (from, to) = (self.credited - self.at, now - self.at);
        self.credited = now;
        let inside = scaled(self.course.inside(from, to, self.since.seen, None), ran, to - from);
        self.since.ran += ran.min(to - from);
        self.since.expected += inside;
        inside
    }

    /// What can be credited of `more`, which may be less than nothing.
    fn credit(&mut self, more: Nanos) -> Nanos {
        let more = more - self.over;
        self.over = (Nanos::ZERO - more).max(Nanos::ZERO);
        more.max(Nanos::ZERO)
    }
}

/// What is inside of a way on which the thread ran for `ran`: if that is less than the way, it was preempted, or slept, nobody knows where.
fn scaled(inside: Nanos, ran: Nanos, way: Nanos) -> Nanos {
    if way <= ran {
        return inside;
    }
    Nanos((i128::from(inside.0) * i128::from(ran.0) / i128::from(way.0)) as i64)
}

impl Thread {
    /// Where the thread is on its course; `None` when it is on none.
    #[inline]
    pub(super) fn stretch(&self) -> Option<Stretch> {
        let on_course = self.context.get() == 0 && self.role.get() == Role::Entity;
        self.stretch.get().filter(|_| on_course)
    }

    /// The thread has just acted at `site`, an address: a course begins.
    #[inline]
    pub(super) fn acted_at(&self, site: usize) {
        if share::learns() {
            self.begin_stretch(site);
        } else if self.stretch.get().is_some() {
            self.end_stretch();
        }
    }

    /// The thread has just left the target `context`: outside of all, a course begins.
    #[inline]
    pub(super) fn left(&self, context: u32) {
        if share::learns() {
            self.begin_stretch(context as usize);
        }
    }

    fn begin_stretch(&self, site: usize) {
        if self.context.get() == 0 && self.role.get() == Role::Entity {
            self.share_no_more();
            let over = self.stretch.get().map_or(Nanos::ZERO, |before| before.over);
            let now = clock::now();
            let course = self.courses.get().and_then(|courses| courses.begin(site));
            self.stretch.set(course.map(|course| Stretch::new(course, now, over)));
            self.share();
        }
    }

    /// The thread is on no course any more.
    pub(super) fn end_stretch(&self) {
        self.share_no_more();
        self.stretch.set(None);
    }

    /// The thread has paused since `begun`: it came no farther meanwhile.
    pub(super) fn paused_since(&self, begun: Real, now: Real) {
        if let Some(stretch) = self.stretch.get() {
            self.stretch.set(Some(Stretch { at: stretch.at + (now - begun), ..stretch }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TargetKind;
    use crate::sampler::course::Courses;
    use crate::target::target;
    use crate::thread::{enter, exit, register, with};

    /// A course whose first 128 us are outside the target, and what follows inside.
    fn course() -> &'static Course {
        let courses: &'static Courses = Box::leak(Box::new(Courses::new()));
        let course = courses.begin(8).unwrap();
        course.set(|step| if step < 2 { 0 } else { 1_000_000 });
        course
    }

    #[test]
    fn each_look_tells_what_was_inside_since_the_last() {
        let us = Nanos::from_micros;
        let begun = Real(1_000_000);
        let mut stretch = Stretch::new(course(), begun, Nanos::ZERO);
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
    fn a_sample_corrects_what_was_expected_since_the_one_before() {
        let us = Nanos::from_micros;
        let courses: &'static Courses = Box::leak(Box::new(Courses::new()));
        let course = courses.begin(8).unwrap();
        // Half of the visits come in at 0 us, and the others at 256.
        course.set(|step| if step < 4 { 500_000 } else { 1_000_000 });
        let begun = Real(1_000_000);
        let begin = || Stretch::new(course, begun, Nanos::ZERO);

        let mut early = begin();
        assert_eq!(early.inside(us(100), begun + us(100)), us(50));
        let credited = early.sampled(us(130), begun + us(200), begun + us(230), Some(true));
        assert_eq!(credited, us(150 + 30), "all of it, and the interrupt");
        assert_eq!(early.expected(), us(250));
        assert_eq!(early.inside(us(170), begun + us(400)), us(170));

        let mut late = begin();
        assert_eq!(late.inside(us(100), begun + us(100)), us(50));
        let credited = late.sampled(us(130), begun + us(200), begun + us(230), Some(false));
        assert_eq!((credited, late.over), (Nanos::ZERO, us(50)));
        let (so_far, truly) = (us(50), us(100));
        let rest = late.inside(us(156), begun + us(230 + 156));
        assert_eq!(so_far + rest, truly, "what was too much is taken off");

        let mut unknown = begin();
        assert_eq!(unknown.sampled(us(200), begun + us(200), begun + us(200), None), us(100));
        let credited = unknown.sampled(us(50), begun + us(250), begun + us(250), Some(true));
        assert_eq!(credited, us(150), "since the last that is known");
    }

    #[test]
    fn only_outside_of_spans_is_an_entity_on_a_course() {
        let span = target(TargetKind::Span, "on no course", None, None);
        std::thread::spawn(move || {
            let begin = || with(|thread| thread.begin_stretch(8));
            let is_on_course = || with(|thread| thread.stretch().is_some());
            begin();
            assert!(!is_on_course(), "nobody yet");
            register();
            assert!(!is_on_course());
            begin();
            assert!(is_on_course());
            let visit = enter(span, clock::now());
            assert!(!is_on_course());
            begin();
            exit(visit, clock::now());
            with(Thread::end_stretch);
            assert!(!is_on_course());
        })
        .join()
        .unwrap();
    }
}
