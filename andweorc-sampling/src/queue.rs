//! Samples on their way from a signal handler to the thread that resolves them.
//!
//! One writer, the handler on the sampled thread, and one reader. Plain atomics, so that neither
//! needs unsafe code: `written` and `read` only grow, each is moved by one side, and a place
//! between them is not written.

use crate::counter_cells::MOST;
use andweorc_profile::time::Nanos;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Frames that are kept of a call chain.
pub(crate) const DEPTH: usize = 14;

/// Samples that find room: at 4 kHz they last for 60 ms, five times as long as it takes until they
/// are read.
const ROOM: usize = 256;

/// Bits of a sample's first word for the length of its chain, and above them for its task. The
/// context is above these.
const LENGTH_BITS: u32 = 8;
const TASK_BITS: u32 = 24;

/// Bits of a sample's second word for its time, or for its events. Above these are the counter's
/// number plus one, and zeroes in a sample of CPU time; ones, where that is below zero.
const TIME_BITS: u32 = 56;

const _: () = assert!(MOST < u8::MAX as usize);
const _: () = assert!(LENGTH_BITS + TASK_BITS == 32 && DEPTH < 1 << LENGTH_BITS);

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    frames: [u64; DEPTH],
    length: usize,
}

impl Sample {
    /// The chain of `context`, of a thread that `ran` for so long since the sample before; what is
    /// deeper than [`DEPTH`] is left out.
    pub fn new(context: u32, ran: Nanos, chain: &[u64]) -> Sample {
        let length = chain.len().min(DEPTH);
        let mut frames = [0; DEPTH];
        frames[..length].copy_from_slice(&chain[..length]);
        Sample { context, task: 0, ran, overflow: None, frames, length }
    }

    /// The sample at an overflow.
    pub fn at(self, overflow: Overflow) -> Sample {
        Sample { ran: Nanos::ZERO, overflow: Some(overflow), ..self }
    }

    /// The sample of a thread that polled a task of this kind. Ids of more than 24 bits are not
    /// told.
    pub fn of_task(self, task: u32) -> Sample {
        Sample { task: if task >> TASK_BITS == 0 { task } else { 0 }, ..self }
    }

    /// Whether the chain has all the frames that are kept: it may go on beyond them.
    pub fn is_full(&self) -> bool {
        self.length == DEPTH
    }

    /// The instruction, then for each caller an address in its call.
    pub fn chain(&self) -> &[u64] {
        &self.frames[..self.length]
    }
}

/// A queue of samples.
#[derive(Debug)]
pub(crate) struct Queue {
    written: AtomicUsize,
    read: AtomicUsize,
    /// Context, task and length in the first word of each place, then the time, then the frames.
    places: Box<[[AtomicU64; DEPTH + 2]]>,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        let place = || [const { AtomicU64::new(0) }; DEPTH + 2];
        let places = (0..ROOM).map(|_| place()).collect();
        Queue { written: AtomicUsize::new(0), read: AtomicUsize::new(0), places }
    }

    /// Puts a sample in; false when there is no room. Async-signal-safe. For one writer.
    pub(crate) fn push(&self, sample: &Sample) -> bool {
        // Relaxed: only this side writes it.
        let at = self.written.load(Ordering::Relaxed);
        // Acquire: pairs with the release in `pop`, which has read the place by then.
        if at.wrapping_sub(self.read.load(Ordering::Acquire)) >= ROOM {
            return false;
        }
        let place = &self.places[at % ROOM];
        let task = u64::from(sample.task) << LENGTH_BITS;
        let head = u64::from(sample.context) << 32 | task | sample.length as u64;
        // Relaxed: published by `written`.
        place[0].store(head, Ordering::Relaxed);
        let time = sample.overflow.map_or(sample.ran.0.cast_unsigned(), Overflow::word);
        place[1].store(time, Ordering::Relaxed);
        for (word, frame) in place[2..].iter().zip(sample.chain()) {
            word.store(*frame, Ordering::Relaxed);
        }
        // Release: pairs with the acquire in `pop`.
        self.written.store(at.wrapping_add(1), Ordering::Release);
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
        let place = &self.places[at % ROOM];
        // Relaxed: the acquire above made them visible.
        let head = place[0].load(Ordering::Relaxed);
        let time = place[1].load(Ordering::Relaxed);
        let overflow = Overflow::of(time);
        let ran = if overflow.is_some() { Nanos::ZERO } else { Nanos(time.cast_signed()) };
        let frames = std::array::from_fn(|i| place[i + 2].load(Ordering::Relaxed));
        let length = (head as usize & ((1 << LENGTH_BITS) - 1)).min(DEPTH);
        let task = head as u32 >> LENGTH_BITS;
        // Release: pairs with the acquire in `push`.
        self.read.store(at.wrapping_add(1), Ordering::Release);
        Some(Sample { context: (head >> 32) as u32, task, ran, overflow, frames, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_out_in_order_and_as_they_were() {
        let queue = Queue::new();
        assert_eq!(queue.pop(), None);
        let deep: Vec<u64> = (0..2 * DEPTH as u64).collect();
        for n in 0..3 * ROOM as u64 {
            let most = (1 << TASK_BITS) - 1;
            let first = Sample::new(7, Nanos(3), &[n, 2]).of_task(most);
            assert!(
                queue.push(&first)
                    && queue.push(&Sample::new(8, Nanos(3), &deep).of_task(most + 1))
            );
            assert_eq!(queue.pop(), Some(first));
            let second = queue.pop().unwrap();
            assert_eq!((second.context, second.task, second.chain()), (8, 0, &deep[..DEPTH]));
            assert!(second.is_full() && !first.is_full());
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn an_overflow_is_told_from_cpu_time() {
        let queue = Queue::new();
        let most = Overflow { counter: MOST - 1, events: (1 << TIME_BITS) - 1 };
        let samples = [
            Sample::new(7, Nanos(3), &[1]).at(Overflow { counter: 0, events: 1 }),
            Sample::new(7, Nanos(3), &[1]).at(most),
            Sample::new(7, Nanos(-3), &[1]),
            Sample::new(7, Nanos((1 << TIME_BITS) - 1), &[1]),
        ];
        for sample in samples {
            assert!(queue.push(&sample));
            assert_eq!(queue.pop(), Some(sample));
        }
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let queue = Queue::new();
        for n in 0..ROOM as u64 {
            assert!(queue.push(&Sample::new(0, Nanos(3), &[n])));
        }
        assert!(!queue.push(&Sample::new(0, Nanos(3), &[1])));
        assert_eq!(queue.pop().unwrap().chain(), [0]);
        assert!(
            queue.push(&Sample::new(0, Nanos(3), &[1]))
                && !queue.push(&Sample::new(0, Nanos(3), &[2]))
        );
    }

    #[test]
    fn a_reader_beside_the_writer_sees_whole_samples() {
        let queue = Queue::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut n = 0;
                while n < 20_000 {
                    n += u64::from(queue.push(&Sample::new(n as u32, Nanos(3), &[n, n, n])));
                }
            });
            let mut next = 0;
            while next < 20_000 {
                let Some(sample) = queue.pop() else {
                    std::thread::yield_now();
                    continue;
                };
                assert_eq!((sample.context, sample.chain()), (next as u32, &[next; 3][..]));
                next += 1;
            }
        });
    }
}
