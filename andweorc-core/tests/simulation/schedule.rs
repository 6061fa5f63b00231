//! Scheduling of tasks: tokio's queues, the blocking pool, and what is deferred.

use crate::engine::{Act, Engine, Held, Thread};
use crate::program::Queues;
use crate::rules::{Releases, Wakes};
use crate::task::State;
use andweorc_core::engine::Rested;
use andweorc_core::time::{Nanos, Virtual};
use std::cmp::Reverse;

/// How many operations a poll may do, in tokio.
pub(crate) const BUDGET: u32 = 128;

/// How many polls in a row come from the LIFO slot at most, in tokio.
const LIFO_POLLS: u32 = 3;

/// After so many polls a worker looks at the global queue first, in tokio.
const GLOBAL_INTERVAL: u32 = 61;

impl Engine<'_> {
    /// An idle thread takes up a task, if there is one.
    pub(crate) fn work(&mut self, i: usize) -> bool {
        let Act::Idle { since } = self.threads[i].act else { return false };
        let sleeps = self.threads[i].worker && self.driver.is_some();
        let task = if sleeps { self.next_or_sleep(i) } else { self.next_task(i) };
        let Some(task) = task else { return false };
        let (now, thread) = (self.now, &self.threads[i]);
        // What a thread owed while it was idle it takes as it is handed a task of the pool, or as
        // it begins a poll. One that slept took it as it woke up.
        let mut idle = (!sleeps).then_some(since);
        if self.rules.wakes == Wakes::Coz {
            let woken = self.tasks[task].woken_by_participant && since < now;
            let all = if woken { Nanos(i64::MAX / 4) } else { Nanos::ZERO };
            idle = None;
            self.model().end_rest(
                thread.account,
                Rested::for_at_most(since, all),
                Nanos::ZERO,
                now,
            );
        } else if !thread.worker {
            let rested = Rested::in_pool(thread.kind, idle.take(), self.tasks[task].by, now);
            if let Some(rested) = rested {
                self.model().end_rest(thread.account, rested, Nanos::ZERO, now);
            }
        }
        if !self.start_poll(i, task, idle) {
            self.threads[i].act = Act::Idle { since: now };
        }
        true
    }

    fn next_task(&mut self, i: usize) -> Option<usize> {
        if !self.threads[i].worker {
            return self.threads[i].local.pop_front();
        }
        self.next_own(i).or_else(|| self.steal(i))
    }

    /// Without taking from others.
    pub(crate) fn next_own(&mut self, i: usize) -> Option<usize> {
        let thread = &mut self.threads[i];
        thread.polls = thread.polls.wrapping_add(1);
        if thread.lifo_polls < LIFO_POLLS
            && let Some(task) = thread.lifo.take()
        {
            thread.lifo_polls += 1;
            // What the LIFO slot runs shares the budget of what it follows.
            if thread.budget > 0 {
                return Some(task);
            }
            thread.local.push_back(task);
        }
        thread.budget = BUDGET;
        thread.lifo_polls = 0;
        if thread.polls.is_multiple_of(GLOBAL_INTERVAL)
            && let Some(task) = self.global.pop_front()
        {
            return Some(task);
        }
        let own = thread.local.pop_front().or_else(|| thread.lifo.take());
        own.or_else(|| self.global.pop_front())
    }

    /// Takes half of what waits at another worker.
    pub(crate) fn steal(&mut self, i: usize) -> Option<usize> {
        if self.program.queues != (Queues::Local { lifo_slot: true, stealing: true })
            && self.program.queues != (Queues::Local { lifo_slot: false, stealing: true })
        {
            return None;
        }
        let workers = self.program.workers;
        let from = (1..workers)
            .map(|offset| (i + offset) % workers)
            .find(|&other| !self.threads[other].local.is_empty())?;
        let half = self.threads[from].local.len().div_ceil(2);
        let stolen: Vec<usize> = self.threads[from].local.drain(..half).collect();
        self.threads[i].local.extend(stolen);
        self.threads[i].local.pop_front()
    }

    /// A ready task gets into a queue. `by` is the thread whose task woke it.
    pub(crate) fn push(&mut self, task: usize, by: Option<usize>, participant: bool) {
        let queued = &mut self.tasks[task];
        queued.woken_by_participant = participant;
        let blocking = queued.blocking;
        match queued.state {
            State::Running => queued.state = State::Notified,
            State::Queued | State::Notified | State::Done => {}
            State::Idle if blocking => {
                queued.state = State::Queued;
                let idle = |thread: &Thread| {
                    !thread.worker
                        && matches!(thread.act, Act::Idle { .. })
                        && thread.local.is_empty()
                };
                let free = self.threads.iter().position(idle);
                let free = match free {
                    Some(free) => free,
                    None => self.open_thread(false),
                };
                self.threads[free].local.push_back(task);
            }
            State::Idle => {
                queued.state = State::Queued;
                self.sets_going(by.filter(|_| participant));
                let looking = self.driver.as_ref().and_then(|driver| driver.looking);
                let by = by.filter(|&by| self.threads[by].worker).or(looking);
                let more = match (self.program.queues, by) {
                    (Queues::Local { lifo_slot: true, .. }, Some(by)) => {
                        let worker = &mut self.threads[by];
                        let before = worker.lifo.replace(task);
                        worker.local.extend(before);
                        before.is_some()
                    }
                    (Queues::Local { .. }, Some(by)) => {
                        self.threads[by].local.push_back(task);
                        true
                    }
                    _ => {
                        self.global.push_back(task);
                        true
                    }
                };
                // Who looks tells others when it is done.
                if more && looking.is_none() {
                    self.notify();
                }
            }
        }
    }

    /// A task whose poll is deferred, and which was not held, is so until V gets to `due`.
    pub(crate) fn is_held(&mut self, task: usize, due: Virtual) {
        if self.tasks[task].unseen {
            self.is_held_for_a_wake(task, due);
        } else {
            self.defer(Held::Task(task), due);
        }
    }

    /// Holds a task, which the world outside has woken, until V gets to `due`, for the `last` time
    /// before its next poll or not.
    pub(crate) fn hold_woken(&mut self, task: usize, due: Virtual, last: bool) {
        if self.tasks[task].clock.hold(due, last) {
            self.is_held_for_a_wake(task, due);
        }
    }

    fn is_held_for_a_wake(&mut self, task: usize, due: Virtual) {
        if self.driver.is_none() || self.rules.releases == Releases::ByThread {
            return self.defer(Held::Task(task), due);
        }
        self.order += 1;
        self.woken.push(Reverse((due, self.order, task)));
    }

    pub(crate) fn defer(&mut self, held: Held, due: Virtual) {
        self.order += 1;
        self.deferred.push(Reverse((due, self.order, held)));
    }

    /// When, in virtual time, the thread of the deferral queue will pass on what is first in it.
    pub(crate) fn next_release(&self) -> Option<Virtual> {
        let Reverse((due, ..)) = self.deferred.peek()?;
        match &self.driver {
            None => Some(*due),
            Some(driver) => driver.releases().then(|| Virtual(due.0 - driver.handoff().0)),
        }
    }

    /// When, in virtual time, the next wake comes back through the driver.
    pub(crate) fn next_woken(&self) -> Option<Virtual> {
        let (Reverse((due, ..)), driver) = (self.woken.peek()?, self.driver.as_ref()?);
        Some(Virtual(due.0 - driver.handoff_in_driver().0))
    }

    /// Passes on what is first in the queue. `by` is the worker that does, if it is not the queue's
    /// own thread.
    pub(crate) fn pass_on(&mut self, by: Option<usize>) {
        let Some(Reverse((due, _, held))) = self.deferred.pop() else { return };
        match held {
            Held::Task(task) => self.is_due(task, by),
            Held::Part { task, wait, part } => self.released(task, wait, part, due),
        }
    }

    /// A busy worker passes on what is due.
    pub(crate) fn release_between_polls(&mut self, i: usize) {
        while self.driver.is_some()
            && let Some(Reverse((due, ..))) = self.deferred.peek()
            && self.ledger.time_until_due(*due, self.now) <= Nanos::ZERO
        {
            self.pass_on(Some(i));
        }
    }
}
