//! Things that tasks share: semaphores (which are also mutexes and RwLocks), channels, notifies,
//! servers outside.

use crate::blocked::Lock;
use crate::engine::Engine;
use crate::program::Program;
use andweorc_core::time::{Nanos, Real};
use std::collections::VecDeque;

/// A fair semaphore: permits go to who waits longest.
#[derive(Default)]
pub(crate) struct Semaphore {
    permits: u32,
    waiters: VecDeque<(usize, u32)>,
}

#[derive(Default)]
pub(crate) struct Channel {
    /// Index of the semaphore of its free places.
    pub(crate) places: usize,
    /// Messages, each as the task that waits for its answer, if one does.
    messages: VecDeque<Option<usize>>,
    receivers: VecDeque<usize>,
}

#[derive(Default)]
pub(crate) struct Notify {
    permit: bool,
    waiters: VecDeque<usize>,
}

pub(crate) struct Shared {
    pub(crate) semaphores: Vec<Semaphore>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) locks: Vec<Lock>,
    notifies: Vec<Notify>,
    /// When each place of each server is free.
    servers: Vec<Vec<Real>>,
}

impl Shared {
    pub(crate) fn new(program: &Program) -> Shared {
        let permits = program.semaphores.iter().chain(&program.channels);
        let own = program.semaphores.len();
        let channel = |i| Channel { places: own + i, ..Channel::default() };
        Shared {
            semaphores: permits
                .map(|&permits| Semaphore { permits, ..Semaphore::default() })
                .collect(),
            channels: (0..program.channels.len()).map(channel).collect(),
            locks: (0..program.locks).map(|_| Lock::default()).collect(),
            notifies: (0..program.notifies).map(|_| Notify::default()).collect(),
            servers: program.servers.iter().map(|&places| vec![Real(0); places]).collect(),
        }
    }

    /// When a server is done with a request that comes now.
    pub(crate) fn serve(&mut self, server: usize, now: Real, cost: Nanos) -> Real {
        let free = self.servers[server].iter_mut().min().expect("a server has a place");
        *free = (*free).max(now) + cost;
        *free
    }
}

impl Engine<'_> {
    /// Tries to get permits, and gets in line for them at the first try.
    pub(crate) fn acquire(&mut self, task: usize, semaphore: usize, permits: u32) -> bool {
        if self.tasks[task].phase == 0 {
            self.tasks[task].phase = 1;
            let semaphore = &mut self.shared.semaphores[semaphore];
            let free = semaphore.waiters.is_empty() && semaphore.permits >= permits;
            if free {
                semaphore.permits -= permits;
            } else {
                semaphore.waiters.push_back((task, permits));
            }
            self.tasks[task].granted = free;
        }
        self.tasks[task].granted
    }

    /// Adds permits, up to so many.
    pub(crate) fn fill(&mut self, by: usize, semaphore: usize, most: u32) {
        let missing = most - self.shared.semaphores[semaphore].permits;
        self.release(by, semaphore, missing);
    }

    pub(crate) fn release(&mut self, by: usize, semaphore: usize, permits: u32) {
        self.shared.semaphores[semaphore].permits += permits;
        loop {
            let semaphore = &mut self.shared.semaphores[semaphore];
            match semaphore.waiters.front() {
                Some(&(task, needed)) if needed <= semaphore.permits => {
                    semaphore.permits -= needed;
                    semaphore.waiters.pop_front();
                    self.tasks[task].granted = true;
                    self.wake(task, Some(by));
                }
                _ => return,
            }
        }
    }

    /// Puts a message where a place was got for it.
    pub(crate) fn put(&mut self, by: usize, channel: usize, answer_to: Option<usize>) {
        let channel = &mut self.shared.channels[channel];
        channel.messages.push_back(answer_to);
        if let Some(receiver) = channel.receivers.pop_front() {
            self.wake(receiver, Some(by));
        }
    }

    /// Takes a message, or waits in line for one.
    pub(crate) fn take(&mut self, by: usize, task: usize, channel: usize) -> bool {
        let places = self.shared.channels[channel].places;
        let channel = &mut self.shared.channels[channel];
        if let Some(message) = channel.messages.pop_front() {
            channel.receivers.retain(|&receiver| receiver != task);
            self.tasks[task].message = message;
            self.release(by, places, 1);
            return true;
        }
        if !channel.receivers.contains(&task) {
            channel.receivers.push_back(task);
        }
        false
    }

    /// Stops to wait for a message.
    pub(crate) fn leave_channel(&mut self, task: usize, channel: usize) {
        self.shared.channels[channel].receivers.retain(|&receiver| receiver != task);
    }

    pub(crate) fn notify_one(&mut self, by: usize, notify: usize) {
        let notify = &mut self.shared.notifies[notify];
        match notify.waiters.pop_front() {
            Some(task) => {
                self.tasks[task].notified = true;
                self.wake(task, Some(by));
            }
            None => notify.permit = true,
        }
    }

    pub(crate) fn notify_all(&mut self, by: usize, notify: usize) {
        for task in std::mem::take(&mut self.shared.notifies[notify].waiters) {
            self.tasks[task].notified = true;
            self.wake(task, Some(by));
        }
    }

    /// Whether the task was notified; gets in line at the first try.
    pub(crate) fn notified(&mut self, task: usize, notify: usize, first: bool) -> bool {
        if first {
            let notify = &mut self.shared.notifies[notify];
            self.tasks[task].notified = std::mem::take(&mut notify.permit);
            if !self.tasks[task].notified {
                notify.waiters.push_back(task);
            }
        }
        std::mem::take(&mut self.tasks[task].notified)
    }

    /// Stops to wait for a notification, and passes it on if it came.
    pub(crate) fn leave_notify(&mut self, by: usize, task: usize, notify: usize) {
        self.shared.notifies[notify].waiters.retain(|&waiter| waiter != task);
        if std::mem::take(&mut self.tasks[task].notified) {
            self.notify_one(by, notify);
        }
    }
}
