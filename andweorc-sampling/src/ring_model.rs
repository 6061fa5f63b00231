//! The reader against a ring that is not the kernel's: written by the rules of perf_event_open(2),
//! at every place of the ring, to the brim and beyond, and by another thread.

use super::{HEADER, PAGES, Record, Ring};
use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE};
use perf_event_open_sys::bindings::PERF_RECORD_LOST;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of record that the reader knows nothing of.
const OTHER: u32 = 4711;

const PAGE: usize = 4096;

const SIZE: usize = PAGES * PAGE;

/// Bytes of a record that tells of a loss: header, id, number.
const LOSS: usize = HEADER + 16;

/// Model of the kernel: it writes where there is room, and counts what had none.
struct Kernel {
    head: *const AtomicU64,
    tail: *const AtomicU64,
    data: *mut u8,
    at: u64,
    /// Records that found no room since the last one that did.
    lost: u64,
}

// SAFETY: the ring outlives the thread that writes to it, and what is not atomic in it is written
// between head and tail only.
unsafe impl Send for Kernel {}

impl Kernel {
    /// A ring in which `begin` bytes have been written and read.
    fn new(begin: u64) -> (Ring, Kernel) {
        let (rights, kind) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
        // SAFETY: a fresh mapping; nothing else refers to it.
        let at = unsafe { libc::mmap(null_mut(), SIZE + PAGE, rights, kind, -1, 0) };
        assert_ne!(at, MAP_FAILED);
        let page = NonNull::new(at).unwrap().cast();
        let ring = Ring { page, page_size: PAGE };
        // SAFETY: the control page and the data behind it are in the mapping, which is aligned.
        let (head, tail, data) = unsafe {
            let page = page.as_ptr();
            (&raw mut (*page).data_head, &raw mut (*page).data_tail, page.cast::<u8>().add(PAGE))
        };
        let kernel = Kernel { head: head.cast(), tail: tail.cast(), data, at: begin, lost: 0 };
        kernel.head().store(begin, Ordering::Relaxed);
        kernel.tail().store(begin, Ordering::Relaxed);
        (ring, kernel)
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: the mapping lives as long as the ring, and the ring longer than this; both sides
        // use atomics.
        unsafe { &*self.head }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as for the head.
        unsafe { &*self.tail }
    }

    fn put(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            // SAFETY: below the size of the data, between head and tail, where the reader does not
            // read.
            unsafe { self.data.add(self.at as usize % SIZE).write_volatile(byte) };
            self.at += 1;
        }
    }

    fn header(&mut self, kind: u32, size: u16) {
        self.put(&kind.to_ne_bytes());
        self.put(&[0; 2]);
        self.put(&size.to_ne_bytes());
    }

    /// A loss of `n`, followed by another record of `others` words; that of records that found no
    /// room comes before them. Says whether there was room.
    fn write(&mut self, n: u64, others: usize) -> bool {
        let filler = if others > 0 { HEADER + 8 * others } else { 0 };
        let before = if self.lost > 0 { LOSS } else { 0 };
        // Acquire: pairs with the reader's release; it is done with what is written over.
        let used = self.at - self.tail().load(Ordering::Acquire);
        if used as usize + before + LOSS + filler > SIZE {
            self.lost += 1;
            return false;
        }
        if self.lost > 0 {
            let lost = u64::MAX - self.lost;
            self.loss(lost);
            self.lost = 0;
        }
        self.loss(n);
        if others > 0 {
            self.header(OTHER, filler as u16);
            self.put(&vec![0xaa; 8 * others]);
        }
        // Release: pairs with the reader's acquire.
        self.head().store(self.at, Ordering::Release);
        true
    }

    fn loss(&mut self, n: u64) {
        self.header(PERF_RECORD_LOST, LOSS as u16);
        self.put(&7_u64.to_ne_bytes());
        self.put(&n.to_ne_bytes());
    }
}

fn read(ring: &mut Ring) -> Vec<u64> {
    let mut numbers = Vec::new();
    ring.read(|record| match record {
        Record::Lost(n) => numbers.push(n),
        other => panic!("{other:?} was not written"),
    });
    numbers
}

/// Places in the ring at which to begin: those around its end, and some others.
fn begins() -> impl Iterator<Item = u64> {
    let turns = [0, 3 * SIZE as u64, (u64::MAX / 2 / SIZE as u64) * SIZE as u64];
    let step = if cfg!(miri) { 32 } else { 8 };
    turns.into_iter().flat_map(move |turn| {
        (0..SIZE as u64)
            .step_by(step)
            .filter(|at| *at < 64 || SIZE as u64 - at < 128)
            .map(move |at| turn + at)
    })
}

#[test]
fn records_come_whole_and_in_order_wherever_they_lie() {
    for begin in begins() {
        let (mut ring, mut kernel) = Kernel::new(begin);
        assert!(read(&mut ring).is_empty());
        let mut next = 0;
        for burst in 1..9 {
            let first = next;
            for _ in 0..burst {
                assert!(kernel.write(next, (next % 5) as usize));
                next += 1;
            }
            assert_eq!(read(&mut ring), (first..next).collect::<Vec<_>>(), "from {begin}");
            assert_eq!(kernel.tail().load(Ordering::Relaxed), kernel.at);
        }
    }
}

#[test]
fn a_full_ring_loses_what_is_new_and_tells_how_much() {
    for begin in [0, SIZE as u64 - 8, 5 * SIZE as u64 + 40] {
        let (mut ring, mut kernel) = Kernel::new(begin);
        let room = (0..).take_while(|&n| kernel.write(n, 0)).count() as u64;
        assert_eq!(room as usize, SIZE / LOSS);
        assert!(!kernel.write(0, 0) && kernel.lost == 2);
        assert_eq!(read(&mut ring), (0..room).collect::<Vec<_>>());
        assert!(kernel.write(77, 0));
        assert_eq!(read(&mut ring), [u64::MAX - 2, 77]);
    }
}

#[test]
fn a_length_that_cannot_be_ends_the_reading_and_not_the_reader() {
    for size in [0, 1, 7, LOSS as u16 + 8, u16::MAX] {
        for begin in [0, SIZE as u64 - 8, SIZE as u64 - 16] {
            let (mut ring, mut kernel) = Kernel::new(begin);
            assert!(kernel.write(1, 0));
            kernel.header(PERF_RECORD_LOST, size);
            kernel.put(&[0xff; 16]);
            let at = kernel.at;
            kernel.head().store(at, Ordering::Release);
            assert_eq!(read(&mut ring), [1], "{size}");
            // What follows is read as ever.
            assert!(kernel.write(2, 1));
            assert_eq!(read(&mut ring), [2], "{size}");
        }
    }
}

#[test]
fn a_kernel_beside_the_reader_hands_over_each_record_once() {
    let records = if cfg!(miri) { 300 } else { 50_000 };
    let (mut ring, mut kernel) = Kernel::new(SIZE as u64 - 24);
    let writer = std::thread::spawn(move || {
        let mut next = 0;
        while next < records {
            if kernel.write(next, (next % 7) as usize) {
                next += 1;
            } else {
                std::thread::yield_now();
            }
        }
    });
    let mut next = 0;
    while next < records {
        for n in read(&mut ring) {
            // Numbers near the end of the range tell of a full ring.
            if n < records {
                assert_eq!(n, next);
                next += 1;
            }
        }
        std::thread::yield_now();
    }
    writer.join().unwrap();
}
