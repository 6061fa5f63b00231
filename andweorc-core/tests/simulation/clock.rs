//! The program's own clock, and what waits by it.

use crate::engine::Engine;
use crate::program::Missed;
use crate::rules::Clock;
use andweorc_core::time::{Nanos, Real, Virtual};
use std::cmp::Reverse;

impl Engine<'_> {
    /// The time on the program's own clock.
    pub(crate) fn program_now(&self) -> Virtual {
        match self.rules.clock {
            Clock::Virtual => self.ledger.virtual_now(self.now),
            Clock::Real => Virtual(self.now.0),
        }
    }

    /// The task waits for a timer that goes off so long `after` an instant of that clock.
    pub(crate) fn set_timer(&mut self, id: usize, from: Virtual, after: Nanos) {
        let due = Virtual(from.0 + after.0);
        self.tasks[id].timers.push(due);
        match self.rules.clock {
            Clock::Virtual => {
                self.order += 1;
                self.timers.push(Reverse((due, self.order, id, self.tasks[id].wait)));
            }
            Clock::Real => self.external(Real(due.0).max(self.now), id, None),
        }
    }

    /// Waits for one timer. Says whether it has gone off.
    pub(crate) fn sleep(&mut self, id: usize, after: Nanos) -> bool {
        if self.tasks[id].phase == 0 {
            self.tasks[id].phase = 1;
            self.set_timer(id, self.program_now(), after);
        }
        self.tasks[id].timers[0] <= self.program_now()
    }

    /// Waits for the next tick of the task's interval. Says whether that has come.
    pub(crate) fn tick(&mut self, id: usize, period: Nanos, missed: Missed) -> bool {
        let now = self.program_now();
        let due = *self.tasks[id].next_tick.get_or_insert(now);
        if self.tasks[id].phase == 0 {
            self.tasks[id].phase = 1;
            self.set_timer(id, due, Nanos::ZERO);
        }
        if due > now {
            return false;
        }
        let next = match missed {
            Missed::Burst => due.0 + period.0,
            Missed::Delay => now.0 + period.0,
            Missed::Skip => now.0 + period.0 - (now.0 - due.0) % period.0,
        };
        self.tasks[id].next_tick = Some(Virtual(next));
        true
    }

    /// When the next timer goes off.
    pub(crate) fn next_timer(&self) -> Option<Virtual> {
        self.timers.peek().map(|Reverse((due, ..))| *due)
    }

    /// Wakes those whose timers have gone off: they are ready at V.
    pub(crate) fn timers_go_off(&mut self) {
        while let Some(due) = self.next_timer()
            && self.ledger.time_until_due(due, self.now) <= Nanos::ZERO
        {
            let Some(Reverse((.., task, wait))) = self.timers.pop() else { return };
            if self.tasks[task].wait == wait {
                self.tasks[task].mail.reached(due);
                let ready = self.ledger.virtual_now(self.now);
                self.wake_at(task, None, Some(ready));
            }
        }
    }
}
