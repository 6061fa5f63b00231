//! Polls of threads: in whose name a thread acts meanwhile, and in which order it begins one.

use super::{ThreadKind, ThreadState, seldom};
use crate::time::Real;

/// A poll of a task on a thread, which has begun and not ended.
#[derive(Clone, Copy, Debug)]
#[must_use = "a poll that begins also ends"]
pub struct ThreadPoll {
    /// The thread's state around it.
    around: ThreadState,
}

/// A step of a thread that begins a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollStep {
    /// The thread takes what it owed while it was idle, since then.
    EndRest(Real),
    /// And what it owed while it waited for its processor.
    TakeProcessorWait,
    /// The thread and the task go on together, at the later of their virtual times.
    Join,
    /// The thread pays what it owes then.
    Pay,
}

impl ThreadPoll {
    /// A thread of this kind in this state begins a poll. Returns the state and the kind that it is
    /// of from now on, too: one that took part as a plain one does so no more.
    #[inline]
    pub fn begin(state: ThreadState, kind: ThreadKind) -> (ThreadPoll, ThreadState, ThreadKind) {
        let (around, kind) = if seldom(kind == ThreadKind::Plain && state.participates()) {
            (ThreadState::Outside, ThreadKind::Other)
        } else if state == ThreadState::Completed {
            // Nobody has joined the task that completed.
            (ThreadState::Outside, kind)
        } else {
            (state, kind)
        };
        (ThreadPoll { around }, ThreadState::Active, kind)
    }

    /// Has the thread `take` the steps by which it begins one, in their order. The thread was
    /// `idle` since then, where nobody has told what it did since its last poll: most often it was.
    /// `inside` the target it goes on in its own time, which grows there: it neither has waited nor
    /// joins.
    // Always: each step is known where it is taken.
    #[inline(always)]
    pub fn take_steps(idle: Option<Real>, inside: bool, mut take: impl FnMut(PollStep)) {
        if let Some(since) = idle {
            take(PollStep::EndRest(since));
        }
        if !inside {
            take(PollStep::TakeProcessorWait);
            take(PollStep::Join);
        }
        take(PollStep::Pay);
    }

    /// Whether it is known when the thread, of this kind, is idle after the poll.
    #[inline]
    pub fn is_idle_time_told(self, kind: ThreadKind) -> bool {
        kind == ThreadKind::Worker || self.around.participates()
    }

    /// Ends it. Returns the state of the thread from now on.
    #[inline]
    pub fn end(self, completed: bool) -> ThreadState {
        if completed && self.around == ThreadState::Outside {
            ThreadState::Completed
        } else {
            self.around
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThreadState::*;

    fn around(state: ThreadState, kind: ThreadKind) -> (ThreadState, ThreadKind) {
        let (poll, polling, kind) = ThreadPoll::begin(state, kind);
        assert_eq!(polling, Active);
        (poll.end(false), kind)
    }

    #[test]
    fn poll_leaves_the_thread_as_it_was_unless_a_task_completed() {
        let (other, worker) = (ThreadKind::Other, ThreadKind::Worker);
        for state in [Outside, Idle, Watching, BlockedOutside, Active, Blocked] {
            assert_eq!(around(state, other), (state, other));
        }
        assert_eq!(around(Completed, worker), (Outside, worker), "nobody has joined it");
        assert_eq!(ThreadPoll::begin(Outside, worker).0.end(true), Completed);
        // The poll is one of a task inside another one, say.
        for state in [Idle, Watching, BlockedOutside, Active, Blocked] {
            assert_eq!(ThreadPoll::begin(state, other).0.end(true), state);
        }
    }

    #[test]
    fn plain_thread_that_polls_a_task_takes_part_no_more() {
        let plain = ThreadKind::Plain;
        for state in [Active, Blocked] {
            assert_eq!(around(state, plain), (Outside, ThreadKind::Other));
        }
        assert_eq!(around(Outside, plain), (Outside, plain), "it takes no part");
    }

    #[test]
    fn thread_rests_waits_and_joins_before_it_pays() {
        let steps = |idle, inside| {
            let mut steps = Vec::new();
            ThreadPoll::take_steps(idle, inside, |step| steps.push(step));
            steps
        };
        let (since, all) = (Real(5), [PollStep::TakeProcessorWait, PollStep::Join, PollStep::Pay]);
        assert_eq!(steps(None, false), all);
        assert_eq!(
            steps(Some(since), false),
            [vec![PollStep::EndRest(since)], all.to_vec()].concat()
        );
        assert_eq!(steps(Some(since), true), [PollStep::EndRest(since), PollStep::Pay]);
    }
}
