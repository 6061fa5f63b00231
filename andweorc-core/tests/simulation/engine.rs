//! The event loop: real time, threads, who runs what, and the ledger that ships.
//!
//! Between two events every thread goes on as it is, and D is the greater of a constant and a line
//! whose slope is the speedup. So the next event is known in closed form, and nothing is stepped
//! through.

use crate::driver::{self, Driver};
use crate::hosts::Post;
use crate::program::{Program, Target};
use crate::rules::{Credit, Pay, Rules};
use crate::schedule::BUDGET;
use crate::task::{SOURCE, Task};
use andweorc_core::engine::{Block, Door, Model, ThreadKind, ThreadPoll, ThreadState};
use andweorc_core::ledger::{Account, Ledger};
use andweorc_core::time::{Nanos, Real, Speedup, Virtual};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// More events than any program here has: one that has them makes no progress.
pub(crate) const MOST_EVENTS: u32 = 500_000;

const NUDGE_PERIOD: Nanos = Nanos::from_micros(500);
const NUDGE_LEAST: Nanos = Nanos::from_micros(100);

/// Setup of a simulation: a program, with a target faster virtually, or really, or not at all.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) program: &'a Program,
    pub(crate) rules: Rules,
    pub(crate) virtually: Option<(Target, Speedup)>,
    pub(crate) really: Option<(Target, Speedup)>,
    pub(crate) seed: u64,
}

/// Result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Units of work for each virtual second.
    pub(crate) rate: f64,
    /// In virtual ns, sorted.
    pub(crate) latencies: Vec<i64>,
}

/// Activity of a thread until the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Idle {
        since: Real,
    },
    /// A worker sleeps, until somebody wakes it.
    Asleep,
    /// Somebody has.
    Waking {
        until: Real,
    },
    /// The worker was woken, and pauses before it looks for work.
    Roused,
    /// The thread pauses before a poll.
    Begin,
    /// The thread polls: `work` is CPU time to go.
    Run,
    /// The thread is blocked in the kernel.
    Blocked {
        until: Real,
    },
    /// The thread waits for a lock that another one has.
    Locked,
    /// The thread was blocked, or begins a poll inside of a block, and pauses before it goes on.
    Resumed,
    /// The thread pauses after a poll.
    End,
}

pub(crate) struct Thread<'l> {
    pub(crate) account: &'l Account,
    /// One of the runtime's workers, rather than one of the blocking pool.
    pub(crate) worker: bool,
    pub(crate) kind: ThreadKind,
    pub(crate) state: ThreadState,
    /// The poll that it is in, and one inside of a block of that.
    pub(crate) poll: Option<ThreadPoll>,
    pub(crate) inner_poll: Option<ThreadPoll>,
    pub(crate) block: Option<Block>,
    pub(crate) act: Act,
    pub(crate) task: usize,
    pub(crate) work: i64,
    /// The ledger was told that it is inside the target.
    pub(crate) entered: Option<Real>,
    /// The thread is inside the target, whether or not the ledger was told.
    pub(crate) inside: bool,
    /// CPU time since the last sample.
    sampled: i64,
    pub(crate) nudged: bool,
    /// Time by which the thread will come back late from its pause before or after a poll.
    late: Option<Nanos>,
    /// Target that was really made faster when the thread's poll began, and by how much.
    pub(crate) faster: Option<(Target, Speedup)>,
    pub(crate) budget: u32,
    pub(crate) local: VecDeque<usize>,
    pub(crate) lifo: Option<usize>,
    pub(crate) lifo_polls: u32,
    pub(crate) polls: u32,
    pub(crate) worker_state: driver::Worker,
}

impl Thread<'_> {
    /// Whether the thread, while it runs, is told to pay what it owes.
    fn is_told(&self) -> bool {
        self.state.is_told_to_pay(self.kind) && self.entered.is_none()
    }
}

/// Event at a time known in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The world outside answers this wait of this task.
    External {
        task: usize,
        wait: u64,
        part: Option<usize>,
    },
    Nudge,
}

/// Something that is deferred: a task, or a future that is profiled inside a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Held {
    Task(usize),
    Part { task: usize, wait: u64, part: usize },
}

/// D from now on, while nothing happens: the greater of `owed` and `line + speedup (t - now)`.
struct Shape {
    owed: i64,
    line: Option<i64>,
}

pub(crate) struct Engine<'a> {
    pub(crate) program: &'a Program,
    pub(crate) rules: Rules,
    pub(crate) virtually: Option<(Target, Speedup)>,
    really: Option<(Target, Speedup)>,
    pub(crate) ledger: &'a Ledger,
    pub(crate) now: Real,
    pub(crate) threads: Vec<Thread<'a>>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) shared: crate::shared::Shared,
    /// Messages to and from other hosts.
    pub(crate) post: Post,
    /// The threads that say when they are blocked.
    pub(crate) door: Door<'a>,
    events: BinaryHeap<Reverse<(Real, u64, Event)>>,
    pub(crate) deferred: BinaryHeap<Reverse<(Virtual, u64, Held)>>,
    /// Tasks that come back through the driver.
    pub(crate) woken: BinaryHeap<Reverse<(Virtual, u64, usize)>>,
    /// Timers of the program's own: when they go off, for which task, and which wait of it.
    pub(crate) timers: BinaryHeap<Reverse<(Virtual, u64, usize, u64)>>,
    pub(crate) order: u64,
    pub(crate) global: VecDeque<usize>,
    /// How workers sleep; without one, they see everything at once.
    pub(crate) driver: Option<Driver>,
    owed: Nanos,
    count: u32,
    warm: u32,
    /// The target is faster from now on, virtually or really.
    changed: bool,
    /// When each unit of work that is measured was done.
    hits: Vec<Virtual>,
    pub(crate) latencies: Vec<i64>,
    pub(crate) failed: Option<String>,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(setup: &Setup<'a>, ledger: &'a Ledger) -> Engine<'a> {
        let program = setup.program;
        let mut engine = Engine {
            program,
            rules: setup.rules,
            virtually: setup.virtually,
            really: setup.really,
            ledger,
            // Not 0, so that an experiment's lines and waits have some past.
            now: Real(1_000_000),
            threads: Vec::new(),
            tasks: Vec::new(),
            shared: crate::shared::Shared::new(program),
            post: Post::new(program.inboxes),
            door: Door::new(),
            events: BinaryHeap::new(),
            deferred: BinaryHeap::new(),
            woken: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            order: 0,
            global: VecDeque::new(),
            driver: program.latencies.map(|it| Driver::new(it, program.kinds.len(), setup.seed)),
            owed: Nanos::ZERO,
            count: 0,
            warm: program.units / 4,
            changed: false,
            hits: Vec::new(),
            latencies: Vec::new(),
            failed: None,
        };
        for _ in 0..program.workers {
            engine.open_thread(true);
        }
        let mut rng = fastrand::Rng::with_seed(setup.seed);
        let tasks = program.start.iter().map(|&kind| (kind, false));
        let threads = program.plain.iter().chain(&program.strangers).map(|&kind| (kind, true));
        for (kind, plain) in tasks.chain(threads) {
            let born = engine.ledger.virtual_now(engine.now);
            let task = engine.add_task(Task::new(kind, born, rng.fork(), plain));
            engine.push(task, None, false);
        }
        if setup.rules.pay == Pay::Nudged {
            engine.at(engine.now + NUDGE_PERIOD, Event::Nudge);
        }
        engine
    }

    /// The model that the clocks of tasks go by.
    pub(crate) fn model(&self) -> Model<'a> {
        Model { ledger: self.ledger, rules: self.rules.of_clocks() }
    }

    pub(crate) fn open_thread(&mut self, worker: bool) -> usize {
        let account = self.ledger.open(self.now).expect("a program has fewer than 256 threads");
        self.threads.push(Thread {
            account,
            worker,
            kind: if worker { ThreadKind::Worker } else { ThreadKind::Other },
            state: ThreadState::Outside,
            poll: None,
            inner_poll: None,
            block: None,
            act: Act::Idle { since: self.now },
            task: 0,
            work: 0,
            entered: None,
            inside: false,
            sampled: 0,
            nudged: false,
            late: None,
            faster: None,
            budget: BUDGET,
            local: VecDeque::new(),
            lifo: None,
            lifo_polls: 0,
            polls: 0,
            worker_state: driver::Worker::new(),
        });
        self.threads.len() - 1
    }

    pub(crate) fn add_task(&mut self, task: Task) -> usize {
        self.tasks.push(task);
        self.tasks.len() - 1
    }

    pub(crate) fn fail(&mut self, why: &str) {
        self.failed.get_or_insert_with(|| why.to_owned());
    }

    fn at(&mut self, when: Real, event: Event) {
        self.order += 1;
        self.events.push(Reverse((when, self.order, event)));
    }

    /// The world outside wakes `task` then, if it still waits.
    pub(crate) fn external(&mut self, when: Real, task: usize, part: Option<usize>) {
        let wait = self.tasks[task].wait;
        self.at(when, Event::External { task, wait, part });
    }

    /// Lets a source outside wake `task` at `when`, whichever wait it is in then, if what came is
    /// not taken yet.
    pub(crate) fn source(&mut self, when: Real, task: usize) {
        self.at(when, Event::External { task, wait: SOURCE, part: None });
    }

    /// Counts a unit of work: begins the experiment after some, and the measurement after as many
    /// again.
    pub(crate) fn progress(&mut self) {
        self.count += 1;
        if self.rules.after_another
            && let Some((target, _)) = self.virtually
        {
            if self.count == self.warm / 4 {
                let speedup = Speedup::from_ppm(600_000);
                self.ledger.begin(target.credited(speedup), self.now);
            } else if self.count == self.warm / 2 {
                self.ledger.end(self.now);
            }
        }
        if self.count == self.warm {
            self.begin(true);
        }
        if self.count == 2 * self.warm {
            self.latencies.clear();
        }
        if self.count >= 2 * self.warm {
            self.hits.push(self.ledger.virtual_now(self.now));
        }
    }

    /// The target is faster from now on. Virtually only where the program takes part in that.
    pub(crate) fn begin(&mut self, takes_part: bool) {
        self.changed = true;
        if takes_part && let Some((target, speedup)) = self.virtually {
            self.ledger.begin(target.credited(speedup), self.now);
        }
    }

    /// Whether the target is faster by now.
    pub(crate) fn has_begun(&self) -> bool {
        self.changed
    }

    /// Returns what was measured, once all was.
    pub(crate) fn measured(&mut self) -> Option<Outcome> {
        self.over().then(|| {
            let rate = self.rate();
            self.latencies.sort_unstable();
            Outcome { rate, latencies: std::mem::take(&mut self.latencies) }
        })
    }

    /// Whether all was measured.
    fn over(&self) -> bool {
        self.hits.len() > self.program.units as usize
    }

    /// Hits for each virtual second. Each window from a hit in the first quarter to the one so many
    /// later counts, so that it does not matter where in a burst of them the measurement began.
    fn rate(&self) -> f64 {
        let quarter = self.hits.len() / 4;
        let between = self.hits.len() - quarter;
        let windows = self.hits.iter().zip(&self.hits[between..]);
        let time: Nanos = windows.map(|(&first, &last)| last - first).sum();
        (between * quarter) as f64 / time.as_secs_f64()
    }

    /// Returns the target that a real change has made faster by now, and by how much.
    pub(crate) fn faster(&self) -> Option<(Target, Speedup)> {
        self.really.filter(|_| self.changed)
    }

    fn run(mut self) -> Result<Outcome, String> {
        for _ in 0..MOST_EVENTS {
            self.settle_all();
            if let Some(why) = self.failed.take() {
                return Err(format!("{}: {why}", self.program.name));
            }
            if let Some(outcome) = self.measured() {
                return Ok(outcome);
            }
            let Some(next) = self.next_event() else {
                return Err(format!("{}: deadlock at {:?}", self.program.name, self.now));
            };
            self.advance(next);
        }
        Err(format!("{}: no progress", self.program.name))
    }

    fn shape(&self) -> Shape {
        // Far enough to be on the line, and a multiple of what makes the slope exact.
        const FAR: Nanos = Nanos(1_000_000_000_000);
        let owed = self.ledger.global_delay(self.now).0;
        let grows = self.threads.iter().any(|thread| thread.entered.is_some())
            || self.tasks.iter().any(|task| task.clock.is_in_wait());
        let far = if grows { self.ledger.global_delay(self.now + FAR).0 } else { owed };
        let line = (far > owed).then(|| far - self.ledger.speedup().of(FAR).0);
        Shape { owed, line }
    }

    /// When V gets to `due`.
    fn when_virtual(&self, shape: &Shape, due: i64) -> Real {
        let mut when = due + shape.owed;
        if let Some(line) = shape.line {
            let moves = 1_000_000 - i64::from(self.ledger.speedup().ppm());
            let left = (due + line - self.now.0).max(0);
            let left = (i128::from(left) * 1_000_000 / i128::from(moves.max(1)) + 1) as i64;
            when = when.max(self.now.0 + left);
        }
        Real(when.max(self.now.0))
    }

    /// Whether the thread pays whatever it owes while it runs.
    fn pays(&self, thread: &Thread) -> bool {
        self.rules.pay == Pay::Continuously && thread.is_told()
    }

    pub(crate) fn next_event(&self) -> Option<Real> {
        let shape = self.shape();
        let mut next = self.events.peek().map(|Reverse((when, ..))| *when);
        let mut sooner = |when: Real| next = Some(next.map_or(when, |next| next.min(when)));
        if let Some(due) = self.next_woken() {
            sooner(self.when_virtual(&shape, due.0));
        }
        if let Some(due) = self.next_release() {
            sooner(self.when_virtual(&shape, due.0));
        }
        if let Some(due) = self.next_timer() {
            sooner(self.when_virtual(&shape, due.0));
        }
        for thread in &self.threads {
            if matches!(thread.act, Act::Idle { .. } | Act::Asleep | Act::Locked) {
                continue;
            }
            let clock = self.ledger.virtual_of(thread.account, self.now).0;
            match thread.act {
                Act::Idle { .. } | Act::Asleep | Act::Locked => {}
                Act::Blocked { until } | Act::Waking { until } => sooner(until),
                Act::Roused | Act::Begin | Act::Resumed | Act::End => {
                    let late = thread.late.unwrap_or(Nanos::ZERO);
                    sooner(self.when_virtual(&shape, clock) + late);
                }
                Act::Run if thread.nudged => sooner(self.when_virtual(&shape, clock)),
                Act::Run => {
                    let work = match self.rules.credit {
                        Credit::Timed => thread.work,
                        Credit::Sampled(period) => thread.work.min(period.0 - thread.sampled),
                    };
                    let done = self.now + Nanos(work);
                    sooner(if self.pays(thread) {
                        done.max(self.when_virtual(&shape, clock + work))
                    } else {
                        done
                    });
                }
            }
        }
        next.map(|next| next.max(self.now + Nanos(1)))
    }

    /// Lets real time pass, in which nothing happens but what goes on already.
    pub(crate) fn advance(&mut self, next: Real) {
        let passed = next - self.now;
        self.now = next;
        let owed = self.ledger.global_delay(next);
        for i in 0..self.threads.len() {
            let pays = self.pays(&self.threads[i]);
            let thread = &mut self.threads[i];
            let debt = owed - self.ledger.local_delay(thread.account, next);
            let pause = debt.max(Nanos::ZERO).min(passed);
            let paused = match thread.act {
                Act::Idle { .. }
                | Act::Asleep
                | Act::Waking { .. }
                | Act::Blocked { .. }
                | Act::Locked => continue,
                Act::Roused | Act::Begin | Act::Resumed | Act::End => {
                    // What it is late by is credit.
                    let late = (passed - pause).min(thread.late.unwrap_or(Nanos::ZERO));
                    thread.late = thread.late.map(|left| left - late);
                    pause + late
                }
                Act::Run if pays || thread.nudged => pause,
                Act::Run => Nanos::ZERO,
            };
            if paused > Nanos::ZERO {
                self.ledger.took(thread.account, paused, next);
            }
            if thread.act == Act::Run {
                let ran = (passed - paused).0.min(thread.work);
                thread.work -= ran;
                thread.nudged &= debt > paused;
                thread.sampled += ran;
                if let Credit::Sampled(period) = self.rules.credit
                    && thread.sampled >= period.0
                {
                    thread.sampled -= period.0;
                    if thread.inside {
                        self.ledger.credit(thread.account, period);
                    }
                }
            }
        }
        let owed = self.ledger.global_delay(next);
        // The end of a wait that is the target may be noticed late: D was read too high since.
        if owed < self.owed && self.driver.is_none() {
            self.fail("D went back");
        }
        self.owed = owed;
    }

    /// Does all that is due now.
    pub(crate) fn settle_all(&mut self) {
        while let Some(&Reverse((when, _, event))) = self.events.peek()
            && when <= self.now
        {
            self.events.pop();
            match event {
                Event::External { task, wait, part } => self.arrives(task, wait, part),
                Event::Nudge => self.nudge(),
            }
        }
        while let Some(due) = self.next_release()
            && self.ledger.time_until_due(due, self.now) <= Nanos::ZERO
        {
            self.pass_on(None);
        }
        while let Some(due) = self.next_woken()
            && self.ledger.time_until_due(due, self.now) <= Nanos::ZERO
        {
            if let Some(Reverse((.., task))) = self.woken.pop() {
                self.comes_back(task);
            }
        }
        self.timers_go_off();
        loop {
            let mut moved = false;
            for i in 0..self.threads.len() {
                moved |= self.proceed(i);
            }
            if !moved || self.failed.is_some() || self.over() {
                break;
            }
        }
    }

    fn nudge(&mut self) {
        for thread in &mut self.threads {
            thread.nudged |= thread.act == Act::Run
                && thread.is_told()
                && self.ledger.lag(thread.account, self.now) > NUDGE_LEAST;
        }
        self.at(self.now + NUDGE_PERIOD, Event::Nudge);
    }

    /// Whether the thread, which pauses if it owes anything, is back from that.
    fn comes_back_from_pause(&mut self, i: usize) -> bool {
        let owes = self.ledger.lag(self.threads[i].account, self.now) > Nanos::ZERO;
        if owes && self.threads[i].late.is_none() {
            self.threads[i].late = Some(self.late_from_pause());
        }
        let is_back = !owes && self.threads[i].late.is_none_or(|late| late <= Nanos::ZERO);
        if is_back {
            self.threads[i].late = None;
        }
        is_back
    }

    /// Moves a thread on as far as it gets without real time; says whether it moved.
    fn proceed(&mut self, i: usize) -> bool {
        let mut moved = false;
        loop {
            if self.failed.is_some() || self.over() {
                return moved;
            }
            let act = self.threads[i].act;
            let due = match act {
                Act::Idle { .. } => true,
                Act::Asleep | Act::Locked => false,
                Act::Roused | Act::Begin | Act::Resumed | Act::End => self.comes_back_from_pause(i),
                Act::Run => self.threads[i].work == 0 && !self.threads[i].nudged,
                Act::Blocked { until } | Act::Waking { until } => until <= self.now,
            };
            if !due {
                return moved;
            }
            match act {
                Act::Idle { .. } if !self.work(i) => return moved,
                Act::Idle { .. } | Act::Asleep | Act::Locked => {}
                Act::Waking { .. } => self.wakes(i),
                Act::Roused => self.is_roused(i),
                Act::Begin => self.begin_poll(i),
                Act::Run => self.execute(i),
                Act::Blocked { .. } | Act::Resumed => self.threads[i].act = Act::Run,
                Act::End => {
                    self.end_poll(i);
                    self.threads[i].act = Act::Idle { since: self.now };
                    self.release_between_polls(i);
                }
            }
            moved = true;
        }
    }
}

/// Simulates.
///
/// # Errors
///
/// When the program, or the simulation of it, is wrong: a deadlock, an endless loop, a D that goes
/// back.
pub(crate) fn simulate(setup: &Setup) -> Result<Outcome, String> {
    let ledger = Box::new(Ledger::new());
    Engine::new(setup, &ledger).run()
}
