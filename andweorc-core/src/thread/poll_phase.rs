//! Which of its polls a task is in, so that what it does in each is known apart while targets are
//! sampled.
//!
//! A handler parses in one of its polls, works with a lock held in the next, and in a third only
//! lets go of it. All of them are polls of one kind of task. Were they one context, a line of the
//! first would have its share of all three, and be credited while the lock is held: the accuracy
//! bench's `mutex_over_wait` was told that its `check`, of which nothing depends, would bring 31 %
//! if it were 75 % faster, and `stock`, under the lock, about the same.
//!
//! What a task does in a poll most often follows from who ended its wait, and from how many polls
//! it is since it last hit the point that it hit first: once in each round, in a service. A task
//! that hits none counts from its first poll.
//!
//! And in a poll it does one thing until it *acts*, wakes another task or hits a point, and then
//! another: it lets go of a lock, and begins the next round.
//!
//! While [wall time](crate::wall) is recorded polls are told apart as well, so that all which is
//! seldom asked of a poll is asked at once.

use super::{Thread, with};
use crate::process::asked::Switches;
use crate::process::process;
use crate::sampler::target_fraction;
use crate::target::Target;
use crate::time::Real;
use crate::wait::{Cause, Ended};
use crate::wall;
use std::num::NonZeroU64;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Polls after which they are not told apart any more.
const MOST: u32 = 15;

/// The bits of a [`PollPhase`] that count polls, the one that says that this poll hit the point.
/// Above them is the point's id.
const POLLS: u32 = 0b1111;
const HIT: u32 = 0b1_0000;
const POINT: u32 = !(POLLS | HIT);

const _: () = assert!(MOST <= POLLS);

/// BeforeWake of a poll, after which what it does is not told apart any more.
const MOST_ACTS: u32 = 3;

/// The number of a phase in which the task has acted once, beside that of the poll.
const ACTED: u32 = 2 * (MOST + 1);

const _: () = assert!(ACTED * (MOST_ACTS + 1) <= target_fraction::PHASES);

/// Places for tasks. Those of two tasks that fall on one place are told apart no more, for as long
/// as both live.
const PLACES: usize = 1 << 16;

/// By the address of a task, the [`PollPhase`] that is its next, below, and above it what else is
/// known of the address. While nothing is sampled this is not touched, and so takes no memory; nor
/// does a task, of which there may be a million. Zeroes of the binary: so it is apart from the
/// [process](crate::process).
static NEXT: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// The task that is polled, as what its next poll is known by.
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    /// Plus one at its first poll, and 0 for one whose polls are not told apart.
    address: usize,
}

impl Polled {
    /// One whose polls are not told apart.
    pub const ANY: Polled = Polled { address: 0 };

    /// That of which `own` is there for as long as it lives, and which is polled for the `first`
    /// time or again.
    #[inline]
    pub fn of<T>(own: &T, first: bool) -> Polled {
        const { assert!(align_of::<T>() > 1) };
        Polled { address: ptr::from_ref(own).addr() | usize::from(first) }
    }

    fn is_first(self) -> bool {
        self.address & 1 != 0
    }

    /// The number by which recordings know the task; 0 for one whose polls are not told apart.
    fn number(self) -> usize {
        self.address & !1
    }

    /// Where its turn is kept, and what there tells it from others.
    fn place(self) -> (&'static AtomicU64, u64) {
        // As hash tables do it, by the golden ratio: addresses differ in few bits.
        let hash = (self.number() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (&NEXT[hash as usize >> 16 & (PLACES - 1)], hash >> 32 << 32)
    }

    // Relaxed, both: one thread at a time polls a task, and what another one sees late is a poll
    // that is taken for the one before.
    fn turn(self) -> PollPhase {
        if self.address == 0 || self.is_first() {
            return PollPhase(0);
        }
        let (place, own) = self.place();
        let kept = place.load(Ordering::Relaxed);
        PollPhase(if kept & !u64::from(u32::MAX) == own { kept as u32 } else { 0 })
    }

    fn keep(self, turn: PollPhase) {
        if self.address != 0 && target_fraction::has_learned() {
            let (place, own) = self.place();
            place.store(own | u64::from(turn.0), Ordering::Relaxed);
        }
    }
}

/// Which of its polls a task is in. 0 is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PollPhase(u32);

impl PollPhase {
    /// Of a thread that polls nothing.
    pub(super) const NONE: PollPhase = PollPhase(0);

    /// The acts of such a thread, which are not counted.
    pub(super) const NO_ACTS: u32 = MOST_ACTS;

    /// The number of what the task does now that its wait has ended like this, below
    /// [`target_fraction::PHASES`].
    fn phase(self, ended: Option<Ended>) -> u32 {
        let by_task = ended.is_some_and(|ended| ended.by() == Cause::Task);
        (self.0 & POLLS) << 1 | u32::from(by_task)
    }

    /// PollPhase of the same poll once this point was hit in it.
    fn hits(self, point: u32) -> PollPhase {
        let point = point.wrapping_mul(POINT & POINT.wrapping_neg());
        match self.0 & POINT {
            0 => PollPhase(self.0 | point | HIT),
            first if first == point => PollPhase(self.0 | HIT),
            _ => self,
        }
    }

    /// The poll after it.
    fn next(self) -> PollPhase {
        let polls = if self.0 & HIT == 0 { MOST.min((self.0 & POLLS) + 1) } else { 0 };
        PollPhase(self.0 & POINT | polls)
    }
}

/// PollPhase, phase and acts of the thread before a poll, and the task whose poll that is. An
/// `Option` of it is two words, which each poll keeps in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    polled: Polled,
    /// Its turn, and above it its phase, which leaves the low bits to its acts, and [`WAS`].
    was: NonZeroU64,
}

const _: () = assert!(size_of::<Option<Around>>() == 16, "two words");

/// So that it is never zero.
const WAS: NonZeroU64 = NonZeroU64::new(1 << 63).expect("a bit is set");

const _: () = assert!(
    MOST_ACTS < target_fraction::IN_PHASE
        && target_fraction::PHASES <= (1 << 31) / target_fraction::IN_PHASE
);

impl Around {
    fn new(polled: Polled, turn: PollPhase, phase: u32, acts: u32) -> Around {
        Around { polled, was: WAS | u64::from(phase | acts) << 32 | u64::from(turn.0) }
    }

    fn turn(self) -> PollPhase {
        PollPhase(self.was.get() as u32)
    }

    /// Phase and acts.
    fn part(self) -> (u32, u32) {
        let both = ((self.was.get() & !WAS.get()) >> 32) as u32;
        let acts = both % target_fraction::IN_PHASE;
        (both - acts, acts)
    }
}

impl Thread {
    /// A poll of `task` begins at `now`, if what the thread does is to be told apart.
    #[inline]
    pub(super) fn begin_turn(
        &self,
        task: &'static Target,
        polled: Polled,
        ended: Option<Ended>,
        now: Real,
    ) -> Option<Around> {
        let tells_apart = Switches::HAS_LEARNED.or(Switches::RECORDS_WALL);
        process().asked.is_any_on(tells_apart).then(|| self.take_turn(task, polled, ended, now))
    }

    #[cold]
    #[inline(never)]
    fn take_turn(
        &self,
        task: &'static Target,
        polled: Polled,
        ended: Option<Ended>,
        now: Real,
    ) -> Around {
        if polled.number() != 0 && wall::is_recording() {
            wall::poll_begins(task, polled.number(), ended, now);
        }
        let turn = polled.turn();
        let phase = self.phase.replace(target_fraction::in_phase(turn.phase(ended)));
        // Polls that are not told apart are so in one piece.
        let acts = self.acts.replace(if polled.address == 0 { MOST_ACTS } else { 0 });
        Around::new(polled, self.turn.replace(turn), phase, acts)
    }

    /// The task acts, and goes on with something else.
    #[inline]
    pub(super) fn acts_in_turn(&self) {
        if target_fraction::has_learned() && self.acts.get() < MOST_ACTS {
            self.take_next_part();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_next_part(&self) {
        self.acts.set(self.acts.get() + 1);
        self.phase.set(self.phase.get() + target_fraction::in_phase(ACTED));
        let context = self.context.get();
        if context != 0 {
            self.go_on_in(self.in_this_part(context));
        }
    }

    /// The context of the same target in the part of the poll that the task is in.
    #[cold]
    #[inline(never)]
    pub(super) fn in_this_part(&self, context: u32) -> u32 {
        let here = target_fraction::of_phase(context, self.phase.get());
        if here != context && target_fraction::learns() {
            target_fraction::visited(here);
        }
        here
    }

    /// Ends the turn of a poll, and goes back to what was `around` it.
    #[cold]
    #[inline(never)]
    pub(super) fn end_turn(&self, around: Around, now: Real) {
        let (phase, acts) = around.part();
        self.phase.set(phase);
        self.acts.set(acts);
        around.polled.keep(self.turn.replace(around.turn()).next());
        if around.polled.number() != 0 && wall::is_recording() {
            wall::poll_ends(around.polled.number(), now);
        }
    }
}

/// The calling thread hits the point of this id.
#[inline]
pub(crate) fn hits(point: u32) {
    if target_fraction::has_learned() {
        hits_in_turn(point);
    }
}

#[cold]
#[inline(never)]
fn hits_in_turn(point: u32) {
    with(|thread| {
        thread.turn.set(thread.turn.get().hits(point));
        thread.acts_in_turn();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Real;

    fn ended(by: Cause) -> Option<Ended> {
        Some(Ended::new(Real(0), Real(1), by))
    }

    #[test]
    fn polls_are_counted_from_the_point_that_is_hit_first() {
        let mut turn = PollPhase(0);
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
    fn each_task_has_a_turn_of_its_own() {
        let [one, other] = [1_u64, 2];
        let again = |own| Polled::of(own, false);
        process().asked.switch_on(Switches::HAS_LEARNED);
        again(&one).keep(PollPhase(5));
        again(&other).keep(PollPhase(6));
        assert_eq!([again(&one).turn(), again(&other).turn()], [PollPhase(5), PollPhase(6)]);
        assert_eq!(Polled::of(&one, true).turn(), PollPhase(0));
        Polled::ANY.keep(PollPhase(7));
        assert_eq!(Polled::ANY.turn(), PollPhase(0));
    }

    #[test]
    fn polls_differ_by_whether_a_task_ended_the_wait() {
        let turn = PollPhase(0).next();
        let phases = [None, ended(Cause::Outside), ended(Cause::Task)].map(|it| turn.phase(it));
        assert_eq!(phases, [2, 2, 3]);
    }

    #[test]
    fn turn_and_phase_around_a_poll_survive_packing() {
        let most = target_fraction::in_phase(target_fraction::PHASES - 1);
        for (turn, phase, acts) in [(0, 0, 0), (u32::MAX, most, MOST_ACTS), (7, most, 0), (0, 0, 2)]
        {
            let around = Around::new(Polled::ANY, PollPhase(turn), phase, acts);
            assert_eq!((around.turn(), around.part()), (PollPhase(turn), (phase, acts)));
        }
    }

    #[test]
    fn late_polls_are_all_alike() {
        let late = (0..100).fold(PollPhase(0), |turn, _| turn.next());
        assert_eq!(late.next(), late);
        assert!(late.phase(ended(Cause::Task)) < target_fraction::PHASES);
        let hit = late.hits(3).next();
        assert_eq!(hit.phase(None), 0);
    }
}
