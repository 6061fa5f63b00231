//! Plain threads: which threads of a program take part of their own accord.
//!
//! One that wakes a task, and belongs to no runtime, has virtual time of its own from then on. All
//! others act for the world outside.

use super::{ThreadKind, ThreadState};

/// A thread that wakes a task and is no participant, as far as its shell knows it.
#[derive(Clone, Copy, Debug)]
pub struct Stranger {
    /// State of the thread: in whose name it acts.
    pub state: ThreadState,
    /// Whether it has polled a task, as far as that is known.
    pub has_polled: bool,
    /// Whether it reads the real clock where others read the virtual one: its time is that of the
    /// world outside.
    pub reads_real_time: bool,
}

impl Stranger {
    /// Returns the kind that the thread is. `is_of_a_runtime` is asked only where all else says
    /// that it is plain, since the question has side effects on a thread.
    pub fn kind(self, is_of_a_runtime: impl FnOnce() -> bool) -> ThreadKind {
        let is_plain = self.state == ThreadState::Outside
            && !self.has_polled
            && !self.reads_real_time
            && !is_of_a_runtime();
        if is_plain { ThreadKind::Plain } else { ThreadKind::Other }
    }
}

impl ThreadKind {
    /// Whether a thread of this kind is to be asked which it is. The program's waits are seen, or
    /// not: a plain thread would pay again what passed while it was blocked and nobody saw that.
    #[inline]
    pub fn is_to_be_asked(self, waits_are_seen: bool) -> bool {
        self == ThreadKind::Unknown && waits_are_seen
    }

    /// A thread of this kind, `has_account` or not, takes part if it is plain. Returns the state
    /// that it is in from now on, if it does, and its kind.
    pub fn take_part(self, has_account: bool) -> (Option<ThreadState>, ThreadKind) {
        match self {
            ThreadKind::Plain if has_account => (Some(ThreadState::Active), self),
            _ => (None, ThreadKind::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Stranger =
        Stranger { state: ThreadState::Outside, has_polled: false, reads_real_time: false };

    #[test]
    fn thread_of_a_runtime_or_of_the_world_outside_is_not_plain() {
        assert_eq!(PLAIN.kind(|| false), ThreadKind::Plain);
        assert_eq!(PLAIN.kind(|| true), ThreadKind::Other);
        let others = [
            Stranger { state: ThreadState::Idle, ..PLAIN },
            Stranger { state: ThreadState::Completed, ..PLAIN },
            Stranger { has_polled: true, ..PLAIN },
            Stranger { reads_real_time: true, ..PLAIN },
        ];
        for other in others {
            let kind = other.kind(|| panic!("{other:?} is known without being asked"));
            assert_eq!(kind, ThreadKind::Other);
        }
    }

    #[test]
    fn only_a_plain_thread_with_an_account_takes_part() {
        let active = Some(ThreadState::Active);
        assert_eq!(ThreadKind::Plain.take_part(true), (active, ThreadKind::Plain));
        assert_eq!(ThreadKind::Plain.take_part(false), (None, ThreadKind::Other));
        assert_eq!(ThreadKind::Other.take_part(true), (None, ThreadKind::Other));
    }

    #[test]
    fn thread_is_asked_once_and_only_where_its_waits_are_seen() {
        assert!(ThreadKind::Unknown.is_to_be_asked(true));
        assert!(!ThreadKind::Unknown.is_to_be_asked(false));
        for kind in [ThreadKind::Worker, ThreadKind::Plain, ThreadKind::Other] {
            assert!(!kind.is_to_be_asked(true), "{kind:?}");
        }
    }
}
