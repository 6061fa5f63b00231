//! Futures that are profiled inside a profiled task: each waits for the world outside by itself,
//! and has its own clock.

use crate::engine::{Engine, Held};
use crate::program::External;
use andweorc_core::ledger::Parked;
use andweorc_core::time::{Real, Virtual};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    parked: Parked,
    ready: Virtual,
    by_outside: Real,
    held: bool,
    answer: Real,
    done: bool,
}

impl Engine<'_> {
    /// How much a part is early, if it is by so much that it is deferred.
    fn defers(&self, ready: Virtual) -> bool {
        self.rules.defer_from.is_some_and(|least| self.ledger.early(ready, self.now) > least)
    }

    fn hold_part(&mut self, task: usize, part: usize, due: Virtual) {
        let wait = self.tasks[task].wait;
        if !std::mem::replace(&mut self.tasks[task].parts[part].held, true) {
            self.defer(Held::Part { task, wait, part }, due);
        }
    }

    /// The world outside wakes a part; says whether it is deferred.
    pub(crate) fn part_answered(&mut self, task: usize, part: usize) -> bool {
        let (now, floor) = (self.now, self.ledger.floor());
        let woken = &mut self.tasks[task].parts[part];
        woken.by_outside = now;
        let due = now.less(woken.parked.taken.max(floor));
        let defers = self.defers(due);
        if defers {
            self.hold_part(task, part, due);
        }
        defers
    }

    /// A part was deferred until now: it wakes the task around it.
    pub(crate) fn released(&mut self, task: usize, wait: u64, part: usize, due: Virtual) {
        if self.tasks[task].wait == wait {
            self.tasks[task].parts[part].held = false;
            let entity = self.rules.parts.wake_as_entity.then_some(due);
            self.wake_at(task, None, entity);
        }
    }

    /// `join!` of them: polls all that are not done.
    pub(crate) fn poll_parts(&mut self, i: usize, id: usize, all: &[External]) -> bool {
        let (now, floor) = (self.now, self.ledger.floor());
        if self.tasks[id].phase == 0 {
            self.tasks[id].phase = 1;
            for (n, external) in all.iter().enumerate() {
                let (born, answer) = (self.clock(i), self.ask(id, external));
                let parked = Parked { at: born, taken: born.delay_at(now) };
                let (ready, by_outside) = (born, Real::NEVER);
                let part = Part { parked, ready, by_outside, held: false, answer, done: false };
                self.tasks[id].parts.push(part);
                self.external(answer, id, Some(n));
            }
        }
        for n in 0..all.len() {
            let part = &mut self.tasks[id].parts[n];
            if part.done {
                continue;
            }
            let mut ready = part.ready;
            let by_outside = std::mem::replace(&mut part.by_outside, Real::NEVER);
            if by_outside != Real::NEVER {
                ready = ready.min(part.parked.woken_outside(by_outside, floor));
            }
            part.ready = ready;
            if ready != Virtual::NEVER && self.defers(ready) {
                self.hold_part(id, n, ready);
                continue;
            }
            if ready != Virtual::NEVER && self.threads[i].entered.is_none() {
                self.ledger.join(self.threads[i].account, ready, now);
            }
            let at = self.clock(i);
            let part = &mut self.tasks[id].parts[n];
            part.ready = Virtual::NEVER;
            part.done = part.answer <= now;
            if ready != Virtual::NEVER || !self.rules.parts.keep_clock {
                part.parked = Parked { at, taken: at.delay_at(now) };
            }
        }
        self.tasks[id].parts.iter().all(|part| part.done)
    }
}
