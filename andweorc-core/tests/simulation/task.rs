//! A task and its clock: the protocol of a profiled future and its waker, as `andweorc-tokio` and
//! `andweorc_core::thread` have it.

use crate::engine::{Act, Engine};
use crate::part::Part;
use crate::program::{Branch, Inst, Op, Program, Target};
use crate::rules::{Credit, GoOn, Raise, Wakes};
use andweorc_core::defer;
use andweorc_core::ledger::{Parked, TargetWait};
use andweorc_core::time::{Nanos, Real, Speedup, Virtual};
use std::collections::VecDeque;

/// In the place of the number of a wait: a source that is there for all of them.
pub(crate) const SOURCE: u64 = u64::MAX;

/// A poll under way.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Real,
    /// The wait that was so, too.
    under_way: Option<u64>,
    /// How many wakers of the task there were.
    wakers: usize,
}

/// State of a task, as the runtime knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Queued,
    Running,
    /// Woken while it runs: it will be queued again.
    Notified,
    Done,
}

pub(crate) struct Task {
    pub(crate) kind: usize,
    pub(crate) pc: usize,
    pub(crate) loops: Vec<u32>,
    pub(crate) rng: fastrand::Rng,
    pub(crate) state: State,
    pub(crate) blocking: bool,
    pub(crate) woken_by_entity: bool,

    // What the profiled future and its waker keep.
    born: Option<Virtual>,
    /// L of who spawned it, as it did.
    pub(crate) by: Nanos,
    parked: Parked,
    ready: Virtual,
    by_entity: Virtual,
    by_outside: Real,
    taken: Nanos,
    yielded: bool,
    /// Since when it waits, while an experiment runs and no wake has come.
    pub(crate) waits: Option<Real>,
    pub(crate) held: bool,
    target_wait: Option<TargetWait>,
    /// When the last of those is due that came while it was held.
    raised: Option<Virtual>,
    /// The task is held for the last time before its next poll.
    held_last: bool,
    /// An entity has woken it since its last poll, with the waker that it had got.
    used_up: bool,
    begun: Begun,

    // The operation that is under way.
    pub(crate) phase: u8,
    /// Number of the external wait; what belongs to an older one is void.
    pub(crate) wait: u64,
    pub(crate) waits_for: &'static str,
    /// The task waits in a task around it that nobody profiles.
    pub(crate) unseen: bool,
    pub(crate) deadlines: Vec<Real>,
    /// When the timers that it waits for go off.
    pub(crate) timers: Vec<Virtual>,
    /// When its interval ticks next.
    pub(crate) next_tick: Option<Virtual>,
    /// When each source of a `select!` has something, by its branch.
    pub(crate) sources: Vec<Real>,
    /// When the interval fired last.
    pub(crate) tick: Real,
    pub(crate) parts: Vec<Part>,
    pub(crate) granted: bool,
    pub(crate) notified: bool,
    /// The task used up its budget and wakes itself.
    pub(crate) yields: bool,

    /// Task that sent the message that this one works on, and waits for an answer.
    pub(crate) message: Option<usize>,
    pub(crate) replied: bool,
    pub(crate) children: VecDeque<usize>,
    pub(crate) joiner: Option<usize>,
    pub(crate) intervals: Vec<Virtual>,
}

impl Task {
    pub(crate) fn new(kind: usize, born: Virtual, rng: fastrand::Rng, blocking: bool) -> Task {
        Task {
            kind,
            pc: 0,
            loops: Vec::new(),
            rng,
            state: State::Idle,
            blocking,
            woken_by_entity: false,
            born: Some(born),
            by: Nanos::ZERO,
            parked: Parked { at: born, taken: Nanos::ZERO },
            ready: born,
            by_entity: Virtual::NEVER,
            by_outside: Real::NEVER,
            taken: Nanos::ZERO,
            yielded: false,
            waits: None,
            held: false,
            target_wait: None,
            raised: None,
            held_last: false,
            used_up: false,
            begun: Begun { at: Real(0), under_way: None, wakers: 0 },
            phase: 0,
            wait: 0,
            waits_for: "",
            unseen: false,
            deadlines: Vec::new(),
            timers: Vec::new(),
            next_tick: None,
            sources: Vec::new(),
            tick: Real(0),
            parts: Vec::new(),
            granted: false,
            notified: false,
            yields: false,
            message: None,
            replied: false,
            children: VecDeque::new(),
            joiner: None,
            intervals: Vec::new(),
        }
    }

    /// How many wakers of it there are, as it is.
    fn wakers(&self, program: &Program, now: Real) -> usize {
        if self.phase == 0 && self.pc == 0 {
            return 0;
        }
        let inside = match program.kinds[self.kind].code.get(self.pc) {
            Some(Inst::Select(branches)) => branches
                .iter()
                .filter(|(branch, _)| matches!(branch, Branch::Recv(_) | Branch::Notified(_)))
                .count(),
            Some(Inst::Op(
                Op::External(_)
                | Op::ExternalAll(_)
                | Op::Tick(_)
                | Op::Timer(_)
                | Op::Interval(..),
            ))
            | None => 0,
            Some(_) => 1,
        };
        inside + self.deadlines.iter().chain(&self.sources).filter(|&&when| when > now).count()
    }

    /// `WakeCell::take_ready`.
    fn take_ready(&mut self, floor: Nanos) -> Virtual {
        let by_entity = std::mem::replace(&mut self.by_entity, Virtual::NEVER);
        let by_outside = std::mem::replace(&mut self.by_outside, Real::NEVER);
        let mut ready = Virtual::NEVER;
        if by_entity != Virtual::NEVER {
            ready = self.parked.woken_by(by_entity);
        }
        if by_outside != Real::NEVER {
            ready = ready.min(self.parked.woken_outside(by_outside, floor));
        }
        ready
    }
}

impl Engine<'_> {
    /// The virtual time of who runs on a thread.
    pub(crate) fn clock(&self, thread: usize) -> Virtual {
        self.ledger.virtual_of(self.threads[thread].account, self.now)
    }

    /// `WakeCell::wake`. `by` is the thread whose task wakes; `None` is the world outside.
    pub(crate) fn wake(&mut self, task: usize, by: Option<usize>) {
        let entity = by.map(|thread| self.clock(thread));
        self.wake_at(task, by, entity);
    }

    /// `WakeCell::wake` at the virtual time `entity`; `None` is the world outside. `by` is the
    /// thread whose task wakes, if one does.
    pub(crate) fn wake_at(&mut self, task: usize, by: Option<usize>, entity: Option<Virtual>) {
        self.tasks[task].waits = None;
        self.wake_when(task, by, entity, self.now);
    }

    /// `WakeCell::wake` at the virtual time `entity`. If that is `None`, the world outside wakes,
    /// by what came at `came`.
    fn wake_when(&mut self, task: usize, by: Option<usize>, entity: Option<Virtual>, came: Real) {
        let mut entity = entity;
        match self.rules.wakes {
            Wakes::Shipped => {}
            Wakes::EdgeUnknown => entity = None,
            Wakes::NotStretched => {
                entity = entity.or_else(|| Some(self.ledger.virtual_now(self.now)));
            }
            Wakes::Coz => return self.push(task, by, by.is_some()),
        }
        let (now, floor) = (self.now, self.ledger.floor());
        let woken = &mut self.tasks[task];
        if let Some(waker) = entity {
            woken.by_entity = woken.by_entity.min(waker);
            woken.used_up = true;
        } else if woken.yielded {
            woken.by_entity = Virtual(i64::MIN);
        } else {
            let all = match self.rules.joined.raise {
                Raise::Never => false,
                Raise::WhileHeld => woken.held && !woken.held_last,
                Raise::Once | Raise::Again => true,
            };
            woken.by_outside = match woken.by_outside {
                Real::NEVER => came,
                before if all => before.max(came),
                before => before.min(came),
            };
            let due = came.less(woken.taken.max(floor));
            if let Some(least) = self.rules.defer_from
                && !woken.unseen
                && self.ledger.early(due, now) > least
            {
                return self.hold_woken(task, due);
            }
        }
        self.push(task, by, by.is_some());
    }

    /// Notices that the world outside answered a wait at `at`.
    pub(crate) fn answered(&mut self, task: usize, wait: u64, part: Option<usize>, at: Real) {
        let waits = &self.tasks[task];
        if waits.wait != wait && (wait != SOURCE || waits.sources.iter().all(|&it| it > self.now)) {
            return;
        }
        if let Some(part) = part
            && self.part_answered(task, part)
        {
            return;
        }
        let came = self.came(task, at);
        self.end_target_wait(task, came);
        if self.tasks[task].unseen && !self.rules.requests_follow {
            let now = self.ledger.virtual_now(self.now);
            return self.wake_at(task, None, Some(now));
        }
        self.wake_when(task, None, None, came);
    }

    /// `WakeCell::end_wait`: the wait that is the target ended then, if the task is in one.
    pub(crate) fn end_target_wait(&mut self, task: usize, ended: Real) {
        if let Some(target_wait) = self.tasks[task].target_wait.take() {
            self.waits -= 1;
            let grown = self.ledger.end_wait(target_wait, ended);
            self.tasks[task].taken += grown;
            self.tasks[task].parked.taken += grown;
        }
    }

    /// Whether the task is to be held from now on, until `due`; if it is held already, that is
    /// raised.
    pub(crate) fn first_to_hold(&mut self, task: usize, due: Virtual) -> bool {
        let task = &mut self.tasks[task];
        let first = !std::mem::replace(&mut task.held, true);
        if !first {
            task.raised = task.raised.max(Some(due));
        }
        first
    }

    /// The task was held until now: passes its wake on, or holds it once more. `by` as in
    /// [`Engine::push`].
    pub(crate) fn is_due(&mut self, task: usize, by: Option<usize>) {
        let held = &mut self.tasks[task];
        held.held = false;
        let last = std::mem::take(&mut held.held_last);
        let once_more = match self.rules.joined.raise {
            Raise::Never => false,
            Raise::WhileHeld | Raise::Once => !last,
            Raise::Again => true,
        };
        if let Some(raised) = held.raised.take()
            && let Some(least) = self.rules.defer_from
            && once_more
            && self.ledger.early(raised, self.now) > least
        {
            held.held_last = true;
            return self.hold_woken(task, raised);
        }
        self.push(task, by, false);
    }

    /// `Profiled::poll` up to where the thread pays, or `false` if the task is deferred.
    pub(crate) fn start_poll(&mut self, i: usize, id: usize) -> bool {
        let (now, floor) = (self.now, self.ledger.floor());
        let task = &mut self.tasks[id];
        if let Some(born) = task.born.take() {
            task.parked = Parked { at: born, taken: born.delay_at(now) };
        }
        let ready = task.ready.min(task.take_ready(floor));
        if self.rules.wakes != Wakes::Coz {
            if let Some(least) = self.rules.defer_from
                && !task.blocking
                && ready != Virtual::NEVER
                && self.ledger.early(ready, now) > least
            {
                task.ready = ready;
                task.state = State::Idle;
                if self.tasks[id].unseen {
                    self.hold_woken(id, ready);
                } else {
                    self.hold(id, ready);
                }
                return false;
            }
            let from = if ready == Virtual::NEVER { task.parked.at } else { ready };
            self.ledger.join(self.threads[i].account, from, now);
        }
        let task = &mut self.tasks[id];
        task.ready = Virtual::NEVER;
        task.state = State::Running;
        self.threads[i].task = id;
        true
    }

    /// `thread::Poll::begin` after the thread has paid.
    pub(crate) fn begin_poll(&mut self, i: usize) {
        let id = self.threads[i].task;
        let kind = self.program.kinds[self.tasks[id].kind].name;
        self.threads[i].act = Act::Run;
        self.threads[i].work = 0;
        self.threads[i].faster = self.faster();
        let task = &mut self.tasks[id];
        task.taken = self.ledger.taken(self.threads[i].account, self.now);
        task.yielded = false;
        task.begun = Begun {
            at: self.now,
            under_way: (task.phase != 0).then_some(task.wait),
            // Who woke it has used its waker up.
            wakers: task.wakers(self.program, self.now).saturating_sub(task.used_up.into()),
        };
        task.used_up = false;
        if self.virtually.is_some_and(|(target, _)| target == Target::Task(kind)) {
            self.enter(i);
        }
    }

    /// `thread::Poll::end`: the task's clock as it parks or completes.
    pub(crate) fn end_of_poll(&mut self, i: usize, completed: bool) {
        self.exit(i);
        let (now, at) = (self.now, self.clock(i));
        let thread = &mut self.threads[i];
        thread.act = Act::End;
        thread.nudged = false;
        let yielded = self.program.coop && thread.budget == 0;
        let task = &mut self.tasks[thread.task];
        let Begun { at: begun, under_way, wakers } = task.begun;
        let goes_on = match self.rules.joined.go_on {
            GoOn::Never => false,
            GoOn::NoMore => now - begun < defer::LEAST && task.wakers(self.program, now) <= wakers,
            GoOn::NoneBegan => now - begun < defer::LEAST && under_way == Some(task.wait),
        };
        let taken = if goes_on { task.parked.taken } else { at.delay_at(now) };
        task.parked = Parked { at, taken };
        task.taken = taken;
        task.yielded = yielded;
        task.waits = (self.ledger.speedup() != Speedup::ZERO).then_some(now);
        if completed {
            task.state = State::Done;
        } else if let Some((Target::Wait(tag), _)) = self.virtually
            && tag == task.waits_for
        {
            task.target_wait = self.ledger.begin_wait(task.taken, now);
            self.waits += usize::from(task.target_wait.is_some());
        }
    }

    /// Does what the runtime does after a poll, once the thread has paid.
    pub(crate) fn end_poll(&mut self, i: usize) {
        let id = self.threads[i].task;
        match self.tasks[id].state {
            State::Done => {
                if let Some(joiner) = self.tasks[id].joiner {
                    self.wake(joiner, Some(i));
                }
            }
            state => {
                self.tasks[id].state = State::Idle;
                if state == State::Notified {
                    self.push(id, Some(i), true);
                }
                if std::mem::take(&mut self.tasks[id].yields) {
                    self.wake(id, None);
                }
            }
        }
    }

    /// The thread enters the target.
    pub(crate) fn enter(&mut self, i: usize) {
        let thread = &mut self.threads[i];
        thread.inside = true;
        if self.rules.credit == Credit::Timed && thread.entered.is_none() {
            self.ledger.enter(thread.account, self.now);
            thread.entered = Some(self.now);
        }
    }

    /// The thread leaves the target, if it is inside.
    pub(crate) fn exit(&mut self, i: usize) {
        let thread = &mut self.threads[i];
        thread.inside = false;
        if let Some(since) = thread.entered.take() {
            self.ledger.exit(thread.account, self.now, self.now - since);
        }
    }
}
