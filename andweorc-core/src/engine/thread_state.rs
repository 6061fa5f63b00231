//! The state of a thread of the program: in whose name it acts at the moment.

/// In whose name a thread acts at the moment, and whether it is idle or blocked.
///
/// A participant has virtual time of its own: a thread that polls a task, a thread that has
/// registered, a plain thread that has woken a task. All others act for the world outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ThreadState {
    // States of threads that act for the world outside come first, for `is_outside`.
    /// No participant: a worker between polls, or a thread that never registered.
    Outside,
    /// A worker between its park hooks, where another one waits in the driver.
    Idle,
    /// A worker between its park hooks that waits in the driver.
    Watching,
    /// No participant, and blocked by another thread.
    BlockedOutside,
    /// A participant that has something to do.
    Active,
    /// A participant that is blocked by another thread.
    Blocked,
    /// A worker whose last task has just completed: the runtime wakes those that join it, in the
    /// task's name. The state ends with that wake.
    Completed,
}

/// The kind of thread that a thread of the program is, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// A thread that was not asked yet, or that has registered itself.
    Unknown,
    /// A worker whose park hooks tell when it is idle.
    Worker,
    /// A plain thread, which takes part by that.
    Plain,
    /// Another kind of thread: one of the blocking pool, say, or one that polls tasks.
    Other,
}

impl ThreadState {
    /// Whether the thread acts for the world outside.
    #[inline]
    pub fn is_outside(self) -> bool {
        self <= ThreadState::BlockedOutside
    }

    /// Whether the thread is a participant that goes on, unless it is blocked.
    #[inline]
    pub fn participates(self) -> bool {
        matches!(self, ThreadState::Active | ThreadState::Blocked)
    }

    /// Whether the thread is blocked by another one.
    #[inline]
    pub fn is_blocked(self) -> bool {
        matches!(self, ThreadState::BlockedOutside | ThreadState::Blocked)
    }

    /// Whether the thread is between its park hooks.
    #[inline]
    pub fn is_idle(self) -> bool {
        matches!(self, ThreadState::Idle | ThreadState::Watching)
    }

    /// Returns the state of a thread that parks. `watches` says whether it waits in the driver.
    pub fn parked(watches: bool) -> ThreadState {
        if watches { ThreadState::Watching } else { ThreadState::Idle }
    }

    /// Returns the state of a thread that is unparked: it has something to do, for the world
    /// outside so far.
    pub fn unparked(self) -> ThreadState {
        if self.is_idle() { ThreadState::Outside } else { self }
    }

    /// Returns the state of a thread that registers. A worker that is idle stays so.
    pub fn registered(self) -> ThreadState {
        match self {
            ThreadState::Idle | ThreadState::Watching => self,
            ThreadState::BlockedOutside | ThreadState::Blocked => ThreadState::Blocked,
            ThreadState::Outside | ThreadState::Active | ThreadState::Completed => {
                ThreadState::Active
            }
        }
    }

    /// Returns the state of a thread that blocks.
    pub fn blocked(self) -> ThreadState {
        if self.is_outside() { ThreadState::BlockedOutside } else { ThreadState::Blocked }
    }

    /// Returns the state of a thread that is blocked no more and was in the state `before` as it
    /// blocked: that one, unless it has registered or parked meanwhile.
    pub fn unblocked(self, before: ThreadState) -> ThreadState {
        match self {
            ThreadState::Blocked if before.is_outside() => ThreadState::Active,
            ThreadState::Blocked | ThreadState::BlockedOutside => before,
            other => other,
        }
    }

    /// Whether a thread of this kind is told to pay. A plain one may be in a system call, which a
    /// signal would end.
    #[inline]
    pub fn is_told_to_pay(self, kind: ThreadKind) -> bool {
        self == ThreadState::Active && kind != ThreadKind::Plain
    }

    /// Returns the state of a thread after a wake that it made. What comes after the last one of a
    /// task that has completed is not that task's doing.
    #[inline]
    pub fn after_wake(self) -> ThreadState {
        if self == ThreadState::Completed { ThreadState::Outside } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadState::*;
    use super::*;

    const ALL: [ThreadState; 7] =
        [Outside, Idle, Watching, BlockedOutside, Active, Blocked, Completed];

    #[test]
    fn thread_either_participates_or_acts_for_the_world_outside_or_has_completed() {
        for state in ALL {
            let is = [state.is_outside(), state.participates(), state == Completed];
            assert_eq!(is.iter().filter(|&&is| is).count(), 1, "{state:?}");
        }
    }

    #[test]
    fn only_an_active_thread_that_is_not_plain_is_told_to_pay() {
        for state in ALL {
            assert!(!state.is_told_to_pay(ThreadKind::Plain), "{state:?}");
            assert_eq!(state.is_told_to_pay(ThreadKind::Worker), state == Active);
        }
    }

    #[test]
    fn only_the_last_wake_of_a_completed_task_ends_its_state() {
        for state in ALL.into_iter().filter(|&state| state != Completed) {
            assert_eq!(state.after_wake(), state);
        }
        assert_eq!(Completed.after_wake(), Outside);
    }

    #[test]
    fn thread_goes_on_after_a_block_as_it_was_before() {
        for before in ALL.into_iter().filter(|state| !state.is_blocked()) {
            let blocked = before.blocked();
            assert!(blocked.is_blocked() && blocked.is_outside() == before.is_outside());
            assert_eq!(blocked.unblocked(before), before);
        }
    }

    #[test]
    fn thread_that_registers_while_it_is_blocked_participates_after_it() {
        assert_eq!(Outside.blocked().registered().unblocked(Outside), Active);
    }

    #[test]
    fn worker_that_registers_while_it_is_idle_stays_idle() {
        for state in [Idle, Watching] {
            assert_eq!(state.registered(), state);
        }
    }

    #[test]
    fn thread_that_parked_while_it_was_blocked_is_not_taken_back() {
        for state in [Outside, Idle, Watching] {
            assert_eq!(state.unblocked(Active), state);
        }
    }
}
