//! A task: what the runtime knows of it, and its clock, which is that of the
//! [engine](andweorc_core::engine). Calls are those of the waker and the poll of `andweorc-tokio`.

use crate::engine::{Act, Engine};
use crate::hosts::Mail;
use crate::part::Part;
use crate::program::{Branch, Inst, Op, Program, Target};
use crate::rules::{Credit, GoOn, Raise, Wakes};
use andweorc_core::engine::{
    Effect, Parking, PollBegun, PollEnded, PollStep, Rested, TaskClock, ThreadKind, ThreadPoll,
    ThreadState, WaitHint, WakeSource,
};
use andweorc_core::time::{Nanos, Real, Virtual};
use andweorc_core::wait::Cause;
use std::collections::VecDeque;

/// In the place of the number of a wait: a source that is there for all of them.
pub(crate) const SOURCE: u64 = u64::MAX;

/// A poll under way.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Real,
    poll: PollBegun,
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
    pub(crate) woken_by_participant: bool,

    // What the profiled future and its waker keep.
    born: Option<Virtual>,
    /// L of who spawned it, as it did.
    pub(crate) by: Nanos,
    pub(crate) clock: TaskClock,
    parking: Parking,
    /// The virtual time that it goes on from in the poll that begins, where a wake of its own
    /// caused that.
    ready: Virtual,
    /// The world outside has woken it since its last poll.
    came: bool,
    /// The task is held once more, for what came while it was held.
    held_last: bool,
    /// A participant has woken it since its last poll, with the waker that it had got.
    used_up: bool,
    begun: Option<Begun>,

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
    /// Messages to and from other hosts.
    pub(crate) mail: Mail,
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
            woken_by_participant: false,
            born: Some(born),
            by: Nanos::ZERO,
            clock: TaskClock::new(Nanos::ZERO, born),
            parking: Parking::born(born),
            ready: born,
            came: false,
            held_last: false,
            used_up: false,
            begun: None,
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
            mail: Mail::default(),
            children: VecDeque::new(),
            joiner: None,
            intervals: Vec::new(),
        }
    }

    /// When it parked last, in virtual time, or was born.
    pub(crate) fn parked_at(&self) -> Virtual {
        self.parking.at
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
}

/// The world outside, by what came then.
pub(crate) fn external(came: Real) -> WakeSource {
    WakeSource::External { came, by: Cause::Outside }
}

impl Engine<'_> {
    /// The virtual time of who runs on a thread.
    pub(crate) fn clock(&self, thread: usize) -> Virtual {
        self.ledger.virtual_of(self.threads[thread].account, self.now)
    }

    /// Wakes a task. `by` is the thread whose task does; `None` is the world outside.
    pub(crate) fn wake(&mut self, task: usize, by: Option<usize>) {
        if let Some(thread) = by
            && self.threads[thread].kind == ThreadKind::Unknown
            && !self.takes_part(thread)
        {
            return self.wake_at(task, None, None);
        }
        let state = by.map(|thread| self.threads[thread].state);
        if state.is_some_and(ThreadState::is_outside) {
            self.fail("a thread that acts for nobody wakes a task");
        }
        let participant = by.map(|thread| self.clock(thread));
        self.wake_at(task, by, participant);
        if let (Some(thread), Some(state)) = (by, state) {
            self.threads[thread].state = state.after_wake();
        }
    }

    /// Wakes a task at the virtual time `participant`; `None` is the world outside. `by` is the
    /// thread whose task wakes, if one does.
    pub(crate) fn wake_at(&mut self, task: usize, by: Option<usize>, participant: Option<Virtual>) {
        let source = match participant {
            Some(at) => WakeSource::Task { at, by: Cause::Task },
            None => external(self.now),
        };
        self.wake_by(task, by, source);
    }

    /// Wakes a task, as `WakeCell::wake` does. `by` is the thread whose task wakes, if one does.
    pub(crate) fn wake_by(&mut self, task: usize, by: Option<usize>, source: WakeSource) {
        let is_external = matches!(source, WakeSource::External { .. });
        let source = match self.rules.wakes {
            Wakes::Shipped => source,
            Wakes::EdgeUnknown if !is_external => external(self.now),
            Wakes::EdgeUnknown => source,
            Wakes::NotStretched if is_external => {
                let at = self.ledger.virtual_now(self.now);
                WakeSource::Task { at, by: Cause::Outside }
            }
            Wakes::NotStretched => source,
            Wakes::Coz => {
                self.end_target_wait(task, self.now);
                return self.push(task, by, by.is_some());
            }
        };
        let (model, now) = (self.model(), self.now);
        let woken = &mut self.tasks[task];
        let is_external = matches!(source, WakeSource::External { .. });
        let source = match woken.clock.hint() {
            WaitHint::Runtime if is_external => WakeSource::Runtime,
            _ => source,
        };
        woken.used_up |= matches!(source, WakeSource::Task { .. });
        let in_queue = woken.came && (!woken.clock.is_held() || woken.held_last);
        woken.came |= is_external;
        let effect = match source {
            WakeSource::External { came, .. }
                if in_queue && self.rules.joined.raise == Raise::WhileHeld =>
            {
                // Only its wake is held: what came is found when the first is due.
                let due = came.less(woken.clock.local_delay().max(self.ledger.forgiven_delay()));
                if model.is_early(due, now) { Effect::Hold(due) } else { Effect::PassOn(due) }
            }
            _ => woken.clock.woken(model, source, now),
        };
        match effect {
            Effect::Hold(due) if !woken.unseen => self.hold_woken(task, due, false),
            Effect::Hold(_) | Effect::PassOn(_) => self.push(task, by, by.is_some()),
        }
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
        if self.tasks[task].unseen && !self.rules.requests_follow {
            let now = self.ledger.virtual_now(self.now);
            return self.wake_at(task, None, Some(now));
        }
        self.wake_by(task, None, external(came));
    }

    /// The wait that is the target ended then, if the task is in one.
    pub(crate) fn end_target_wait(&mut self, task: usize, ended: Real) {
        self.tasks[task].clock.end_wait(self.model(), ended);
    }

    /// The task was held until now: passes its wake on, or holds it once more. `by` as in
    /// [`Engine::push`].
    pub(crate) fn is_due(&mut self, task: usize, by: Option<usize>) {
        let released = self.tasks[task].clock.released(self.model(), self.now);
        self.tasks[task].held_last = released.is_some_and(|released| released.again.is_some());
        match released.and_then(|released| released.again) {
            Some(again) => self.hold_woken(task, again, true),
            None => self.push(task, by, false),
        }
    }

    /// Begins a poll, up to where the thread pays, or returns `false` if the task is deferred. The
    /// thread was `idle` since then.
    pub(crate) fn start_poll(&mut self, i: usize, id: usize, idle: Option<Real>) -> bool {
        let (now, model) = (self.now, self.model());
        let task = &mut self.tasks[id];
        if let Some(born) = task.born.take() {
            task.clock = TaskClock::new(born.delay_at(now), born);
        }
        task.clock.end_wait(model, now);
        let ready = task.clock.take_ready(model, task.parking.at);
        let may_be_held = !task.blocking && self.rules.wakes != Wakes::Coz;
        if may_be_held && ready != Virtual::NEVER && model.is_early(ready, now) {
            task.state = State::Idle;
            if self.tasks[id].clock.defer_poll(ready) {
                self.is_held(id, ready);
            }
            // It hands the task back, and is idle until it has something else to run.
            if let Some(since) = idle {
                self.takes_in(i, since);
            }
            return false;
        }
        let from = if ready == Virtual::NEVER { task.parking.at } else { ready };
        let inside = self.threads[i].entered.is_some();
        ThreadPoll::take_steps(idle, inside, |step| match step {
            PollStep::EndRest(since) => self.takes_in(i, since),
            // Every thread has a processor of its own here.
            PollStep::TakeProcessorWait => {}
            PollStep::Join if self.rules.wakes == Wakes::Coz => {}
            PollStep::Join => model.join(self.threads[i].account, from, now),
            PollStep::Pay => self.threads[i].act = Act::Begin,
        });
        let task = &mut self.tasks[id];
        task.ready = ready;
        task.came = false;
        task.state = State::Running;
        self.threads[i].task = id;
        true
    }

    /// The thread found a task itself, and takes what it owed since it was idle.
    fn takes_in(&mut self, i: usize, since: Real) {
        let rested = Rested::until_found(since, self.now);
        self.model().end_rest(self.threads[i].account, rested, Nanos::ZERO, self.now);
    }

    /// `thread::Poll::begin` after the thread has paid.
    pub(crate) fn begin_poll(&mut self, i: usize) {
        let id = self.threads[i].task;
        let kind = self.program.kinds[self.tasks[id].kind].name;
        let thread = &mut self.threads[i];
        if self.program.strangers.contains(&self.tasks[id].kind) {
            thread.kind = ThreadKind::Unknown;
        } else {
            let (poll, state, kind) = ThreadPoll::begin(thread.state, thread.kind);
            (thread.poll, thread.state, thread.kind) = (Some(poll), state, kind);
        }
        self.threads[i].act = Act::Run;
        self.threads[i].work = 0;
        self.threads[i].faster = self.faster();
        let taken = self.ledger.local_delay(self.threads[i].account, self.now);
        let task = &mut self.tasks[id];
        // By Coz's rule wakes tell the clock nothing.
        let woken = task.ready != Virtual::NEVER || self.rules.wakes == Wakes::Coz;
        task.clock.take_woken();
        task.begun = Some(Begun {
            at: self.now,
            poll: task.clock.poll_begun(taken, woken),
            under_way: (task.phase != 0).then_some(task.wait),
            // Who woke it has used its waker up.
            wakers: task.wakers(self.program, self.now).saturating_sub(task.used_up.into()),
        });
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
        let Some(on_thread) = thread.poll.take() else {
            return self.fail("a thread that polls nothing waits as a task does");
        };
        thread.act = Act::End;
        thread.state = on_thread.end(completed);
        thread.nudged = false;
        let yielded = self.program.coop && thread.budget == 0;
        let (id, model) = (thread.task, self.model());
        let task = &mut self.tasks[id];
        let Some(Begun { at: begun, poll, under_way, wakers }) = task.begun.take() else {
            return self.fail("a poll ended that had not begun");
        };
        if completed {
            task.state = State::Done;
            return;
        }
        let began_wait = match self.rules.joined.go_on {
            GoOn::Never => true,
            GoOn::NoMore => task.wakers(self.program, now) > wakers,
            GoOn::NoneBegan => under_way != Some(task.wait),
        };
        let hint = if yielded { WaitHint::Runtime } else { WaitHint::External };
        let ended = PollEnded { at, lasted: now - begun, began_wait, hint };
        task.clock.poll_ended(model, poll, &mut task.parking, ended, now);
        if let Some((Target::Wait(tag), _)) = self.virtually
            && tag == task.waits_for
        {
            task.clock.begin_wait(model, now);
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
