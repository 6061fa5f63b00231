//! Samples on their way from a signal handler to the thread that resolves them.
//!
//! One writer, the handler on the sampled thread, and one reader. Plain atomics, so that neither
//! needs unsafe code: `written` and `read` only grow, each is moved by one side, and a word between
//! them is not written. A sample takes as many words as its chain is long.

use crate::counter_cells::MOST;
use crate::stack_copy::StackCopy;
use andweorc_profile::time::Nanos;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Frames of a call chain that targets are looked for in. In experiments no more are kept.
pub const DEPTH: usize = 14;

/// Frames of a call chain that are kept while whole chains are recorded: those of async code in
/// builds without optimisation are deep.
pub const LONG: usize = 128;

/// Words before the frames of a sample: its context and task, its time or overflow, and its
/// stack, whether more frames are left out, and how many there are.
const HEAD: usize = 3;

/// Words that find room: 256 samples of [`DEPTH`] frames. At 4 kHz they last for 60 ms, five times
/// as long as it takes until they are read, and at 1 kHz for 33 ms if all are [`LONG`].
const ROOM: usize = 256 * (HEAD + DEPTH);

/// Bits of the second word for the time, or for the events of an overflow. Above these are the
/// counter's number plus one, and zeroes in a sample of CPU time; ones, where that is below zero.
const TIME_BITS: u32 = 56;

const _: () = assert!(MOST < u8::MAX as usize);

/// Bits of the third word.
const LENGTH: u64 = 0xffff;
const FULL: u64 = 1 << 16;
const COPY_SHIFT: u32 = 32;

/// Overflow of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The number of the counter among those of its thread.
    pub counter: usize,
    /// Events that it stands for, below 2^56.
    pub events: u64,
}

impl Overflow {
    /// The second word of a sample.
    fn word(self) -> u64 {
        (self.counter as u64 + 1) << TIME_BITS | self.events & ((1 << TIME_BITS) - 1)
    }

    /// The overflow that the second word of a sample tells of.
    fn of(word: u64) -> Option<Overflow> {
        let counter = (word >> TIME_BITS) as usize;
        let events = word & ((1 << TIME_BITS) - 1);
        (1..=MOST).contains(&counter).then(|| Overflow { counter: counter - 1, events })
    }
}

/// Where a thread was found.
#[derive(Debug)]
pub struct Sample {
    /// The context of the thread, as the function that credits its samples says; 0 for none.
    pub context: u32,
    /// The id of the kind of task that the thread polled, as [`set_task`](crate::slots::set_task)
    /// was told; 0 for none.
    pub task: u32,
    /// CPU time that the sample stands for; zero for an overflow.
    pub ran: Nanos,
    /// The overflow of a counter that the sample is, if it is none of CPU time.
    pub overflow: Option<Overflow>,
    /// A copy of the thread's stack, where one was asked for and there was a place for it.
    pub stack: Option<StackCopy>,
    frames: Vec<u64>,
    is_full: bool,
    is_unwound: bool,
}

impl Sample {
    /// The chain of `context`, of a thread that `ran` for so long since the sample before; what is
    /// deeper than [`LONG`] is left out.
    pub fn new(context: u32, ran: Nanos, chain: &[u64]) -> Sample {
        let frames = chain[..chain.len().min(LONG)].to_vec();
        let is_full = chain.len() >= LONG;
        let (overflow, stack) = (None, None);
        Sample { context, task: 0, ran, overflow, stack, frames, is_full, is_unwound: false }
    }

    /// The sample at an overflow.
    pub fn at(self, overflow: Overflow) -> Sample {
        Sample { ran: Nanos::ZERO, overflow: Some(overflow), ..self }
    }

    /// The sample of a thread that polled a task of this kind.
    pub fn of_task(self, task: u32) -> Sample {
        Sample { task, ..self }
    }

    /// The sample with the chain that its stack was unwound to, which `is_full` if it may go on.
    pub fn unwound(&self, chain: Vec<u64>, is_full: bool) -> Sample {
        let Sample { context, task, ran, overflow, .. } = *self;
        let (stack, frames) = (None, chain);
        Sample { context, task, ran, overflow, stack, frames, is_full, is_unwound: true }
    }

    /// Whether the chain was unwound by the tables of the code, and not by frame pointers.
    pub fn is_unwound(&self) -> bool {
        self.is_unwound
    }

    /// Whether the chain has all the frames that are kept: it may go on beyond them.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The instruction, then for each caller an address in its call.
    pub fn chain(&self) -> &[u64] {
        &self.frames
    }

    /// The innermost frames of the chain, as many as experiments keep.
    pub fn innermost(&self) -> &[u64] {
        &self.frames[..self.frames.len().min(DEPTH)]
    }
}

/// A sample as the handler has it, which may not allocate.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    pub(crate) context: u32,
    pub(crate) task: u32,
    pub(crate) ran: Nanos,
    /// The time is left out of a sample that has one.
    pub(crate) overflow: Option<Overflow>,
    pub(crate) stack: Option<StackCopy>,
    /// At most [`LONG`] frames.
    pub(crate) chain: &'a [u64],
    /// Whether the chain may go on beyond them.
    pub(crate) is_full: bool,
}

/// A queue of samples.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Words so far.
    written: AtomicUsize,
    read: AtomicUsize,
    words: Box<[AtomicU64]>,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        let words = (0..ROOM).map(|_| AtomicU64::new(0)).collect();
        Queue { written: AtomicUsize::new(0), read: AtomicUsize::new(0), words }
    }

    /// Puts a sample in; false when there is no room. Async-signal-safe. For one writer.
    pub(crate) fn push(&self, sample: Taken<'_>) -> bool {
        // Relaxed: only this side writes it.
        let at = self.written.load(Ordering::Relaxed);
        let length = sample.chain.len().min(LONG);
        // Acquire: pairs with the release in `pop`, which has read the words by then.
        if at.wrapping_sub(self.read.load(Ordering::Acquire)) + HEAD + length > ROOM {
            return false;
        }
        // A number above all places stands for none.
        let copy = sample.stack.map_or(u64::from(u32::MAX), |stack| stack.into_number() as u64);
        let full = if sample.is_full { FULL } else { 0 };
        let head = [
            u64::from(sample.context) << 32 | u64::from(sample.task),
            sample.overflow.map_or(sample.ran.0.cast_unsigned(), Overflow::word),
            copy << COPY_SHIFT | full | length as u64,
        ];
        for (i, &word) in head.iter().chain(&sample.chain[..length]).enumerate() {
            // Relaxed: published by `written`.
            self.words[(at + i) % ROOM].store(word, Ordering::Relaxed);
        }
        // Release: pairs with the acquire in `pop`.
        self.written.store(at + HEAD + length, Ordering::Release);
        true
    }

    /// Takes the oldest sample. For one reader.
    pub(crate) fn pop(&self) -> Option<Sample> {
        // Relaxed: only this side writes it.
        let at = self.read.load(Ordering::Relaxed);
        // Acquire: pairs with the release in `push`.
        if at == self.written.load(Ordering::Acquire) {
            return None;
        }
        // Relaxed: the acquire above made them visible.
        let word = |i: usize| self.words[(at + i) % ROOM].load(Ordering::Relaxed);
        let (head, time, last) = (word(0), word(1), word(2));
        let overflow = Overflow::of(time);
        let length = (last & LENGTH) as usize;
        let copy = (last >> COPY_SHIFT) as u32;
        let sample = Sample {
            context: (head >> 32) as u32,
            task: head as u32,
            ran: if overflow.is_some() { Nanos::ZERO } else { Nanos(time.cast_signed()) },
            overflow,
            stack: (copy != u32::MAX).then(|| StackCopy::from_number(copy as usize)),
            frames: (0..length).map(|i| word(HEAD + i)).collect(),
            is_full: last & FULL != 0,
            is_unwound: false,
        };
        // Release: pairs with the acquire in `push`.
        self.read.store(at + HEAD + length, Ordering::Release);
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(context: u32, chain: &[u64]) -> Taken<'_> {
        let is_full = chain.len() >= LONG;
        let (overflow, stack) = (None, None);
        Taken { context, task: u32::MAX, ran: Nanos(3), overflow, stack, chain, is_full }
    }

    /// The parts of a sample that tests look at.
    fn parts(sample: &Sample) -> (u32, u32, Nanos, &[u64], bool) {
        (sample.context, sample.task, sample.ran, sample.chain(), sample.is_full())
    }

    #[test]
    fn samples_come_out_in_order_and_as_they_were() {
        let queue = Queue::new();
        assert!(queue.pop().is_none());
        let deep: Vec<u64> = (0..LONG as u64).collect();
        for n in 0..3 * ROOM as u64 {
            let short = [n, 2];
            assert!(queue.push(taken(7, &short)) && queue.push(taken(8, &deep)));
            let (first, second) = (queue.pop().unwrap(), queue.pop().unwrap());
            assert_eq!(parts(&first), (7, u32::MAX, Nanos(3), &short[..], false));
            assert_eq!(parts(&second), (8, u32::MAX, Nanos(3), &deep[..], true));
            assert_eq!(second.innermost(), &deep[..DEPTH]);
            assert!(first.stack.is_none() && first.innermost() == short);
        }
        assert!(queue.pop().is_none());
    }

    #[test]
    fn an_overflow_is_told_from_cpu_time() {
        let queue = Queue::new();
        let most = Overflow { counter: MOST - 1, events: (1 << TIME_BITS) - 1 };
        let samples = [
            (Nanos(3), Some(Overflow { counter: 0, events: 1 })),
            (Nanos(3), Some(most)),
            (Nanos(-3), None),
            (Nanos((1 << TIME_BITS) - 1), None),
        ];
        for (ran, overflow) in samples {
            assert!(queue.push(Taken { ran, overflow, ..taken(7, &[1]) }));
            let ran = if overflow.is_some() { Nanos::ZERO } else { ran };
            let sample = queue.pop().unwrap();
            assert_eq!(parts(&sample), (7, u32::MAX, ran, &[1][..], false));
            assert_eq!(sample.overflow, overflow);
        }
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let queue = Queue::new();
        let usual = [5; DEPTH];
        for _ in 0..ROOM / (HEAD + DEPTH) {
            assert!(queue.push(taken(0, &usual)));
        }
        assert!(!queue.push(taken(0, &[1])));
        assert_eq!(queue.pop().unwrap().chain(), usual);
        assert!(queue.push(taken(0, &usual)) && !queue.push(taken(0, &[])));
    }

    #[test]
    fn a_reader_beside_the_writer_sees_whole_samples() {
        let queue = Queue::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut n = 0;
                while n < 20_000 {
                    let chain = [n; 40];
                    n += u64::from(queue.push(taken(n as u32, &chain[..n as usize % 40])));
                }
            });
            let mut next = 0;
            while next < 20_000 {
                let Some(sample) = queue.pop() else {
                    std::thread::yield_now();
                    continue;
                };
                let expected = [next; 40];
                let expected = &expected[..next as usize % 40];
                assert_eq!((sample.context, sample.chain()), (next as u32, expected));
                next += 1;
            }
        });
    }
}
