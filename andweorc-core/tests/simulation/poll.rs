//! A poll of a task: its operations, one after the other, until it must wait.

use crate::engine::{Act, Engine};
use crate::program::{Branch, Cpu, External, Inst, Op, Target, scaled};
use crate::task::Task;
use andweorc_core::time::{Nanos, Real};

/// More operations than this without any time passing are an endless loop.
const MOST_AT_ONCE: u32 = 100_000;

/// Fate of a task after an operation.
pub(crate) enum Flow {
    Next,
    /// The thread is busy with it.
    Busy,
    Pending,
}

impl Engine<'_> {
    /// Runs the task of a thread until it uses time, waits or completes.
    pub(crate) fn execute(&mut self, i: usize) {
        let program = self.program;
        let id = self.threads[i].task;
        for _ in 0..MOST_AT_ONCE {
            let task = &mut self.tasks[id];
            let Some(inst) = program.kinds[task.kind].code.get(task.pc) else {
                return self.end_of_poll(i, true);
            };
            match inst {
                Inst::Jump(to) => task.pc = *to,
                Inst::LoopBegin(times) => {
                    task.loops.push(*times);
                    task.pc += 1;
                }
                Inst::LoopEnd(start) => {
                    let left = task.loops.last_mut().expect("the loop has begun");
                    *left -= 1;
                    if *left > 0 {
                        task.pc = *start;
                    } else {
                        task.loops.pop();
                        task.pc += 1;
                    }
                }
                Inst::OneIn(times, skip) => {
                    task.pc = if task.rng.u32(0..*times) == 0 { task.pc + 1 } else { *skip };
                }
                Inst::Select(branches) => {
                    let Some(to) = self.select(i, id, branches) else {
                        return self.end_of_poll(i, false);
                    };
                    self.next(id, to);
                }
                Inst::Op(op) => match self.operation(i, id, op) {
                    Flow::Next => {
                        let to = self.tasks[id].pc + 1;
                        self.next(id, to);
                    }
                    Flow::Busy => return,
                    Flow::Pending => return self.end_of_poll(i, false),
                },
            }
            if self.failed.is_some() {
                return;
            }
        }
        self.fail("a task loops without using time");
    }

    fn next(&mut self, id: usize, to: usize) {
        let task = &mut self.tasks[id];
        task.pc = to;
        task.phase = 0;
        task.waits_for = "";
        task.unseen = false;
        task.wait += 1;
        task.deadlines.clear();
        task.timers.clear();
        task.parts.clear();
    }

    /// `poll_proceed` of tokio's coop: whether the task may go on. If not, it wakes itself.
    fn may_proceed(&mut self, i: usize, id: usize) -> bool {
        if self.program.coop && !self.tasks[id].blocking && self.threads[i].budget == 0 {
            self.tasks[id].yields = true;
            return false;
        }
        true
    }

    /// An operation of the runtime went through, or did not.
    fn outcome(&mut self, i: usize, done: bool) -> Flow {
        if !done {
            return Flow::Pending;
        }
        self.threads[i].budget = self.threads[i].budget.saturating_sub(1);
        Flow::Next
    }

    fn operation(&mut self, i: usize, id: usize, op: &Op) -> Flow {
        match op {
            Op::Cpu(cpu) => return self.cpu(i, id, cpu),
            Op::Progress => {
                self.progress();
                return Flow::Next;
            }
            Op::Begin => {
                let at = self.clock(i);
                self.tasks[id].intervals.push(at);
                return Flow::Next;
            }
            Op::End => {
                if let Some(begin) = self.tasks[id].intervals.pop() {
                    let took = self.clock(i) - begin;
                    self.latencies.push(took.0);
                }
                return Flow::Next;
            }
            Op::Reply => {
                if let Some(caller) = self.tasks[id].message.take() {
                    self.tasks[caller].replied = true;
                    self.wake(caller, Some(i));
                }
                return Flow::Next;
            }
            Op::Fill(semaphore, most) => {
                self.fill(i, *semaphore, *most);
                return Flow::Next;
            }
            Op::Release(semaphore, permits) => {
                self.release(i, *semaphore, *permits);
                return Flow::Next;
            }
            Op::NotifyOne(notify) => {
                self.notify_one(i, *notify);
                return Flow::Next;
            }
            Op::NotifyAll(notify) => {
                self.notify_all(i, *notify);
                return Flow::Next;
            }
            Op::Spawn(kind) | Op::SpawnBlocking(kind) => {
                let blocking = matches!(op, Op::SpawnBlocking(_));
                let born = self.clock(i);
                let rng = self.tasks[id].rng.fork();
                let by = born.delay_at(self.now);
                let child = self.add_task(Task::new(*kind, born, rng, blocking));
                self.tasks[child].by = by;
                self.tasks[id].children.push_back(child);
                self.push(child, Some(i), true);
                return Flow::Next;
            }
            Op::Lock(_) | Op::Block | Op::Unblock | Op::CatchUp | Op::InnerPoll | Op::InnerEnd => {
                return self.block_op(i, id, op);
            }
            Op::Remote(remote) => {
                let proceeds = self.may_proceed(i, id);
                return if proceeds { self.remote(i, id, remote) } else { Flow::Pending };
            }
            Op::Unlock(lock) => {
                self.unlock(*lock);
                return Flow::Next;
            }
            Op::Repeat(..) | Op::Forever(_) | Op::OneIn(..) | Op::Select(_) => {
                self.fail("loops and branches are jumps");
                return Flow::Pending;
            }
            _ => {}
        }
        if !self.may_proceed(i, id) {
            return Flow::Pending;
        }
        let done = match op {
            Op::External(external) if self.tasks[id].blocking => {
                return self.block(i, id, external);
            }
            Op::External(external) => {
                self.tasks[id].waits_for = external.tag;
                self.tasks[id].unseen = external.unseen;
                self.wait_for(id, std::slice::from_ref(external))
            }
            Op::Tick(period) => {
                if self.tasks[id].phase == 0 {
                    self.tasks[id].phase = 1;
                    self.tasks[id].tick = self.tasks[id].tick + Nanos(*period);
                    let when = self.tasks[id].tick;
                    self.tasks[id].deadlines.push(when);
                    self.external(when, id, None);
                }
                self.tasks[id].tick <= self.now
            }
            Op::Timer(after) => self.sleep(id, Nanos(*after)),
            Op::Interval(period, missed) => self.tick(id, Nanos(*period), *missed),
            Op::ExternalAll(all) => self.wait_for(id, all),
            Op::ExternalParts(all) => self.poll_parts(i, id, all),
            Op::Send(channel) => self.send(i, id, *channel, None),
            Op::Recv(channel) => self.take(i, id, *channel),
            Op::Call(channel) => {
                if self.tasks[id].phase < 2 && self.send(i, id, *channel, Some(id)) {
                    self.tasks[id].phase = 2;
                }
                self.tasks[id].phase == 2 && std::mem::take(&mut self.tasks[id].replied)
            }
            Op::Acquire(semaphore, permits) => self.acquire(id, *semaphore, *permits),
            Op::Notified(notify) => {
                let first = std::mem::replace(&mut self.tasks[id].phase, 1) == 0;
                self.notified(id, *notify, first)
            }
            Op::Join => self.join(id),
            _ => unreachable!("was done above"),
        };
        self.outcome(i, done)
    }

    fn cpu(&mut self, i: usize, id: usize, cpu: &Cpu) -> Flow {
        let of_span = self.virtually.is_some_and(|(target, _)| target.is_span(cpu));
        // As for the ledger, a change counts from the next entry of the target on.
        let faster = match self.faster() {
            Some((Target::Task(_), _)) => self.threads[i].faster,
            faster => faster,
        };
        let task = &mut self.tasks[id];
        if task.phase == 1 {
            if of_span {
                self.exit(i);
            }
            return Flow::Next;
        }
        task.phase = 1;
        let kind = self.program.kinds[task.kind].name;
        let mut cost = cpu.cost.draw(&mut task.rng);
        if let Some((target, speedup)) = faster
            && target.covers(kind, cpu)
        {
            cost = scaled(cost, speedup);
        }
        self.threads[i].work = cost;
        if of_span {
            self.enter(i);
        }
        Flow::Busy
    }

    /// When the world outside will answer.
    pub(crate) fn ask(&mut self, id: usize, external: &External) -> Real {
        let mut cost = external.cost.draw(&mut self.tasks[id].rng);
        if let Some((Target::Wait(tag), speedup)) = self.faster()
            && tag == external.tag
        {
            cost = scaled(cost, speedup);
        }
        let late = self.program.latencies.map_or(0, |it| it.answer.draw(&mut self.tasks[id].rng));
        let late = Nanos(late);
        match external.server {
            Some(server) => self.shared.serve(server, self.now, Nanos(cost)) + late,
            None => self.now + Nanos(cost) + late,
        }
    }

    /// Waits for the last of these.
    fn wait_for(&mut self, id: usize, all: &[External]) -> bool {
        if self.tasks[id].phase == 0 {
            self.tasks[id].phase = 1;
            for external in all {
                let when = self.ask(id, external);
                self.tasks[id].deadlines.push(when);
                self.external(when, id, None);
            }
        }
        self.tasks[id].deadlines.iter().all(|&when| when <= self.now)
    }

    /// A thread of the blocking pool waits in the kernel.
    fn block(&mut self, i: usize, id: usize, external: &External) -> Flow {
        if self.tasks[id].phase == 1 {
            return Flow::Next;
        }
        self.tasks[id].phase = 1;
        let until = self.ask(id, external);
        self.threads[i].act = Act::Blocked { until };
        Flow::Busy
    }

    /// An operation that may keep the thread from going on at once.
    fn block_op(&mut self, i: usize, id: usize, op: &Op) -> Flow {
        if std::mem::replace(&mut self.tasks[id].phase, 1) == 1 {
            return Flow::Next;
        }
        match op {
            Op::Lock(lock) => self.lock(i, *lock),
            Op::Block => self.block_thread(i),
            Op::Unblock => self.unblock_thread(i),
            Op::CatchUp => self.catch_up(i),
            Op::InnerPoll => self.begin_inner_poll(i),
            _ => self.end_inner_poll(i),
        }
        Flow::Busy
    }

    fn send(&mut self, i: usize, id: usize, channel: usize, answer_to: Option<usize>) -> bool {
        let places = self.shared.channels[channel].places;
        let got = self.acquire(id, places, 1);
        if got {
            self.put(i, channel, answer_to);
        }
        got
    }

    fn join(&mut self, id: usize) -> bool {
        let Some(&child) = self.tasks[id].children.front() else {
            self.fail("nothing to join");
            return true;
        };
        if self.tasks[child].state == crate::task::State::Done {
            self.tasks[id].children.pop_front();
            return true;
        }
        self.tasks[child].joiner = Some(id);
        false
    }

    /// The address of the first branch that is ready.
    fn select(&mut self, i: usize, id: usize, branches: &[(Branch, usize)]) -> Option<usize> {
        if !self.may_proceed(i, id) {
            return None;
        }
        let first = std::mem::replace(&mut self.tasks[id].phase, 1) == 0;
        let mut chosen = None;
        for (n, (branch, to)) in branches.iter().enumerate() {
            let ready = match branch {
                Branch::Recv(channel) => self.take(i, id, *channel),
                Branch::Notified(notify) => self.notified(id, *notify, first),
                Branch::Source(external) => {
                    if self.tasks[id].sources.len() <= n {
                        self.tasks[id].sources.resize(n + 1, Real::NEVER);
                    }
                    if self.tasks[id].sources[n] == Real::NEVER {
                        let when = self.ask(id, external);
                        self.tasks[id].sources[n] = when;
                        self.source(when, id);
                    }
                    self.tasks[id].sources[n] <= self.now
                }
                Branch::Timer(after) => {
                    if first {
                        self.set_timer(id, self.program_now(), Nanos(*after));
                    }
                    let before = branches[..n].iter();
                    let nth = before.filter(|(b, _)| matches!(b, Branch::Timer(_))).count();
                    self.tasks[id].timers[nth] <= self.program_now()
                }
                Branch::External(external) => {
                    if first {
                        let when = self.ask(id, external);
                        self.tasks[id].deadlines.push(when);
                        self.external(when, id, None);
                    }
                    let before = branches[..n].iter();
                    let nth = before.filter(|(b, _)| matches!(b, Branch::External(_))).count();
                    self.tasks[id].deadlines[nth] <= self.now
                }
            };
            if ready {
                chosen = Some((n, *to));
                break;
            }
        }
        let (chosen, to) = chosen?;
        for (n, (branch, _)) in branches.iter().enumerate() {
            match branch {
                Branch::Recv(channel) if n != chosen => self.leave_channel(id, *channel),
                Branch::Notified(notify) if n != chosen => self.leave_notify(i, id, *notify),
                Branch::Source(_) if n == chosen => self.tasks[id].sources[n] = Real::NEVER,
                _ => {}
            }
        }
        self.threads[i].budget = self.threads[i].budget.saturating_sub(1);
        Some(to)
    }
}
