//! Where the calling thread is on its [course](crate::sampler::course), if it is a plain one, outside of all spans, that is sampled.

use super::{Role, Thread};
use crate::clock;
use crate::sampler::course::Course;
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
}

impl Stretch {
    /// What is inside the target of the time since the last call, of which the thread really ran for `ran`. It is `now`.
    pub(super) fn inside(&mut self, ran: Nanos, now: Real) -> Nanos {
        let (from, to) = (self.credited - self.at, now - self.at);
        self.credited = now;
        let inside = self.course.inside(from, to);
        if to - from <= ran {
            return inside;
        }
        // It was preempted, or slept, nobody knows where.
        Nanos((i128::from(inside.0) * i128::from(ran.0) / i128::from((to - from).0)) as i64)
    }
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
        } else {
            self.stretch.set(None);
        }
    }

    /// The thread has just left the target `context`: outside of all, a course begins.
    #[inline]
    pub(super) fn left(&self, context: u32) {
        if share::learns() && self.context.get() == 0 {
            self.stretch.set(None);
            self.begin_stretch(context as usize);
        }
    }

    fn begin_stretch(&self, site: usize) {
        if self.context.get() != 0 || self.role.get() != Role::Entity {
            return;
        }
        // What went before.
        self.share();
        let now = clock::now();
        let course = self.courses.get().and_then(|courses| courses.begin(site));
        self.stretch.set(course.map(|course| Stretch { course, at: now, credited: now }));
        if self.shared.get() == 0 {
            self.share();
        }
    }

    /// The thread has paused since `begun`: it came no farther meanwhile.
    pub(super) fn paused_since(&self, begun: Real, now: Real) {
        if let Some(stretch) = self.stretch.get() {
            self.stretch.set(Some(Stretch { at: stretch.at + (now - begun), ..stretch }));
        }
    }
}
