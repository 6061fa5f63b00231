//! Tokio's driver: who looks when at what came from the world outside, and how workers fall asleep
//! and are woken.
//!
//! One worker that has nothing to do sleeps in the driver, which wakes it when something comes; the
//! others sleep until they are notified. While nobody sleeps in the driver, what comes lies there
//! until a worker runs out of work, or until one has polled [`LOOK_INTERVAL`] times. When it came
//! is what `andweorc_core::late_events` says, the code that ships.
//!
//! Repeated from tokio's multi-threaded scheduler (1.54): who is notified (never while another
//! worker searches; who fell asleep last), who may search, and that a worker takes what it finds in
//! the driver itself.

use crate::engine::{Act, Engine};
use crate::program::Cost;
use crate::rules::{Arrivals, Notified};
use andweorc_core::engine::{LastWake, Rested, ThreadState};
use andweorc_core::late_events::{Arrival, DriverPoll, DriverPolls, ReadinessLog, WaitHistory};
use andweorc_core::time::{Nanos, Real};
use std::cell::Cell;

/// After so many polls a busy worker looks, in tokio.
const LOOK_INTERVAL: u32 = 61;

/// Nobody was notified yet.
const NO_WAKE: LastWake = LastWake { at: Real(0), taken: Nanos::ZERO };

/// Latencies of a machine on which threads sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latencies {
    /// From the wake of a worker that sleeps until it runs.
    pub(crate) wake: Cost,
    /// How much later than it should the world outside answers.
    pub(crate) answer: Cost,
    /// How much later than it should a thread comes back from a pause.
    pub(crate) pause: Cost,
}

/// Something that came, and was not noticed yet.
#[derive(Clone, Copy, Debug)]
enum Arrived {
    /// An answer, at this time.
    Answer { at: Real, task: usize, wait: u64, part: Option<usize> },
    /// A wake that was held is due.
    Due { task: usize },
}

/// The driver of a program, and its workers' sleep.
pub(crate) struct Driver {
    latencies: Latencies,
    rng: fastrand::Rng,
    /// Worker that sleeps in the driver.
    holder: Option<usize>,
    arrived: Vec<Arrived>,
    /// Worker that looks into the driver at this instant: what is woken gets into its queue.
    pub(crate) looking: Option<usize>,
    /// In the order in which they fell asleep.
    sleepers: Vec<usize>,
    searching: usize,
    looks: DriverPolls,
    inputs: ReadinessLog,
    /// Of each kind of task.
    typical: Vec<WaitHistory>,
    /// When a task was last woken or spawned while a worker slept.
    last: LastWake,
}

/// A worker's part in it.
pub(crate) struct Worker {
    searching: bool,
    /// D when it was notified, if it was since it fell asleep.
    notified: Option<Nanos>,
    /// Since when it is idle.
    parked: Option<Real>,
    look: Cell<DriverPoll>,
}

impl Worker {
    pub(crate) fn new() -> Worker {
        Worker { searching: false, notified: None, parked: None, look: Cell::new(DriverPoll::NONE) }
    }
}

impl Driver {
    pub(crate) fn new(latencies: Latencies, kinds: usize, seed: u64) -> Driver {
        let looks = DriverPolls::new();
        looks.set_wakeup_latency(Nanos(latencies.wake.mean()));
        Driver {
            latencies,
            rng: fastrand::Rng::with_seed(seed ^ 0xD81),
            holder: None,
            arrived: Vec::new(),
            looking: None,
            sleepers: Vec::new(),
            searching: 0,
            looks,
            inputs: ReadinessLog::new(),
            typical: (0..kinds).map(|_| WaitHistory::default()).collect(),
            last: NO_WAKE,
        }
    }

    /// Whether the thread of the deferral queue passes on what is due. While all workers are busy
    /// they do that themselves.
    pub(crate) fn releases(&self) -> bool {
        !self.sleepers.is_empty()
    }

    /// By how much a wake is passed on early, so that a worker that sleeps runs its task in time.
    pub(crate) fn handoff(&self) -> Nanos {
        if self.sleepers.is_empty() { Nanos::ZERO } else { Nanos(self.latencies.wake.mean()) }
    }

    /// Returns by how much a wake that comes through the driver is passed on early, so that a
    /// worker that sleeps in the driver runs its task in time.
    pub(crate) fn handoff_in_driver(&self) -> Nanos {
        if self.holder.is_none() { Nanos::ZERO } else { Nanos(self.latencies.wake.mean()) }
    }
}

impl Engine<'_> {
    /// A wake that was held comes back.
    pub(crate) fn comes_back(&mut self, task: usize) {
        let driver = self.driver();
        driver.arrived.push(Arrived::Due { task });
        if let Some(holder) = driver.holder {
            self.rouse(holder);
        }
    }

    fn driver(&mut self) -> &mut Driver {
        self.driver.as_mut().expect("workers sleep only where there is one")
    }

    /// Something comes from the world outside.
    pub(crate) fn arrives(&mut self, task: usize, wait: u64, part: Option<usize>) {
        if self.driver.is_none() {
            return self.answered(task, wait, part, self.now);
        }
        if self.rules.arrivals == Arrivals::Known && self.tasks[task].wait == wait {
            self.end_target_wait(task, self.now);
        }
        let (at, watched) = (self.now, self.rules.arrivals == Arrivals::Watched);
        let driver = self.driver();
        if watched {
            driver.inputs.record(at);
        }
        driver.arrived.push(Arrived::Answer { at, task, wait, part });
        if let Some(holder) = driver.holder {
            self.rouse(holder);
        }
    }

    /// When that came which is noticed now by who looks, and for which `task` waited.
    pub(crate) fn came(&mut self, task: usize, at: Real) -> Real {
        let now = self.now;
        let task = &mut self.tasks[task];
        let Some(driver) = &mut self.driver else { return now };
        let (Some(i), Arrivals::Watched | Arrivals::Guessed) =
            (driver.looking, self.rules.arrivals)
        else {
            // A worker that sleeps would have noticed it so much later.
            let known = now.min(at + Nanos(driver.latencies.wake.mean()));
            return if self.rules.arrivals == Arrivals::Known { known } else { now };
        };
        let worker = &self.threads[i].worker_state;
        let (waits, typical) = (task.clock.waits_since(), &driver.typical[task.kind]);
        let slept = || worker.parked.is_some_and(|since| now > since);
        let mut look = driver.looks.notice(&worker.look, now, worker.parked, slept, &driver.inputs);
        let Arrival { at, .. } = look.arrival(waits, typical, &driver.inputs);
        worker.look.set(look);
        if let Some(waits) = waits {
            typical.count(at - waits);
        }
        at
    }

    /// A worker looks at what came.
    fn look(&mut self, i: usize) {
        let driver = self.driver();
        let arrived = std::mem::take(&mut driver.arrived);
        driver.looking = Some(i);
        for arrived in arrived {
            match arrived {
                Arrived::Answer { at, task, wait, part } => self.answered(task, wait, part, at),
                Arrived::Due { task } => self.is_due(task, None),
            }
        }
        self.driver().looking = None;
        let worker = &self.threads[i];
        if !worker.worker_state.searching
            && usize::from(worker.lifo.is_some()) + worker.local.len() > 1
        {
            self.notify();
        }
    }

    /// Somebody wakes or spawns a task: the participant that runs on thread `by`, or nobody.
    pub(crate) fn sets_going(&mut self, by: Option<usize>) {
        let now = self.now;
        let Some(driver) = self.driver.as_mut().filter(|driver| !driver.sleepers.is_empty()) else {
            return;
        };
        let taken = match by {
            Some(by) => self.ledger.local_delay(self.threads[by].account, now),
            // Who looks runs most often what it finds.
            None if driver.last.is_recent(now) => return,
            None => self.ledger.global_delay(now),
        };
        driver.last = LastWake { at: now, taken };
    }

    /// A worker that was notified owes nothing, and looks for work.
    pub(crate) fn is_roused(&mut self, i: usize) {
        self.threads[i].act = Act::Idle { since: self.now };
        // If it finds some it notifies another one.
        self.sets_going(Some(i));
    }

    /// The last time that somebody was notified, as worker `i` knows that slept and was so.
    fn last_wake_known_to(&self, i: usize) -> LastWake {
        let known = self.threads[i].worker_state.notified;
        match self.rules.notified {
            Notified::Running => NO_WAKE,
            Notified::Known => known.map_or(NO_WAKE, |taken| LastWake { at: self.now, taken }),
            Notified::Guessed => self.driver.as_ref().map_or(NO_WAKE, |driver| driver.last),
        }
    }

    /// How much later than it should a thread comes back from a pause that it begins now.
    pub(crate) fn late_from_pause(&mut self) -> Nanos {
        let late = |driver: &mut Driver| driver.latencies.pause.draw(&mut driver.rng);
        Nanos(self.driver.as_mut().map_or(0, late))
    }

    /// Wakes a worker that sleeps, if none is looking for work already.
    pub(crate) fn notify(&mut self) {
        let Some(driver) = &mut self.driver else { return };
        if driver.searching == 0
            && let Some(i) = driver.sleepers.pop()
        {
            driver.searching += 1;
            let worker = &mut self.threads[i].worker_state;
            worker.searching = true;
            worker.notified = Some(self.ledger.global_delay(self.now));
            self.rouse(i);
        }
    }

    /// A worker that sleeps will run after a while.
    fn rouse(&mut self, i: usize) {
        if self.threads[i].act == Act::Asleep {
            let driver = self.driver();
            let until = Nanos(driver.latencies.wake.draw(&mut driver.rng));
            self.threads[i].act = Act::Waking { until: self.now + until };
        }
    }

    /// Looks for a task as a worker does between two polls, until it has one or falls asleep.
    pub(crate) fn next_or_sleep(&mut self, i: usize) -> Option<usize> {
        loop {
            if (self.threads[i].polls + 1).is_multiple_of(LOOK_INTERVAL)
                && self.driver().holder.is_none()
            {
                self.look(i);
            }
            if let Some(task) = self.next_own(i).or_else(|| self.search(i)) {
                if std::mem::take(&mut self.threads[i].worker_state.searching) {
                    self.driver().searching -= 1;
                    self.notify();
                }
                return Some(task);
            }
            self.fall_asleep(i);
            if self.threads[i].act == Act::Asleep {
                return None;
            }
        }
    }

    fn search(&mut self, i: usize) -> Option<usize> {
        let workers = self.program.workers;
        if !self.threads[i].worker_state.searching {
            let driver = self.driver();
            if 2 * driver.searching >= workers {
                return None;
            }
            driver.searching += 1;
            self.threads[i].worker_state.searching = true;
        }
        self.steal(i).or_else(|| self.global.pop_front())
    }

    fn fall_asleep(&mut self, i: usize) {
        let now = self.now;
        let searched = std::mem::take(&mut self.threads[i].worker_state.searching);
        self.threads[i].worker_state.parked = Some(now);
        self.threads[i].state = ThreadState::parked(false);
        self.threads[i].act = Act::Asleep;
        let driver = self.driver();
        driver.searching -= usize::from(searched);
        driver.sleepers.push(i);
        let last = searched && driver.searching == 0;
        let work = |engine: &Engine| {
            !engine.global.is_empty()
                || engine.threads.iter().any(|thread| thread.worker && !thread.local.is_empty())
        };
        if last && work(self) {
            self.notify();
        }
        let driver = self.driver();
        let notified = !driver.sleepers.contains(&i);
        if !notified && driver.holder.is_none() {
            driver.holder = Some(i);
            self.threads[i].state = ThreadState::parked(true);
            self.look(i);
        }
        self.wakes_up(i);
    }

    /// A worker that slept runs again: it looks, and goes on if there is something to do.
    pub(crate) fn wakes(&mut self, i: usize) {
        self.threads[i].act = Act::Asleep;
        if self.driver().holder == Some(i) {
            self.look(i);
        }
        self.wakes_up(i);
    }

    fn wakes_up(&mut self, i: usize) {
        let has_tasks = self.threads[i].lifo.is_some() || !self.threads[i].local.is_empty();
        let driver = self.driver();
        // If it is not among them, it was notified.
        let sleeper = driver.sleepers.iter().position(|&sleeper| sleeper == i);
        if let Some(at) = sleeper {
            if !has_tasks {
                // Nothing came, or all of it is held.
                return;
            }
            driver.sleepers.swap_remove(at);
        }
        let watched = driver.holder == Some(i);
        driver.holder = driver.holder.filter(|&holder| holder != i);
        let now = self.now;
        let (notified, mut pays) = (sleeper.is_none(), false);
        if let Some(since) = self.threads[i].worker_state.parked.take() {
            if watched {
                self.driver().looks.record_wait(since, now, now > since);
            }
            let account = self.threads[i].account;
            let rested = Rested::of_worker(since, !notified, self.last_wake_known_to(i), now);
            self.model().end_rest(account, rested, Nanos::ZERO, now);
            pays = rested.pays;
        }
        self.threads[i].worker_state.notified = None;
        self.threads[i].state = self.threads[i].state.unparked();
        // What it owes it pays before it looks for work, and tells others of it.
        self.threads[i].act =
            if self.rules.notified_pays && pays { Act::Roused } else { Act::Idle { since: now } };
    }
}
