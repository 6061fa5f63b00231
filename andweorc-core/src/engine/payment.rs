//! Payment: how long a thread that owes delay pauses before it acts on others.

use super::Rules;
use crate::time::Nanos;

/// A debt below this is left for later: pausing costs about as much.
const MIN_PAUSE: Nanos = Nanos::from_micros(2);
const _: () = assert!(
    MIN_PAUSE.0 < Rules::SHIPPED.min_hold.0,
    "a caught-up thread would poll tasks too early"
);

/// Overshoot of a pause that is still counted, at most. What is later was a stop, or a machine too
/// busy to be measured on, and would be credit for whole experiments.
const MAX_OVERSHOOT: Nanos = Nanos::from_millis(20);

/// How often D may have grown again during a pause before the rest is left for later. Bounded,
/// because with a speedup of 100 % D grows as fast as the pause pays, and the target may be waiting
/// for this very thread.
const ROUNDS: u8 = 8;

/// A thread's payment of what it owes, a pause at a time.
#[derive(Clone, Copy, Debug)]
pub struct Payment {
    rounds: u8,
}

impl Payment {
    /// A payment that begins.
    pub fn begin() -> Payment {
        Payment { rounds: ROUNDS }
    }

    /// Whether a debt of this size need not be paid.
    #[inline]
    pub fn is_needless(debt: Nanos) -> bool {
        debt < MIN_PAUSE
    }

    /// Returns for how long a thread is to pause that owes `debt` now. `None` once it has paid, as
    /// far as it can.
    pub fn next_pause(&mut self, debt: Nanos) -> Option<Nanos> {
        self.rounds = self.rounds.checked_sub(1)?;
        (!Payment::is_needless(debt)).then_some(debt)
    }

    /// Returns the delay that a thread has taken by a pause that was to last for `pause`, and
    /// lasted for `paused`: what it overshot is credit.
    pub fn taken_by(pause: Nanos, paused: Nanos) -> Nanos {
        paused.min(pause + MAX_OVERSHOOT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debt_that_grows_as_fast_as_it_is_paid_is_left_in_the_end() {
        let mut payment = Payment::begin();
        let pauses = std::iter::from_fn(|| payment.next_pause(Nanos::from_micros(10)));
        assert_eq!(pauses.count(), usize::from(ROUNDS));
    }

    #[test]
    fn small_debt_and_credit_are_not_paid() {
        for debt in [MIN_PAUSE - Nanos(1), Nanos::ZERO, Nanos(-5_000)] {
            assert_eq!(Payment::begin().next_pause(debt), None, "{debt}");
        }
        assert_eq!(Payment::begin().next_pause(MIN_PAUSE), Some(MIN_PAUSE));
    }

    #[test]
    fn overshoot_is_credit_unless_the_thread_was_stopped() {
        let (ms, debt) = (Nanos::from_millis, Nanos::from_micros(100));
        assert_eq!(Payment::taken_by(debt, ms(3)), ms(3));
        assert_eq!(Payment::taken_by(debt, ms(900)), debt + MAX_OVERSHOOT);
    }
}
