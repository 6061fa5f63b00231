//! The ground that clocks stand on: the ledger, and the rules with a switch each.

use crate::ledger::{Account, Ledger};
use crate::time::{Nanos, Real, Virtual};

/// Rules of tasks' clocks. The [shipped](Rules::SHIPPED) ones are constants to the compiler. Each
/// can be turned off, to show what it is for: by the simulation, and in real programs by a build
/// with `--cfg andweorc_without="RULE"` (`benches/ablation/run.sh`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Tasks have clocks (`task_clocks`): a thread goes on in the virtual time of the task that it
    /// polls, and what is too early is held. Otherwise threads alone have clocks: whatever a thread
    /// polls goes on in its time, and nothing is held.
    pub task_clocks: bool,
    /// Least time ahead of V for which a wake is held or a poll deferred. For less, the thread that
    /// polls the task pauses for the rest, which is shorter than it would be late after another
    /// wake. The greatest there is holds nothing.
    pub min_hold: Nanos,
    /// A hold is raised by what comes from outside until the task is polled (`raised_holds`): the
    /// task is ready when the latest is due, since it finds all of it. Otherwise it is ready when
    /// the first is.
    pub raised_holds: bool,
    /// A short poll that began no wait leaves those that go on as they were (`ongoing_waits`).
    /// Otherwise they count as begun by it, and what D grew before it is lost to them.
    pub ongoing_waits: bool,
    /// A thread that is notified by one with credit has the credit too (`credit_passes`): what one
    /// comes late by from its pause, all who wait for it come late by. Otherwise no thread has
    /// credit but by its own pauses.
    pub credit_passes: bool,
}

impl Rules {
    /// The rules that ship.
    pub const SHIPPED: Rules = Rules {
        task_clocks: !cfg!(andweorc_without = "task_clocks"),
        min_hold: Nanos::from_micros(20),
        raised_holds: !cfg!(andweorc_without = "raised_holds"),
        ongoing_waits: !cfg!(andweorc_without = "ongoing_waits"),
        credit_passes: !cfg!(andweorc_without = "credit_passes"),
    };
}

/// The ledger of a program, and the rules by which its tasks' clocks go.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// The global clock, and those of threads.
    pub ledger: &'a Ledger,
    /// The rules of tasks' clocks.
    pub rules: Rules,
}

impl<'a> Model<'a> {
    /// A program that goes by the rules that ship.
    #[inline]
    pub fn shipped(ledger: &'a Ledger) -> Model<'a> {
        Model { ledger, rules: Rules::SHIPPED }
    }

    /// Whether a task that is ready at `ready` is so early at `now` that it is to be held.
    #[inline]
    pub fn is_early(&self, ready: Virtual, now: Real) -> bool {
        self.rules.task_clocks && self.ledger.time_until_due(ready, now) > self.rules.min_hold
    }

    /// Whether a thread that has taken this delay may go on at once with a task that was ready at
    /// `ready`: it owes nothing more for that.
    #[inline]
    pub fn is_caught_up(&self, taken: Nanos, ready: Virtual, now: Real) -> bool {
        !self.rules.task_clocks || taken <= ready.delay_at(now)
    }

    /// A thread begins a poll at `now` of a task that was ready at `ready`. The two go on together,
    /// at the later of their virtual times.
    #[inline]
    pub fn join(&self, account: &Account, ready: Virtual, now: Real) {
        if self.rules.task_clocks {
            self.ledger.join(account, ready, now);
        }
    }
}
