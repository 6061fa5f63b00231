//! Messages to and from other processes that hold the same experiment, sent and received by who
//! runs on the calling thread.

use super::runqueue_wait::Comes;
use super::{Thread, ledger, model, with};
use crate::clock;
use crate::engine::{Message, ThreadKind};
use crate::ledger::Stamp;
use crate::time::{Real, Virtual};

/// Gives the experiment or baseline that is held next the number by which other processes know it.
/// `None` if none takes part, as in each one that gets no number.
pub fn number_next(experiment: Option<u32>) {
    ledger().number_next(experiment);
}

/// The number of the experiment or baseline that is held, if other processes take part in it.
#[inline]
pub fn current_experiment() -> Option<u32> {
    if !ledger().is_held() {
        return None;
    }
    ledger().shared_number()
}

/// Makes the stamp of a message that the calling thread is about to send, in the name of the task
/// that it polls, or of its own. A participant pays first, as before any act that others see.
///
/// `None` while no experiment is held that other processes take part in: the message carries
/// nothing then.
#[inline]
pub fn stamp() -> Option<Stamp> {
    if !ledger().is_held() {
        return None;
    }
    ledger().shared_number()?;
    with(Thread::stamp)
}

/// Takes in the stamp of a message that came at `came`, on behalf of the task that the calling
/// thread polls, or of the thread.
///
/// Returns when the message is due, if that is so early that the task is not to see it yet: it is
/// to be held until V gets there, as by a timer of the virtual clock, and goes on with the message
/// then. This is not called again for that. Meanwhile the poll ends, for a worker has others to
/// poll. A plain thread that takes part pauses in here instead, and gets `None`.
///
/// A message without a stamp, or with that of another experiment, comes from the world outside, and
/// so does its wake: nothing happens here.
#[inline]
pub fn received(stamp: Option<Stamp>, came: Real) -> Option<Virtual> {
    if !ledger().is_held() {
        return None;
    }
    let stamp = stamp?;
    with(|thread| thread.receive(stamp, came))
}

impl Thread {
    #[cold]
    #[inline(never)]
    fn stamp(&self) -> Option<Stamp> {
        if self.state.get().participates() && !self.owes_nothing() {
            self.catch_up_now();
        }
        let now = clock::now();
        ledger().stamp(self.participant_at(now).map(|at| at.delay_at(now)), now)
    }

    #[cold]
    #[inline(never)]
    fn receive(&self, stamp: Stamp, came: Real) -> Option<Virtual> {
        let now = clock::now();
        let message =
            Message { stamp, came: Real(came.0.min(now.0)), parked: self.parked_at.get() };
        if !self.state.get().participates() {
            return model().received(None, message, now);
        }
        // Credited up to now by what it was before: L of the account is the thread's.
        self.share_no_more();
        let account = self.account(now);
        if let Some(account) = account
            && !self.depth.get().is_inside()
        {
            self.absorb_runqueue_wait(account, Comes::Preempted, now);
        }
        let mut due = model().received(account, message, now);
        if let (Some(account), Some(early)) = (account, due)
            && self.kind.get() == ThreadKind::Plain
        {
            model().continue_at(account, early, now);
            due = None;
        }
        if due.is_none() {
            self.catch_up(now);
        }
        self.share_anew();
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::Own;
    use crate::target::target;
    use crate::thread::Poll;
    use crate::time::{Nanos, Speedup};
    use andweorc_profile::TargetKind;

    const MS: fn(i64) -> Nanos = Nanos::from_millis;

    #[test]
    fn stamps_are_made_and_taken_in_only_while_a_numbered_experiment_is_held() {
        Own::run(|_| {
            let message = Some(Stamp { experiment: 7, taken: MS(1) });
            assert_eq!((stamp(), current_experiment()), (None, None));
            number_next(Some(7));
            assert_eq!((stamp(), current_experiment()), (None, None));
            ledger().begin(Speedup::ZERO, clock::now());
            let own = Stamp { experiment: 7, taken: Nanos::ZERO };
            assert_eq!((stamp(), current_experiment()), (Some(own), Some(7)));
            ledger().end(clock::now());
            assert_eq!((stamp(), current_experiment()), (None, None));
            // The next one is the process's own: the message is one of the world outside.
            ledger().begin(Speedup::ZERO, clock::now());
            assert_eq!((stamp(), current_experiment()), (None, None));
            assert_eq!(received(message, clock::now()), None);
            assert_eq!(ledger().global_delay(clock::now()), Nanos::ZERO);
            ledger().end(clock::now());
        })
    }

    #[test]
    fn task_is_held_for_a_message_whose_sender_had_taken_less() {
        Own::run(|_| {
            number_next(Some(1));
            let began = Real(clock::now().0 - MS(100).0);
            ledger().begin(Speedup::new(0.5).unwrap(), began);
            let task = target(TargetKind::Task, "receives", None, None);
            // A message whose sender had taken 20 ms raises D, and one of 5 ms is early then.
            let ahead = Stamp { experiment: 1, taken: MS(20) };
            assert_eq!(received(Some(ahead), clock::now()), None);
            let now = clock::now();
            assert_eq!(ledger().global_delay(now), MS(20));
            let mut poll = Poll::begin(task, ledger().virtual_now(now), None, now);
            let came = clock::now();
            let behind = Stamp { experiment: 1, taken: MS(5) };
            assert_eq!(received(Some(behind), came), Some(came.less(MS(5))));
            assert_eq!(stamp().map(|stamp| stamp.taken), Some(MS(20)), "nobody paid for it");
            poll.end(true, clock::now());
            drop(poll);
            ledger().end(clock::now());
        })
    }
}
