//! Threads that block each other, by a lock of std or as they wait for a task: what a block and a
//! poll inside of one do to a thread is what the engine that ships says.

use crate::engine::{Act, Engine};
use crate::percent;
use crate::program::*;
use crate::rules::{Rules, SHIPPED};
use crate::tables::{compare, errors_by, print_cases, print_errors};
use andweorc_core::engine::{Block, BlockEnd, Rested, ThreadPoll};
use andweorc_core::time::{Nanos, Speedup};
use std::collections::VecDeque;

/// A lock of std: threads wait for it, and are let in one after the other.
#[derive(Default)]
pub(crate) struct Lock {
    is_held: bool,
    waiters: VecDeque<usize>,
}

impl Engine<'_> {
    /// The thread blocks, as `thread::blocked` has it.
    pub(crate) fn block_thread(&mut self, i: usize) {
        let (now, ledger) = (self.now, self.ledger);
        let inside = self.threads[i].entered.is_some();
        let (block, state) = Block::begin(self.threads[i].state, inside, now);
        self.threads[i].state = state;
        self.threads[i].block = Some(block);
        self.exit(i);
        if ledger.speedup() != Speedup::ZERO {
            self.door.go_in(ledger, self.threads[i].account, now);
        }
    }

    /// The thread is blocked no more, and goes on once it has paid.
    pub(crate) fn unblock_thread(&mut self, i: usize) {
        let (now, ledger) = (self.now, self.ledger);
        let thread = &mut self.threads[i];
        let Some(block) = thread.block.take() else {
            return self.fail("a thread is unblocked that was not blocked");
        };
        if self.rules.blocks_absorb && ledger.speedup() != Speedup::ZERO {
            let most = self.door.comes_out(ledger, thread.account, block.since(), now);
            let rested = Rested::for_at_most(block.since(), most);
            self.model().end_rest(self.threads[i].account, rested, Nanos::ZERO, now);
        }
        let thread = &mut self.threads[i];
        let pays = block.pays(thread.state, BlockEnd::Said);
        thread.act = if pays { Act::Resumed } else { Act::Run };
        thread.state = block.end(thread.state);
        if block.is_inside() {
            self.enter(i);
        }
    }

    /// The thread takes a lock, or waits for it.
    pub(crate) fn lock(&mut self, i: usize, lock: usize) {
        self.block_thread(i);
        let lock = &mut self.shared.locks[lock];
        if lock.is_held {
            lock.waiters.push_back(i);
            self.threads[i].act = Act::Locked;
        } else {
            lock.is_held = true;
            self.unblock_thread(i);
        }
    }

    /// The thread lets go of a lock, and the one in that has waited longest.
    pub(crate) fn unlock(&mut self, lock: usize) {
        let lock = &mut self.shared.locks[lock];
        match lock.waiters.pop_front() {
            Some(next) => self.unblock_thread(next),
            None => lock.is_held = false,
        }
    }

    /// A thread that is blocked polls a task, which it waits for: a participant again until the
    /// poll ends, it pays first.
    pub(crate) fn begin_inner_poll(&mut self, i: usize) {
        let thread = &mut self.threads[i];
        if !self.rules.inner_polls {
            thread.act = Act::Run;
            return;
        }
        let (poll, state, kind) = ThreadPoll::begin(thread.state, thread.kind);
        (thread.inner_poll, thread.state, thread.kind) = (Some(poll), state, kind);
        thread.act = Act::Resumed;
    }

    /// That poll ends.
    pub(crate) fn end_inner_poll(&mut self, i: usize) {
        let thread = &mut self.threads[i];
        if let Some(poll) = thread.inner_poll.take() {
            thread.state = poll.end(true);
        }
    }
}

/// In percent.
const SPEEDUPS: [u32; 3] = [25, 50, 75];

const RULES: [Rules; 3] = [
    SHIPPED,
    Rules { name: "paid though it was blocked", blocks_absorb: false, ..SHIPPED },
    Rules { name: "blocked on in a poll inside", inner_polls: false, ..SHIPPED },
];

/// Plain threads that fight for a lock.
fn plain() -> Program {
    let mut p = Program::new("plain threads and a lock", 1).exact();
    let lock = p.lock();
    let ops = [
        span("outside", 120.0),
        Op::Lock(lock),
        span("inside", 81.0),
        Op::Unlock(lock),
        Op::Progress,
    ];
    p.threads("thread", 3, &ops);
    p.targets(&[Target::Span("inside"), Target::Span("outside")])
}

/// Handlers on workers that a plain thread blocks now and then.
fn workers() -> Program {
    let mut p = Program::new("workers that a plain thread blocks", 2);
    let lock = p.lock();
    let ops = [
        wait("client", 300.0),
        span("parse", 90.0),
        Op::Lock(lock),
        span("read", 40.0),
        Op::Unlock(lock),
        Op::Progress,
    ];
    p.tasks("handler", 4, &ops);
    p.threads("writer", 1, &[span("make", 150.0), Op::Lock(lock), cpu(130.0), Op::Unlock(lock)]);
    p.targets(&[Target::Span("parse"), Target::Span("read"), Target::Span("make")])
}

/// Plain threads that wait for tasks which they poll themselves, beside others that delay them.
fn polls_inside() -> Program {
    let mut p = Program::new("a poll inside of a block", 1).exact();
    let lock = p.lock();
    let waits = [
        vec![span("own", 101.0), Op::Block, Op::InnerPoll, span("inside", 150.0)],
        vec![Op::InnerEnd, Op::Unblock],
        vec![Op::Lock(lock), cpu(31.0), Op::Unlock(lock), Op::Progress],
    ];
    p.threads("waits", 2, &waits.concat());
    p.threads("other", 1, &[span("other", 70.0), Op::Lock(lock), cpu(53.0), Op::Unlock(lock)]);
    p.targets(&[Target::Span("own"), Target::Span("inside"), Target::Span("other")])
}

/// A thread that another one blocks takes what passed meanwhile, as far as that one had paid it: if
/// it paid, it would come late by as much to what it waited for.
#[test]
fn blocked_threads_take_what_passed_as_they_waited() {
    let programs = [plain(), workers().units(800).seeds(4), polls_inside()];
    let compared = compare(&programs, &SPEEDUPS.map(percent), &RULES);
    print_cases(&programs, &compared);
    let all = print_errors("rules, threads that block", &RULES, |n| errors_by(&compared, n));
    assert!(all[0].mean < 0.1 && all[0].worst < 0.8, "{:?}", all[0]);
    for without in &all[1..] {
        assert!(without.worst > 10.0, "{without:?}");
    }
}
