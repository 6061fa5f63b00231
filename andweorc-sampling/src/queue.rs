//! Samples on their way from a signal handler to the thread that resolves them.
//!
//! One writer, the handler on the sampled thread, and one reader. Plain atomics, so that neither
//! needs unsafe code: `written` and `read` only grow, each is moved by one side, and a place
//! between them is not written.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Frames that are kept of a call chain.
pub(crate) const DEPTH: usize = 14;

/// Samples that find room: at 4 kHz they last for 60 ms, five times as long as it takes until they
/// are read.
const ROOM: usize = 256;

/// Where a thread was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The context of the thread, as the function that credits its samples says; 0 for none.
    pub context: u32,
    frames: [u64; DEPTH],
    length: usize,
}

impl Sample {
    /// The chain of `context`; what is deeper than [`DEPTH`] is left out.
    pub fn new(context: u32, chain: &[u64]) -> Sample {
        let length = chain.len().min(DEPTH);
        let mut frames = [0; DEPTH];
        frames[..length].copy_from_slice(&chain[..length]);
        Sample { context, frames, length }
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
    /// Context and length in the first word of each place, then the frames.
    places: Box<[[AtomicU64; DEPTH + 1]]>,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        let place = || [const { AtomicU64::new(0) }; DEPTH + 1];
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
        let head = u64::from(sample.context) << 32 | sample.length as u64;
        // Relaxed: published by `written`.
        place[0].store(head, Ordering::Relaxed);
        for (word, frame) in place[1..].iter().zip(sample.chain()) {
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
        let frames = std::array::from_fn(|i| place[i + 1].load(Ordering::Relaxed));
        let length = (head as u32 as usize).min(DEPTH);
        // Release: pairs with the acquire in `push`.
        self.read.store(at.wrapping_add(1), Ordering::Release);
        Some(Sample { context: (head >> 32) as u32, frames, length })
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
            assert!(queue.push(&Sample::new(7, &[n, 2])) && queue.push(&Sample::new(8, &deep)));
            let first = queue.pop().unwrap();
            assert_eq!((first.context, first.chain()), (7, &[n, 2][..]));
            assert_eq!(queue.pop().unwrap().chain(), &deep[..DEPTH]);
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let queue = Queue::new();
        for n in 0..ROOM as u64 {
            assert!(queue.push(&Sample::new(0, &[n])));
        }
        assert!(!queue.push(&Sample::new(0, &[1])));
        assert_eq!(queue.pop().unwrap().chain(), [0]);
        assert!(queue.push(&Sample::new(0, &[1])) && !queue.push(&Sample::new(0, &[2])));
    }

    #[test]
    fn a_reader_beside_the_writer_sees_whole_samples() {
        let queue = Queue::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut n = 0;
                while n < 20_000 {
                    n += u64::from(queue.push(&Sample::new(n as u32, &[n, n, n])));
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
