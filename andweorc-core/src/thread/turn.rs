//! Which of its polls a task is in, so that what it does in each is known apart while targets are sampled.
//!
//! A handler parses in one of its polls, works with a lock held in the next, and in a third only lets go of it. All of them are polls of one kind
//! of task. Were they one context, a line of the first would have its share of all three, and be credited while the lock is held: the accuracy
//! bench's `mutex_over_wait` was told that its `check`, of which nothing depends, would bring 31 % if it were 75 % faster, and `stock`, under the
//! lock, about the same.
//!
//! What a task does in a poll most often follows from who ended its wait, and from how many polls it is since it last hit the point that it hit
//! first: once in each round, in a service. A task that hits none counts from its first poll.

use super::{Thread, with};
use crate::sampler::share;
use crate::wait::{Cause, Ended};

/// Polls after which they are not told apart any more.
const MOST: u32 = 15;

/// The bits of a [`Turn`] that count polls, and the one that says that this poll hit the point. Above them is the point's id.
const POLLS: u32 = 0b1111;
const HIT: u32 = 0b1_0000;
const POINT: u32 = !(POLLS | HIT);

const _: () = assert!(MOST <= POLLS);

/// Which poll of a task is its next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn(u32);

impl Turn {
    /// That of a task which was not polled.
    pub const NEW: Turn = Turn(0);

    /// The number of what the task does now that its wait has ended like this, below [`share::PHASES`].
    fn phase(self, ended: Option<Ended>) -> u32 {
        let by_task = ended.is_some_and(|ended| ended.by == Cause::Task);
        (self.0 & POLLS) << 1 | u32::from(by_task)
    }

    /// The same poll, in which this point was hit.
    fn hits(self, point: u32) -> Turn {
        let point = point.wrapping_mul(POINT & POINT.wrapping_neg());
        match self.0 & POINT {
            0 => Turn(self.0 | point | HIT),
            first if first == point => Turn(self.0 | HIT),
            _ => self,
        }
    }

    /// The poll after it.
    fn next(self) -> Turn {
        let polls = if self.0 & HIT == 0 { MOST.min((self.0 & POLLS) + 1) } else { 0 };
        Turn(self.0 & POINT | polls)
    }
}

/// What the thread was in before a poll.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    turn: Turn,
    phase: u32,
}

impl Thread {
    /// A poll begins, if what the thread does is to be told apart.
    #[inline]
    pub(super) fn begin_turn(&self, turn: Turn, ended: Option<Ended>) -> Option<Around> {
        share::has_learned().then(|| self.takes_turn(turn, ended))
    }

    #[cold]
    #[inline(never)]
    fn takes_turn(&self, turn: Turn, ended: Option<Ended>) -> Around {
        let phase = share::in_phase(turn.phase(ended));
        Around { turn: self.turn.replace(turn), phase: self.phase.replace(phase) }
    }

    /// It has ended. Returns which comes next.
    #[cold]
    #[inline(never)]
    pub(super) fn end_turn(&self, around: Around) -> Turn {
        self.phase.set(around.phase);
        self.turn.replace(around.turn).next()
    }
}

/// The calling thread hits the point of this id.
#[inline]
pub(crate) fn hits(point: u32) {
    if share::has_learned() {
        hits_in_turn(point);
    }
}

#[cold]
#[inline(never)]
fn hits_in_turn(point: u32) {
    with(|thread| thread.turn.set(thread.turn.get().hits(point)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Real;

    fn ended(by: Cause) -> Option<Ended> {
        Some(Ended { parked: Real(0), woken: Real(1), by })
    }

    #[test]
    fn polls_are_counted_from_the_point_that_is_hit_first() {
        let mut turn = Turn::NEW;
        let mut seen = Vec::new();
        for poll in 0..9 {
            seen.push(turn.phase(ended(Cause::Outside)) >> 1);
            if poll % 3 == 1 {
                turn = turn.hits(7);
            }
            // Another one is hit in each poll from then on, and changes nothing.
            if poll > 0 {
                turn = turn.hits(8);
            }
            turn = turn.next();
        }
        assert_eq!(seen, [0, 1, 0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn who_ended_the_wait_tells_polls_apart() {
        let turn = Turn::NEW.next();
        let phases = [None, ended(Cause::Outside), ended(Cause::Task)].map(|it| turn.phase(it));
        assert_eq!(phases, [2, 2, 3]);
    }

    #[test]
    fn late_polls_are_all_alike() {
        let late = (0..100).fold(Turn::NEW, |turn, _| turn.next());
        assert_eq!(late.next(), late);
        assert!(late.phase(ended(Cause::Task)) < share::PHASES);
        let hit = late.hits(3).next();
        assert_eq!(hit.phase(None), 0);
    }
}
