//! How long a poll surely was: computing or asleep, and not waiting for a processor.

use crate::time::{Nanos, Real};

/// State of a thread as another one sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadLook {
    /// When it was looked at.
    pub(super) at: Real,
    /// CPU time that the thread had used.
    pub(super) cpu: Nanos,
    /// For how long it had waited for processors, where the kernel tells.
    pub(super) waited: Option<Nanos>,
    /// Whether it slept.
    pub(super) is_asleep: bool,
    /// For how long the machine had stood still.
    pub(super) stalled: Nanos,
}

/// Time of a poll since it was first looked at.
///
/// The time is what the thread computed, and what it slept. It computed as its CPU clock says. Of
/// the rest it may have slept, waited for a processor, or had a processor that the host had taken
/// away; only where it is found asleep it is known to have slept, and what it waited for a
/// processor and what the machine stood still is taken off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    first: Real,
    last: ThreadLook,
    known: Nanos,
}

impl Length {
    pub(super) fn begin(look: ThreadLook) -> Length {
        Length { first: look.at, last: look, known: Nanos::ZERO }
    }

    /// The poll goes on, and the thread is looked at again.
    pub(super) fn advance(&mut self, look: ThreadLook) {
        let positive = |time: Nanos| time.max(Nanos::ZERO);
        let Length { last, .. } = *self;
        let passed = positive(look.at - last.at);
        let computed = positive(look.cpu - last.cpu).min(passed);
        let waited = look.waited.zip(last.waited).map(|(now, before)| positive(now - before));
        let lost = waited.unwrap_or(Nanos::ZERO) + positive(look.stalled - last.stalled);
        // Where the kernel does not tell waits, it slept if it did at both ends.
        let has_slept = look.is_asleep && (waited.is_some() || last.is_asleep);
        let slept = if has_slept { positive(passed - computed - lost) } else { Nanos::ZERO };
        self.known += computed + slept;
        self.last = look;
    }

    /// How long the thread surely computed or slept, since it was first looked at.
    pub(super) fn known(&self) -> Nanos {
        self.known
    }

    /// How long a poll was, as far as that is known, that began and ended then: before the first
    /// look and after the last one it is taken to have gone on.
    pub(super) fn of_poll(&self, began: Real, ended: Real) -> Nanos {
        self.known + (self.first - began) + (ended - self.last.at).max(Nanos::ZERO)
    }

    /// When it was last looked at.
    pub(super) fn at(&self) -> Real {
        self.last.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A look after so many ms, at a thread that has computed and waited for so many.
    fn look(at: i64, cpu: i64, waited: Option<i64>, is_asleep: bool) -> ThreadLook {
        ThreadLook {
            at: Real(at * MS),
            cpu: Nanos(cpu * MS),
            waited: waited.map(|waited| Nanos(waited * MS)),
            is_asleep,
            stalled: Nanos::ZERO,
        }
    }

    fn known(looks: &[ThreadLook]) -> i64 {
        let mut length = Length::begin(looks[0]);
        looks[1..].iter().for_each(|look| length.advance(*look));
        length.known().0 / MS
    }

    #[test]
    fn what_computes_or_sleeps_goes_on() {
        assert_eq!(known(&[look(0, 5, Some(3), false), look(20, 25, Some(3), false)]), 20);
        assert_eq!(known(&[look(0, 5, Some(3), true), look(20, 5, Some(3), true)]), 20);
        // The thread computed for 4 ms, and slept since.
        assert_eq!(known(&[look(0, 5, Some(3), false), look(20, 9, Some(3), true)]), 20);
    }

    #[test]
    fn waiting_for_a_processor_is_no_time_of_a_poll() {
        // Preempted for 18 of 20 ms, and back.
        assert_eq!(known(&[look(0, 5, Some(3), false), look(20, 7, Some(21), false)]), 2);
        // Preempted since 18 ms ago: what it waits for at the moment the kernel does not tell yet.
        assert_eq!(known(&[look(0, 5, Some(3), false), look(20, 7, Some(3), false)]), 2);
        // The thread waited, and sleeps now.
        assert_eq!(known(&[look(0, 5, Some(3), false), look(20, 5, Some(13), true)]), 10);
    }

    #[test]
    fn a_processor_that_the_host_took_away_is_no_time_of_a_poll() {
        let mut looks = [look(0, 5, Some(3), false), look(20, 6, Some(3), false)];
        assert_eq!(known(&looks), 1);
        // Asleep, while the machine stood still.
        looks = [look(0, 5, Some(3), true), look(20, 5, Some(3), true)];
        looks[1].stalled = Nanos(15 * MS);
        assert_eq!(known(&looks), 5);
        let mut length = Length::begin(looks[0]);
        length.advance(looks[1]);
        assert_eq!(length.of_poll(Real(-3 * MS), Real(22 * MS)), Nanos(10 * MS));
        assert_eq!(length.of_poll(Real(-3 * MS), length.at()), Nanos(8 * MS));
    }

    #[test]
    fn where_waits_are_not_told_it_has_slept_if_it_did_at_both_ends() {
        assert_eq!(known(&[look(0, 5, None, true), look(20, 5, None, true)]), 20);
        assert_eq!(known(&[look(0, 5, None, false), look(20, 5, None, true)]), 0);
        assert_eq!(known(&[look(0, 5, None, true), look(20, 9, None, false)]), 4);
    }
}
