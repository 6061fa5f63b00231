//! Futures that are profiled inside a profiled task: each waits for the world outside by itself,
//! and has its own clock.

use crate::engine::{Engine, Held};
use crate::program::External;
use crate::task::external;
use andweorc_core::engine::{Effect, Parking, PollEnded, TaskClock, WaitHint};
use andweorc_core::time::{Nanos, Real, Virtual};

/// One of them.
pub(crate) struct Part {
    clock: TaskClock,
    parking: Parking,
    answer: Real,
    done: bool,
}

impl Engine<'_> {
    /// The world outside wakes a part; says whether it is deferred.
    pub(crate) fn part_answered(&mut self, task: usize, part: usize) -> bool {
        let (model, now, wait) = (self.model(), self.now, self.tasks[task].wait);
        let clock = &self.tasks[task].parts[part].clock;
        let Effect::Hold(due) = clock.woken(model, external(now), now) else { return false };
        if clock.hold(due, false) {
            self.defer(Held::Part { task, wait, part }, due);
        }
        true
    }

    /// A part was deferred until now: it wakes the task around it.
    pub(crate) fn released(&mut self, task: usize, wait: u64, part: usize, due: Virtual) {
        if self.tasks[task].wait == wait {
            // A part waits for one thing: nothing else came meanwhile.
            self.tasks[task].parts[part].clock.let_go();
            let participant = self.rules.parts.wake_as_participant.then_some(due);
            self.wake_at(task, None, participant);
        }
    }

    /// `join!` of them: polls all that are not done.
    pub(crate) fn poll_parts(&mut self, i: usize, id: usize, all: &[External]) -> bool {
        let (now, model) = (self.now, self.model());
        if self.tasks[id].phase == 0 {
            self.tasks[id].phase = 1;
            for (n, external) in all.iter().enumerate() {
                let (born, answer) = (self.clock(i), self.ask(id, external));
                let (clock, parking) =
                    (TaskClock::new(born.delay_at(now), born), Parking::born(born));
                self.tasks[id].parts.push(Part { clock, parking, answer, done: false });
                self.external(answer, id, Some(n));
            }
        }
        for n in 0..all.len() {
            let (task, account) = (&self.tasks[id], self.threads[i].account);
            let (part, wait) = (&task.parts[n], task.wait);
            if part.done {
                continue;
            }
            let ready = part.clock.take_ready(model, part.parking.at);
            let woken = ready != Virtual::NEVER;
            if woken && model.is_early(ready, now) {
                if part.clock.defer_poll(ready) {
                    self.defer(Held::Part { task: id, wait, part: n }, ready);
                }
                continue;
            }
            if woken && self.threads[i].entered.is_none() {
                model.join(account, ready, now);
            }
            let at = self.clock(i);
            let keeps_clock = self.rules.parts.keep_clock;
            let part = &mut self.tasks[id].parts[n];
            part.done = part.answer <= now;
            let poll = part.clock.poll_begun(at.delay_at(now), woken || !keeps_clock);
            let (lasted, hint) = (Nanos::ZERO, WaitHint::External);
            let ended = PollEnded { at, lasted, began_wait: true, hint };
            part.clock.poll_ended(model, poll, &mut part.parking, ended, now);
        }
        self.tasks[id].parts.iter().all(|part| part.done)
    }
}
