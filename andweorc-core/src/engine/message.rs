//! Messages between processes that hold an experiment together: what one that comes in does to who
//! receives it.
//!
//! | event at the receiver | rule |
//! |---|---|
//! | somebody waits for the message | `v = max(v at its park, came - L)`, and it is no wake of the world outside |
//! | the message lies in a buffer until somebody reads it | the reader goes on no earlier than `came - L` |
//! | L is greater than D of this process | `D = max(D, L)`: everyone here owes what the sender had taken |
//! | L is less than D | the receiver is held until V gets to `came - L`, and no worker is blocked |
//! | no L, or that of another experiment | the world outside |
//!
//! Between a socket and whoever learns L there may be others that pass the message on: a
//! connection's task, which is woken before anybody has read the header. Of these it is only known
//! that their peer had paid what it owed, so that they are ready at V ([`WakeSource::Loopback`]).
//! What is too early by that is held where L is known, by this rule.
//!
//! [`WakeSource::Loopback`]: super::WakeSource::Loopback
//!
//! The page of `ledger/remote.rs` says how D and L stay sound.

use super::Model;
use crate::ledger::{Account, Stamp};
use crate::time::{Real, Virtual};

/// A message, as its receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Stamp that it carries.
    pub stamp: Stamp,
    /// When it came.
    pub came: Real,
    /// Virtual time at which whoever receives it had parked. [`Virtual::NEVER`] if it did not wait.
    pub parked: Virtual,
}

impl Model<'_> {
    /// Takes a message in that is seen at `now` by who runs on the thread of `account`, if anybody
    /// does. Returns when it is due if that is so early that it is to be held until V gets there.
    pub fn received(
        &self,
        account: Option<&Account>,
        message: Message,
        now: Real,
    ) -> Option<Virtual> {
        let taken = self.ledger.raise(message.stamp, now)?;
        let due = message.came.less(taken);
        if self.is_early(due, now) {
            return Some(due);
        }
        if let Some(account) = account {
            self.ledger.absorb_message(account, taken, message.parked, now);
            self.continue_at(account, due, now);
        }
        None
    }

    /// Lets whoever runs on the thread go on no earlier than `due`, and so owe what is missing.
    /// Inside the target that is left out, as for the task that a thread [joins](Model::join).
    pub fn continue_at(&self, account: &Account, due: Virtual, now: Real) {
        if !self.ledger.is_inside(account) {
            self.join(account, due, now);
        }
    }
}
