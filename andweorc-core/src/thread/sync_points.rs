//! Moments in which others see what the participant on the calling thread does: it pays first.

use super::wakeup_latency::note_wake;
use super::{Thread, here, with};
use crate::clock;
use crate::engine::ThreadState;
use crate::time::{Real, Virtual};
use std::panic::Location;
use std::ptr;

/// Pauses for as long as the calling thread owes delay, unless it is inside the target or has no
/// account.
///
/// While plain threads are sampled, the place of the call is also one that what they do next is
/// known by.
#[inline]
#[track_caller]
pub fn catch_up() {
    let caller = Location::caller();
    with(|thread| {
        if !thread.owes_nothing() {
            thread.catch_up_now();
        }
        thread.acted_at(ptr::from_ref(caller).addr());
    });
}

/// The calling thread has done one thing and goes on with the next, in the same poll: if it is a
/// participant it pays what it owes.
///
/// Its next act may be seen by others without a wake: it puts a message into the channel of a
/// task that is busy, or unlocks a lock that nobody waits for yet. Without this an actor found the
/// questions of its clients in its channel before they were asked, and waited for others in their
/// place: its speedup by 75 % would take 63 % off the median latency, said the prediction, where it
/// takes 79 % (with this: 77 %).
#[inline]
pub fn sync_point() {
    if !here().state.get().participates() {
        return;
    }
    with(|thread| {
        if !thread.owes_nothing() {
            thread.catch_up_now();
        }
    });
}

/// An act that is about to wake a task: when it is, and in whose name.
#[derive(Clone, Copy, Debug)]
pub struct BeforeWake {
    /// When.
    pub at: Real,
    /// The virtual time of the participant that runs on the calling thread, in whose name it acts.
    /// `None` when it acts for the world outside.
    pub participant: Option<Virtual>,
    /// This is its last act: [`after_final_wake`] is to be called after it.
    pub last: bool,
}

/// The calling thread is about to wake a task. If it is a participant it first pays what it owes:
/// what it does sets more going than a wake carries a virtual time to. A second task woken in one
/// poll makes tokio hand the first to another worker, which then runs it ahead of its time.
#[inline]
pub fn before_wake() -> BeforeWake {
    with(|thread| {
        let state = thread.state.get();
        if state.is_outside() {
            return BeforeWake { at: clock::now(), participant: None, last: false };
        }
        thread.acts_in_turn();
        if state.participates()
            && let Some(taken) = thread.caught_up()
        {
            let at = clock::now();
            note_wake(taken, at);
            return BeforeWake { at, participant: Some(at.less(taken)), last: false };
        }
        thread.before_wake(state)
    })
}

impl Thread {
    /// The participant that runs here is about to wake a task, and may owe something.
    #[cold]
    #[inline(never)]
    fn before_wake(&self, state: ThreadState) -> BeforeWake {
        if state.participates() && !self.owes_nothing() {
            self.catch_up_now();
        }
        let at = clock::now();
        let participant = self.participant_at(at);
        if let Some(participant) = participant {
            note_wake(participant.delay_at(at), at);
        }
        BeforeWake { at, participant, last: state == ThreadState::Completed }
    }
}

/// The participant that runs on the calling thread has woken a task. If it was one that had just
/// completed, that was its last act: whoever joined it. What comes next on this thread is not its
/// doing.
pub fn after_final_wake() {
    with(|thread| {
        let state = thread.state.get();
        if state.after_wake() != state {
            thread.set_state(state.after_wake());
        }
    });
}
