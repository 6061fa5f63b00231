//! The ring buffer that the kernel writes samples into.
//!
//! The kernel moves `data_head` after it has written records, we move `data_tail` after we have read them: two counters that only grow,
//! each written by one side (perf_event_open(2), "MMAP layout"). Whatever a record says of its own length is checked.

use libc::{MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE};
use perf_event_open_sys::bindings::{
    PERF_RECORD_LOST, PERF_RECORD_SAMPLE, PERF_RECORD_THROTTLE, perf_event_mmap_page,
};
use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Data pages of a ring: at 10 kHz and 300 bytes a sample they last for 80 ms.
const PAGES: usize = 64;

/// Bytes of a record's header.
const HEADER: usize = 8;

/// What a record tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Where the thread was: the instruction, then the return addresses of its callers.
    Sample(Vec<u64>),
    /// So many records were lost: the ring was full.
    Lost(u64),
    /// The kernel held sampling back.
    Throttled,
}

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct Ring {
    page: NonNull<perf_event_mmap_page>,
    page_size: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; `read` takes `&mut self`, so that one thread at a time moves the tail.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of a perf event.
    pub(crate) fn map(event: RawFd) -> io::Result<Ring> {
        // SAFETY: takes and returns plain numbers.
        let page_size = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
            .map_err(|_| io::Error::last_os_error())?;
        let length = (PAGES + 1) * page_size;
        // SAFETY: a fresh mapping of a descriptor that is open; nothing else refers to it.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), length, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0)
        };
        match NonNull::new(at.cast()) {
            Some(page) if at != MAP_FAILED => Ok(Ring { page, page_size }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes all records that are there.
    pub(crate) fn read(&mut self, mut each: impl FnMut(Record)) {
        let page = self.page.as_ptr();
        // SAFETY: the first page of the mapping is the control page, which lives as long as `self`; the kernel writes `data_head`
        // and reads `data_tail` at any time, hence the atomics.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*page).data_head),
                AtomicU64::from_ptr(&raw mut (*page).data_tail),
            )
        };
        // Acquire: pairs with the kernel's release of what it wrote before it moved the head.
        let end = head.load(Ordering::Acquire);
        // Relaxed: only this side writes it.
        let mut at = tail.load(Ordering::Relaxed);
        while at < end {
            let header = self.bytes(at, HEADER);
            let kind = u32::from_ne_bytes(header[..4].try_into().expect("four bytes"));
            let size = usize::from(u16::from_ne_bytes(header[6..8].try_into().expect("two bytes")));
            if size < HEADER || at + size as u64 > end {
                // Not what the kernel writes; there is no way to find the next record.
                at = end;
                break;
            }
            if let Some(record) = parse(kind, &self.bytes(at + HEADER as u64, size - HEADER)) {
                each(record);
            }
            at += size as u64;
        }
        // Reads are done before the kernel may overwrite.
        fence(Ordering::SeqCst);
        // Release: pairs with the kernel's acquire before it writes over what was read.
        tail.store(at, Ordering::Release);
    }

    /// Copies `length` bytes from where the counter `at` points, around the end of the ring.
    fn bytes(&self, at: u64, length: usize) -> Vec<u8> {
        let size = PAGES * self.page_size;
        // SAFETY: the data pages follow the control page in the mapping.
        let data = unsafe { self.page.as_ptr().cast::<u8>().add(self.page_size) };
        (0..length)
            .map(|i| {
                let offset = (at + i as u64) as usize % size;
                // SAFETY: `offset` is below the size of the data pages. The kernel does not write between tail and head.
                unsafe { data.add(offset).read_volatile() }
            })
            .collect()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), (PAGES + 1) * self.page_size) };
    }
}

/// Parses a record's body. Samples hold, in the order of the format: the instruction, and the length and entries of the call chain.
fn parse(kind: u32, body: &[u8]) -> Option<Record> {
    let words: Vec<u64> = body
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
        .collect();
    match kind {
        PERF_RECORD_SAMPLE => {
            let (&ip, rest) = words.split_first()?;
            let (&length, chain) = rest.split_first()?;
            let chain = chain.get(..usize::try_from(length).ok()?)?;
            // Entries this high mark contexts (PERF_CONTEXT_USER); the first real one repeats the instruction.
            let callers = chain.iter().copied().filter(|&it| it < u64::MAX - 4095 && it != ip);
            Some(Record::Sample(std::iter::once(ip).chain(callers).collect()))
        }
        PERF_RECORD_LOST => Some(Record::Lost(*words.get(1)?)),
        PERF_RECORD_THROTTLE => Some(Record::Throttled),
        _ => None,
    }
}

#[cfg(test)]
#[path = "ring_model.rs"]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn samples_are_their_instruction_and_callers() {
        let user = u64::MAX - 511;
        let sample = parse(PERF_RECORD_SAMPLE, &body(&[7, 4, user, 7, 8, 9]));
        assert_eq!(sample, Some(Record::Sample(vec![7, 8, 9])));
        assert_eq!(parse(PERF_RECORD_LOST, &body(&[1, 5])), Some(Record::Lost(5)));
        assert_eq!(parse(PERF_RECORD_THROTTLE, &[]), Some(Record::Throttled));
    }

    #[test]
    fn lengths_are_not_trusted() {
        assert_eq!(parse(PERF_RECORD_SAMPLE, &body(&[7, 9, 1])), None);
        assert_eq!(parse(PERF_RECORD_SAMPLE, &body(&[7, u64::MAX])), None);
        assert_eq!(parse(PERF_RECORD_SAMPLE, &[1, 2, 3]), None);
        assert_eq!(parse(PERF_RECORD_LOST, &[]), None);
    }
}
