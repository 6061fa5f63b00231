//! Stays of threads in targets: who is credited for which time.
//!
//! A thread may be in several targets at once, one inside of the other. L grows while it is in that
//! of the experiment, once, however often it has entered it. Time in others inside is the busy time
//! of both, and the own time of the innermost alone.

use crate::time::{Nanos, Real};

/// How many times a thread has entered the target of the experiment and not left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth(u32);

impl Depth {
    /// Outside the target.
    pub const OUTSIDE: Depth = Depth(0);

    /// Whether the thread is inside the target.
    #[inline]
    pub fn is_inside(self) -> bool {
        self.0 > 0
    }

    /// Returns the depth of a thread that enters once more.
    pub fn enter(self) -> Depth {
        Depth(self.0 + 1)
    }

    /// Returns the depth of a thread that leaves once. It may have entered before it was counted.
    pub fn exit(self) -> Depth {
        Depth(self.0.saturating_sub(1))
    }
}

/// A stay in a target that goes on.
#[derive(Clone, Copy, Debug)]
pub struct Entered {
    /// The target was that of the experiment.
    pub(crate) credited: bool,
    at: Real,
    /// Time spent so far in targets inside the one around this.
    inner: Nanos,
    /// The context around this; 0 for none.
    pub(crate) context: u32,
}

impl Entered {
    /// A stay that begins at `now`, in a thread whose context was `context`, and that had spent
    /// `inner` in targets inside of that.
    #[inline]
    pub(crate) fn begin(credited: bool, context: u32, inner: Nanos, now: Real) -> Entered {
        Entered { credited, at: now, inner, context }
    }

    /// When it began.
    #[inline]
    pub fn at(&self) -> Real {
        self.at
    }

    /// Whether it is inside of no other.
    #[inline]
    pub(crate) fn is_outermost(&self) -> bool {
        self.context == 0
    }

    /// Ends the stay at `now`, of which the thread has spent `inner` in targets inside. Returns the
    /// time spent in targets inside the one around this, too.
    #[inline]
    pub(crate) fn end(&self, inner: Nanos, now: Real) -> (Stay, Nanos) {
        let busy = now - self.at;
        (Stay { busy, own: busy - inner }, self.inner + busy)
    }

    /// Ends the stay at `now`, before `above`, the next one, which goes on: the time that both
    /// cover is in the busy time of that one as it ends.
    pub(crate) fn end_under(self, above: &mut Entered, now: Real) -> Stay {
        let alone = above.at - self.at;
        let own = alone - above.inner;
        above.inner = self.inner + alone;
        above.context = self.context;
        Stay { busy: now - self.at, own }
    }
}

/// A stay in a target that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// How long it was.
    pub busy: Nanos,
    /// How much of it was not spent in other targets inside.
    pub own: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(i64) -> Nanos = Nanos::from_micros;

    fn at(us: i64) -> Real {
        Real(0) + US(us)
    }

    fn stay(busy: i64, own: i64) -> Stay {
        Stay { busy: US(busy), own: US(own) }
    }

    #[test]
    fn time_in_a_target_inside_is_own_time_of_that_one_alone() {
        let outer = Entered::begin(false, 0, Nanos::ZERO, at(0));
        let inner = Entered::begin(false, 1, Nanos::ZERO, at(10));
        let (of_inner, spent) = inner.end(Nanos::ZERO, at(40));
        let (of_outer, around) = outer.end(spent, at(100));
        assert_eq!((of_inner, of_outer), (stay(30, 30), stay(100, 70)));
        assert_eq!(around, US(100));
        assert!(outer.is_outermost() && !inner.is_outermost());
    }

    #[test]
    fn stay_that_ends_before_the_one_above_leaves_it_the_common_time() {
        let below = Entered::begin(false, 0, US(5), at(0));
        let mut above = Entered::begin(true, 1, US(2), at(10));
        assert_eq!(below.end_under(&mut above, at(30)), stay(30, 8));
        let (of_above, around) = above.end(Nanos::ZERO, at(50));
        assert_eq!((of_above, around), (stay(40, 40), US(5 + 10 + 40)));
        assert!(above.is_outermost(), "what was around the one below is around it now");
    }

    #[test]
    fn target_is_left_as_often_as_it_was_entered() {
        let twice = Depth::OUTSIDE.enter().enter();
        assert!(twice.is_inside() && twice.exit().is_inside());
        assert_eq!(twice.exit().exit(), Depth::OUTSIDE);
        assert_eq!(Depth::OUTSIDE.exit(), Depth::OUTSIDE, "it was entered before an experiment");
    }
}
