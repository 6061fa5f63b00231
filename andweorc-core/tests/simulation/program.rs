//! A simulated program: tasks as sequences of operations, what they share, and what is made faster.

use crate::driver::Latencies;
use crate::hosts::Remote;
use andweorc_core::time::{Nanos, Speedup};
use std::fmt;

/// The name of a kind of task, of a span, of a function or of a wait.
pub(crate) type Tag = &'static str;

/// How long something takes, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    /// Always the same.
    Fixed(i64),
    /// Uniform between the two.
    Spread(i64, i64),
    /// Exponential with this mean.
    Exp(i64),
}

impl Cost {
    /// Lets a fixed cost vary by so much either way.
    fn vary(&mut self, by: f64) {
        if let Cost::Fixed(ns) = *self
            && by > 0.0
        {
            let end = |factor: f64| (ns as f64 * factor).round() as i64;
            *self = Cost::Spread(end(1.0 - by), end(1.0 + by));
        }
    }

    /// The next one.
    pub(crate) fn draw(self, rng: &mut fastrand::Rng) -> i64 {
        match self {
            Cost::Fixed(ns) => ns,
            Cost::Spread(low, high) => rng.i64(low..=high),
            Cost::Exp(mean) => (-(1.0 - rng.f64()).ln() * mean as f64) as i64,
        }
    }

    /// Returns the average cost, in ns.
    pub(crate) fn mean(self) -> i64 {
        match self {
            Cost::Fixed(ns) => ns,
            Cost::Spread(low, high) => (low + high) / 2,
            Cost::Exp(mean) => mean,
        }
    }
}

/// CPU time, with the span and the function that it is spent in, if any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    pub(crate) cost: Cost,
    pub(crate) span: Tag,
    pub(crate) function: Tag,
}

/// Something outside that a task can wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct External {
    pub(crate) cost: Cost,
    pub(crate) tag: Tag,
    /// Served one after the other by this server, instead of all at once.
    pub(crate) server: Option<usize>,
    /// Awaited by a task around the profiled one, which nobody profiles: a connection that waits
    /// for its next request.
    pub(crate) unseen: bool,
}

/// One operation of a task. Indices are those that [`Program`] gave out.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Cpu(Cpu),
    /// A timer or I/O: the world outside wakes the task.
    External(External),
    /// Several at once, until the last is there (`join!`).
    ExternalAll(Vec<External>),
    /// Several waits outside at once, until the last is there, each profiled by itself.
    ExternalParts(Vec<External>),
    /// Work from outside at multiples of a period, as of clients that wait for nobody.
    Tick(i64),
    /// A timer of the program's own, for so long.
    Timer(i64),
    /// The next tick of an `interval` of its own.
    Interval(i64, Missed),
    /// Adds permits, up to so many.
    Fill(usize, u32),
    /// Puts a message in a bounded channel; waits while it is full.
    Send(usize),
    Recv(usize),
    /// Sends a message and waits for the oneshot that comes back.
    Call(usize),
    /// Answers the message that was received last.
    Reply,
    Acquire(usize, u32),
    Release(usize, u32),
    NotifyOne(usize),
    NotifyAll(usize),
    Notified(usize),
    /// Starts a task of this kind.
    Spawn(usize),
    /// Starts it on the blocking pool.
    SpawnBlocking(usize),
    /// Waits for the oldest task that was started and not joined.
    Join,
    /// Takes a lock of std, which blocks the thread.
    Lock(usize),
    Unlock(usize),
    /// Blocks the thread, up to [`Op::Unblock`]: it waits for what follows.
    Block,
    Unblock,
    /// The thread pays what it owes before it acts on others, if it is a participant.
    CatchUp,
    /// Begins a poll inside of the block, of a task that the thread waits for.
    InnerPoll,
    InnerEnd,
    /// Sends to another host, or waits for what comes from there.
    Remote(Remote),
    /// The first branch that is ready, in the order written.
    Select(Vec<(Branch, Vec<Op>)>),
    /// Once in so many times, by chance.
    OneIn(u32, Vec<Op>),
    Repeat(u32, Vec<Op>),
    Forever(Vec<Op>),
    /// A unit of work is done.
    Progress,
    Begin,
    End,
}

/// When an `interval` ticks next that has missed a tick, as tokio's `MissedTickBehavior`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    Burst,
    Delay,
    Skip,
}

/// Something that a `select!` waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Branch {
    Recv(usize),
    Notified(usize),
    External(External),
    /// A timer of the program's own.
    Timer(i64),
    /// A peer outside, which goes on while other branches run, and answers anew this long after it
    /// was listened to again.
    Source(External),
}

/// An operation as it is run: loops and branches are jumps.
#[derive(Clone, Debug)]
pub(crate) enum Inst {
    Op(Op),
    Select(Vec<(Branch, usize)>),
    /// Goes on, or skips to the address.
    OneIn(u32, usize),
    LoopBegin(u32),
    /// Back to the address while the loop is not done.
    LoopEnd(usize),
    Jump(usize),
}

impl Inst {
    /// Lets what it costs vary by so much either way.
    fn vary(&mut self, by: f64) {
        match self {
            Inst::Op(Op::Cpu(cpu)) => cpu.cost.vary(by),
            Inst::Op(Op::External(external)) => external.cost.vary(by),
            Inst::Op(Op::ExternalAll(all) | Op::ExternalParts(all)) => {
                all.iter_mut().for_each(|e| e.cost.vary(by))
            }
            Inst::Select(branches) => {
                for (branch, _) in branches {
                    if let Branch::External(external) | Branch::Source(external) = branch {
                        external.cost.vary(by);
                    }
                }
            }
            _ => {}
        }
    }
}

fn compile(ops: &[Op], code: &mut Vec<Inst>) {
    for op in ops {
        match op {
            Op::Forever(body) => {
                let start = code.len();
                compile(body, code);
                code.push(Inst::Jump(start));
            }
            Op::Repeat(times, body) => {
                code.push(Inst::LoopBegin(*times));
                let start = code.len();
                compile(body, code);
                code.push(Inst::LoopEnd(start));
            }
            Op::OneIn(times, body) => {
                let at = code.len();
                code.push(Inst::OneIn(*times, 0));
                compile(body, code);
                code[at] = Inst::OneIn(*times, code.len());
            }
            Op::Select(branches) => {
                let at = code.len();
                code.push(Inst::Select(Vec::new()));
                let (mut starts, mut ends) = (Vec::new(), Vec::new());
                for (branch, body) in branches {
                    starts.push((*branch, code.len()));
                    compile(body, code);
                    ends.push(code.len());
                    code.push(Inst::Jump(0));
                }
                let end = code.len();
                ends.into_iter().for_each(|jump| code[jump] = Inst::Jump(end));
                code[at] = Inst::Select(starts);
            }
            other => code.push(Inst::Op(other.clone())),
        }
    }
}

/// A kind of task.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: Tag,
    pub(crate) code: Vec<Inst>,
}

/// Where ready tasks wait for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queues {
    /// One queue for all.
    Global,
    /// One for each worker, beside the global one.
    Local { lifo_slot: bool, stealing: bool },
}

/// Part of a program that is made faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// Every poll of a kind of task.
    Task(Tag),
    Span(Tag),
    /// A function that takes this share of a span: predicted by crediting the span its share, as a
    /// smoothed sample would.
    Share {
        span: Tag,
        function: Tag,
        share: f64,
    },
    /// External waits of this tag.
    Wait(Tag),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Task(tag) => write!(f, "task {tag}"),
            Target::Span(tag) => write!(f, "span {tag}"),
            Target::Share { span, function, .. } => write!(f, "function {function} of {span}"),
            Target::Wait(tag) => write!(f, "wait {tag}"),
        }
    }
}

impl Target {
    /// The speedup that the ledger is told.
    pub(crate) fn credited(self, speedup: Speedup) -> Speedup {
        match self {
            Target::Share { share, .. } => {
                Speedup::from_ppm((f64::from(speedup.ppm()) * share).round() as u32)
            }
            _ => speedup,
        }
    }

    /// Whether the ledger counts this stretch of CPU time as inside.
    pub(crate) fn is_span(self, cpu: &Cpu) -> bool {
        match self {
            Target::Span(tag) | Target::Share { span: tag, .. } => tag == cpu.span,
            Target::Task(_) | Target::Wait(_) => false,
        }
    }

    /// Whether a real change of the target makes this stretch of CPU time shorter.
    pub(crate) fn covers(self, kind: Tag, cpu: &Cpu) -> bool {
        match self {
            Target::Task(tag) => tag == kind,
            Target::Span(tag) => tag == cpu.span,
            Target::Share { span, function, .. } => span == cpu.span && function == cpu.function,
            Target::Wait(_) => false,
        }
    }
}

/// A stretch of time with the target really faster.
pub(crate) fn scaled(ns: i64, speedup: Speedup) -> i64 {
    ns - speedup.of(Nanos(ns)).0
}

/// A program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: Tag,
    pub(crate) workers: usize,
    pub(crate) queues: Queues,
    /// If there are any, workers sleep, and notice late what comes from outside.
    pub(crate) latencies: Option<Latencies>,
    /// By how much each cost varies either way: nothing in the world takes exactly as long as
    /// something else, and which of two things that happen at the same instant comes first is
    /// decided by rounding.
    pub(crate) varies: f64,
    /// tokio's budget of 128 operations a poll.
    pub(crate) coop: bool,
    pub(crate) kinds: Vec<Kind>,
    /// Which kinds run from the start, a task each.
    pub(crate) start: Vec<usize>,
    /// Which kinds plain threads run from the start, each on one of its own.
    pub(crate) plain: Vec<usize>,
    /// Such kinds whose threads have not registered.
    pub(crate) strangers: Vec<usize>,
    /// Capacities.
    pub(crate) channels: Vec<u32>,
    /// Permits.
    pub(crate) semaphores: Vec<u32>,
    pub(crate) notifies: usize,
    /// Locks of std.
    pub(crate) locks: usize,
    /// Where messages of other hosts come in.
    pub(crate) inboxes: usize,
    /// How many requests each external server serves at once.
    pub(crate) servers: Vec<usize>,
    pub(crate) targets: Vec<Target>,
    /// Units of work that are measured, after some to warm up.
    pub(crate) units: u32,
    /// Runs with different draws, averaged.
    pub(crate) seeds: u64,
}

impl Program {
    pub(crate) fn new(name: Tag, workers: usize) -> Program {
        Program {
            name,
            workers,
            queues: Queues::Global,
            latencies: None,
            varies: 0.1,
            coop: true,
            kinds: Vec::new(),
            start: Vec::new(),
            plain: Vec::new(),
            strangers: Vec::new(),
            channels: Vec::new(),
            semaphores: Vec::new(),
            notifies: 0,
            locks: 0,
            inboxes: 0,
            servers: Vec::new(),
            targets: Vec::new(),
            units: 400,
            seeds: 1,
        }
    }

    pub(crate) fn channel(&mut self, capacity: u32) -> usize {
        self.channels.push(capacity);
        self.channels.len() - 1
    }

    pub(crate) fn semaphore(&mut self, permits: u32) -> usize {
        self.semaphores.push(permits);
        self.semaphores.len() - 1
    }

    pub(crate) fn notify(&mut self) -> usize {
        self.notifies += 1;
        self.notifies - 1
    }

    pub(crate) fn lock(&mut self) -> usize {
        self.locks += 1;
        self.locks - 1
    }

    pub(crate) fn inbox(&mut self) -> usize {
        self.inboxes += 1;
        self.inboxes - 1
    }

    pub(crate) fn server(&mut self, at_once: usize) -> usize {
        self.servers.push(at_once);
        self.servers.len() - 1
    }

    /// A kind of task that others start.
    pub(crate) fn kind(&mut self, name: Tag, ops: &[Op]) -> usize {
        let mut code = Vec::new();
        compile(ops, &mut code);
        code.iter_mut().for_each(|inst| inst.vary(self.varies));
        self.kinds.push(Kind { name, code });
        self.kinds.len() - 1
    }

    /// `count` tasks of a kind from the start, each looping for ever.
    pub(crate) fn tasks(&mut self, name: Tag, count: usize, ops: &[Op]) {
        let kind = self.kind(name, &[Op::Forever(ops.to_vec())]);
        self.start.extend(std::iter::repeat_n(kind, count));
    }

    /// `count` plain threads that have registered, each looping for ever.
    pub(crate) fn threads(&mut self, name: Tag, count: usize, ops: &[Op]) {
        let kind = self.kind(name, &[Op::Forever(ops.to_vec())]);
        self.plain.extend(std::iter::repeat_n(kind, count));
    }

    /// `count` plain threads that have not registered, each looping for ever. None may wait as a
    /// task does.
    pub(crate) fn strangers(&mut self, name: Tag, count: usize, ops: &[Op]) {
        let kind = self.kind(name, &[Op::Forever(ops.to_vec())]);
        self.strangers.extend(std::iter::repeat_n(kind, count));
    }

    /// Lets no cost vary from here on.
    pub(crate) fn exact(mut self) -> Program {
        self.varies = 0.0;
        self
    }

    pub(crate) fn local_queues(mut self, lifo_slot: bool, stealing: bool) -> Program {
        self.queues = Queues::Local { lifo_slot, stealing };
        self
    }

    /// Tokio's queues and its driver, on a machine on which a thread needs 30 to 60 us to wake up,
    /// and the world outside is late by 50 to 80.
    pub(crate) fn late_looks(mut self) -> Program {
        let between = |from: i64, to: i64| Cost::Spread(from * 1000, to * 1000);
        self.latencies = Some(Latencies {
            wake: between(30, 60),
            answer: between(50, 80),
            pause: Cost::Fixed(0),
        });
        self.local_queues(true, true)
    }

    /// Threads come back late from pauses, by up to twice this.
    pub(crate) fn late_pauses(mut self, mean_us: i64) -> Program {
        if let Some(latencies) = &mut self.latencies {
            latencies.pause = Cost::Spread(0, 2000 * mean_us);
        }
        self
    }

    pub(crate) fn units(mut self, units: u32) -> Program {
        self.units = units;
        self
    }

    pub(crate) fn seeds(mut self, seeds: u64) -> Program {
        self.seeds = seeds;
        self
    }

    pub(crate) fn targets(mut self, targets: &[Target]) -> Program {
        self.targets = targets.to_vec();
        self
    }
}

/// The readers of an RwLock share so many permits; a writer takes all of them.
pub(crate) const READERS: u32 = 1 << 10;

fn fixed(us: f64) -> Cost {
    Cost::Fixed((us * 1e3).round() as i64)
}

/// CPU time in us, in no span.
pub(crate) fn cpu(us: f64) -> Op {
    span("", us)
}

/// CPU time in us in a span.
pub(crate) fn span(span: Tag, us: f64) -> Op {
    Op::Cpu(Cpu { cost: fixed(us), span, function: "" })
}

/// CPU time in us in a function in a span.
pub(crate) fn function(span: Tag, function: Tag, us: f64) -> Op {
    Op::Cpu(Cpu { cost: fixed(us), span, function })
}

pub(crate) fn external(tag: Tag, us: f64) -> External {
    External { cost: fixed(us), tag, server: None, unseen: false }
}

/// A timer or I/O of `us`.
pub(crate) fn wait(tag: Tag, us: f64) -> Op {
    Op::External(external(tag, us))
}

/// I/O that takes an exponentially distributed time.
pub(crate) fn wait_exp(tag: Tag, us: f64) -> Op {
    Op::External(External { cost: Cost::Exp((us * 1e3) as i64), tag, server: None, unseen: false })
}

/// I/O that takes from half of this time to one and a half.
pub(crate) fn wait_spread(tag: Tag, us: f64) -> Op {
    let end = |factor: f64| (us * factor * 1e3) as i64;
    let cost = Cost::Spread(end(0.5), end(1.5));
    Op::External(External { cost, tag, server: None, unseen: false })
}

/// A request to a server outside that serves others too.
pub(crate) fn ask(server: usize, tag: Tag, us: f64) -> Op {
    Op::External(External { cost: fixed(us), tag, server: Some(server), unseen: false })
}

/// A timer or I/O that a task around this one awaits, which nobody profiles.
pub(crate) fn unseen(tag: Tag, us: f64) -> Op {
    Op::External(External { unseen: true, ..external(tag, us) })
}

/// `ops` while holding the lock.
pub(crate) fn locked(mutex: usize, ops: &[Op]) -> Vec<Op> {
    holding(mutex, 1, ops)
}

/// `ops` while holding so many permits.
pub(crate) fn holding(semaphore: usize, permits: u32, ops: &[Op]) -> Vec<Op> {
    let mut all = vec![Op::Acquire(semaphore, permits)];
    all.extend_from_slice(ops);
    all.push(Op::Release(semaphore, permits));
    all
}
