//! A poll of a task, on the thread that polls it.

use super::poll_phase::Around;
use super::runqueue_wait::Comes;
use super::{Entered, Polled, THREAD, Thread, here, is_target, ledger, model, with};
use crate::clock;
use crate::defer;
use crate::engine::{PollStep, Rested, ThreadPoll, ThreadState};
use crate::ledger::Parked;
use crate::process::asked::Switches;
use crate::process::process;
use crate::target::Target;
use crate::time::{Nanos, Real, Virtual};
use crate::wait::Ended;
use std::mem;

/// A poll of a task on the calling thread: while it lives the thread is a participant.
#[derive(Debug)]
pub struct Poll {
    on_thread: ThreadPoll,
    /// The delay that the task had taken as the poll began.
    taken: Nanos,
    entered: Entered,
    target: &'static Target,
    stage: Stage,
    /// Another thread sees how long it lasts.
    is_watched: bool,
    /// When it ended.
    ended_at: Real,
    /// Of the poll around this one.
    outer_ended: Option<Ended>,
    outer_parked: Virtual,
    outer_waits: bool,
    outer_turn: Option<Around>,
}

/// How far a poll has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Ended,
    /// The poll has ended, and the thread owes nothing.
    CaughtUp,
    /// And has paid.
    Over,
}

impl Thread {
    /// The virtual time of the thread, which begins a poll of a task that was ready at `ready`, if
    /// there is nothing to [join](Thread::join): most often nothing is delayed.
    #[inline]
    fn caught_up_with(&self, ready: Virtual, now: Real) -> Option<Virtual> {
        let taken = self.caught_up()?;
        let is_caught_up =
            self.idle_since.get().is_none() && model().is_caught_up(taken, ready, now);
        is_caught_up.then(|| now.less(taken))
    }

    /// The virtual time of whoever acts here, where it changes; V when nobody does.
    #[cold]
    #[inline(never)]
    fn at_while_growing(&self, now: Real) -> Virtual {
        self.participant_at(now).unwrap_or_else(|| ledger().virtual_now(now))
    }

    /// The thread goes on with a task that was ready at `ready`, and pays what it owes. Returns
    /// when it has, and its virtual time then.
    #[inline(never)]
    fn join(&self, ready: Virtual, now: Real) -> (Real, Virtual) {
        self.share_no_more();
        let Some(account) = self.account(now) else {
            let began = self.catch_up(now);
            return (began, self.virtual_at(began));
        };
        let mut began = now;
        let (idle, inside) = (self.idle_since.take(), self.depth.get().is_inside());
        ThreadPoll::take_steps(idle, inside, |step| match step {
            PollStep::EndRest(since) => {
                self.resume(account, Rested::until_found(since, now), now);
            }
            PollStep::TakeProcessorWait => {
                self.absorb_runqueue_wait(account, Comes::Preempted, now);
            }
            PollStep::Join => model().join(account, ready, now),
            PollStep::Pay => began = self.catch_up(now),
        });
        (began, self.virtual_at(began))
    }
}

/// That nothing keeps a poll from beginning: see [`Poll::caught_up`].
#[derive(Clone, Copy, Debug)]
pub struct CaughtUp(Virtual);

impl Poll {
    /// Whether nothing keeps the calling thread, which owes nothing, from polling a task that was
    /// ready at `ready`: it is not [early](crate::ledger::Ledger::time_until_due) either, by more
    /// than what is too short for a pause.
    #[inline]
    pub fn caught_up(ready: Virtual, now: Real) -> Option<CaughtUp> {
        with(|thread| thread.caught_up_with(ready, now)).map(CaughtUp)
    }

    /// Pays what the thread owes, then begins a poll, whose time is that of `target`, of a task
    /// that was ready at `ready` and whose wait ended as `ended` says. `now` is a moment ago.
    pub fn begin(target: &'static Target, ready: Virtual, ended: Option<Ended>, now: Real) -> Poll {
        Poll::begin_on(
            Poll::caught_up(ready, now),
            target,
            Polled::ANY,
            (Virtual::NEVER, ready),
            ended,
            now,
        )
    }

    /// Begins a poll as [`begin`](Poll::begin) does, for a caller that has just asked whether the
    /// thread is [caught up](Poll::caught_up), and knows which task is `polled`, and when it had
    /// parked, [`Virtual::NEVER`] if it did not, in virtual time.
    #[inline]
    pub fn begin_on(
        caught_up: Option<CaughtUp>,
        target: &'static Target,
        polled: Polled,
        (parked, ready): (Virtual, Virtual),
        ended: Option<Ended>,
        now: Real,
    ) -> Poll {
        with(|thread| {
            let (began, at) =
                caught_up.map_or_else(|| thread.join(ready, now), |CaughtUp(at)| (now, at));
            let (on_thread, state, kind) = ThreadPoll::begin(thread.state.get(), thread.kind.get());
            thread.kind.set(kind);
            thread.set_state(state);
            let outer_turn = thread.begin_turn(target, polled, ended, now);
            Poll {
                on_thread,
                taken: at.delay_at(began),
                entered: thread.enter(target, began),
                target,
                stage: Stage::Open,
                is_watched: false,
                ended_at: began,
                outer_ended: thread.ended.replace(ended),
                outer_parked: thread.parked_at.replace(parked),
                outer_waits: thread.waits.replace(false),
                outer_turn,
            }
        })
    }

    /// Lets it be seen whether the poll, whose thread has other tasks wait for it, becomes
    /// [long](crate::long_polls).
    #[inline]
    pub fn watch(&mut self) {
        if process().asked.is_any_on(Switches::WATCHES_POLLS) {
            let (target, since) = (self.target.id(), self.entered.at());
            let account = here().account.get();
            self.is_watched = account.is_some_and(|account| account.poll.begin(target, since));
        }
    }

    /// The delay that the task had taken as the poll began.
    #[inline]
    pub fn local_delay(&self) -> Nanos {
        self.taken
    }

    /// Whether the task, if it parks now, is in the wait that is the target: one that began in this
    /// poll, or `wait`, that of the task itself.
    #[inline]
    pub fn waits(&self, wait: &Target) -> bool {
        THREAD.with(|thread| {
            let waits = is_target(wait) || thread.waits.get();
            thread.waits.set(waits);
            waits
        })
    }

    /// Whether it is known when `thread`, which polls the task, is idle after the poll.
    #[inline]
    fn is_idle_time_told(&self, thread: &Thread) -> bool {
        self.on_thread.is_idle_time_told(thread.kind.get())
    }

    /// How long it lasted, once it has [ended](Poll::end).
    #[inline]
    pub fn lasted(&self) -> Nanos {
        self.ended_at - self.entered.at()
    }

    /// Ends the poll at `now`, before what is owed is [caught up](Poll::catch_up). Returns the
    /// task's clock as it parks.
    // Always: each caller knows what it does not need of this.
    #[inline(always)]
    pub fn end(&mut self, completed: bool, now: Real) -> Parked {
        self.ended_at = now;
        // Not by `with`: this is inlined whatever its length.
        let thread = here();
        let writing_before = thread.writing.replace(true);
        if self.is_watched
            && let Some(account) = thread.account.get()
        {
            account.poll.end(self.entered.at(), now);
        }
        // First: what is around it is in a turn of its own.
        if let Some(around) = self.outer_turn {
            thread.end_turn(around, now);
        }
        thread.leave(self.target, &self.entered, true, now);
        let is_active = thread.state.get() == ThreadState::Active;
        let taken = if is_active { thread.caught_up() } else { None };
        let at = taken.map_or_else(|| thread.at_while_growing(now), |taken| now.less(taken));
        let told = self.is_idle_time_told(thread);
        self.stage = if taken.is_some() && told { Stage::CaughtUp } else { Stage::Ended };
        thread.ended.set(self.outer_ended);
        thread.parked_at.set(self.outer_parked);
        // A wait that began in this poll is one of the poll around it too.
        thread.waits.set(self.outer_waits || thread.waits.get());
        thread.set_state(self.on_thread.end(completed));
        thread.writing.set(writing_before);
        Parked { at, taken: at.delay_at(now) }
    }

    /// Pays what the thread owes now that the poll has ended, unless that is done. Else it is when
    /// this is dropped.
    #[inline]
    pub fn catch_up(&mut self) {
        if self.stage == Stage::CaughtUp {
            self.stage = Stage::Over;
            defer::release_due();
        } else {
            self.catch_up_at_last();
        }
    }

    #[inline(never)]
    fn catch_up_at_last(&mut self) {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Open => {
                // A panic.
                self.end(true, clock::now());
                self.stage = Stage::Over;
            }
            Stage::Ended | Stage::CaughtUp => {}
            Stage::Over => return,
        }
        let (paid, untold) = with(|thread| {
            let untold = !self.is_idle_time_told(thread);
            (thread.catch_up(self.ended_at), untold)
        });
        let released = defer::release_due();
        if untold {
            let now = if released { clock::now() } else { paid };
            THREAD.with(|thread| thread.idle_since.set(Some(now)));
        }
    }
}

impl Drop for Poll {
    /// Ends the poll if it was not (a panic), and pays what the thread owes by then.
    #[inline]
    fn drop(&mut self) {
        if self.stage != Stage::Over {
            self.catch_up_at_last();
        }
    }
}

#[cfg(test)]
impl Poll {
    /// When it began, and what was owed had been paid.
    pub(super) fn began(&self) -> Real {
        self.entered.at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::Own;
    use crate::target::target;
    use crate::thread::target_scope::SPENT;
    use crate::thread::{parked, participant_at, register, unparked, wait_begins};
    use crate::time::Speedup;
    use crate::wait::Cause;
    use andweorc_profile::TargetKind;

    /// How the wait ended of the task that is polled.
    fn ended_here() -> Option<Ended> {
        THREAD.with(|thread| thread.ended.get())
    }

    #[test]
    fn a_wait_of_the_task_that_is_polled_is_told_to_its_spans() {
        let [task, span] = ["wait told", "wait told inside"]
            .map(|name| target(TargetKind::Wait, name, None, None));
        let ended = Some(Ended::new(Real(1), Real(2), Cause::Task));
        let mut outer = Poll::begin(task, Virtual(0), ended, clock::now());
        assert_eq!(ended_here(), ended);
        let mut inner = Poll::begin(task, Virtual(0), None, clock::now());
        assert_eq!(ended_here(), None);
        wait_begins(span);
        // Neither is the target of an experiment.
        assert!(!inner.waits(span) && !outer.waits(task));
        inner.end(false, clock::now());
        assert_eq!(ended_here(), ended);
        outer.end(false, clock::now());
        assert_eq!(ended_here(), None);
    }

    #[test]
    fn virtual_time_told_while_d_grows_is_without_the_time_spent_on_telling() {
        Own::run(|own| {
            ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
            let inside = ledger().open(clock::now()).unwrap();
            ledger().enter(inside, clock::now());
            let told = std::thread::spawn(move || {
                own.enter();
                let account = register().unwrap();
                let tells = |_| {
                    let (now, spent) = (clock::now(), SPENT.get());
                    let before = ledger().local_delay(account, now);
                    let at = participant_at(now).unwrap();
                    let counted = SPENT.get() - spent;
                    let taken = ledger().local_delay(account, clock::now());
                    (at == now.less(before), counted > Nanos::ZERO && taken - before == counted)
                };
                // Where it waited for its processor behind another thread, it takes that too.
                (0..100).map(tells).collect::<Vec<_>>()
            });
            let told = told.join();
            ledger().exit(inside, clock::now(), Nanos(i64::MAX));
            ledger().close(inside, clock::now());
            ledger().end(clock::now());
            assert!(told.unwrap().contains(&(true, true)));
        })
    }

    #[test]
    fn a_thread_is_a_participant_only_while_it_polls() {
        let task = target(TargetKind::Task, "role", None, None);
        std::thread::spawn(move || {
            assert_eq!(participant_at(clock::now()), None);
            let mut poll = Poll::begin(task, Virtual(0), None, clock::now());
            assert!(participant_at(clock::now()).is_some());
            poll.end(false, clock::now());
            drop(poll);
            assert_eq!(participant_at(clock::now()), None);
            Poll::begin(task, Virtual(0), None, clock::now()).end(true, clock::now());
            assert!(participant_at(clock::now()).is_some(), "wakes who joins it");
            parked(true);
            assert_eq!(participant_at(clock::now()), None);
            unparked();
            register();
            assert!(participant_at(clock::now()).is_some());
        })
        .join()
        .unwrap();
        assert!(task.count() >= 2);
    }
}
