//! The ring buffer in which the kernel writes down that it took a sample, and when it held one
//! back. The samples themselves are taken by the signal handler.
//!
//! The kernel moves `data_head` after it has written records, we move `data_tail` after we have
//! read them: two counters that only grow, each written by one side (perf_event_open(2), "MMAP
//! layout"). Whatever a record says of its own length is checked.

use libc::{MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE};
use perf_event_open_sys::bindings::{
    PERF_RECORD_LOST, PERF_RECORD_SAMPLE, PERF_RECORD_THROTTLE, perf_event_mmap_page,
};
use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Data pages of a ring: at 4 kHz and 8 bytes a sample they last for 128 ms.
const PAGES: usize = 1;

/// Bytes of a record's header.
const HEADER: usize = 8;

/// Meaning of a record in the ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// The kernel took a sample.
    Sample,
    /// So many records found no room.
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

// SAFETY: the mapping belongs to the process, not to a thread; `read` takes `&mut self`, so that
// one thread at a time moves the tail.
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
        // SAFETY: the first page of the mapping is the control page, which lives as long as `self`;
        // the kernel writes `data_head` and reads `data_tail` at any time, hence the atomics.
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
                // SAFETY: `offset` is below the size of the data pages. The kernel does not write
                // between tail and head.
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

/// Parses a record's body. That of a sample is empty: nothing was asked for.
fn parse(kind: u32, body: &[u8]) -> Option<Record> {
    match kind {
        PERF_RECORD_SAMPLE => Some(Record::Sample),
        PERF_RECORD_LOST => {
            let lost = body.get(8..16)?;
            Some(Record::Lost(u64::from_ne_bytes(lost.try_into().expect("eight bytes"))))
        }
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

    #[test]
    fn records_are_told_apart_and_lengths_are_not_trusted() {
        let body: Vec<u8> = [1u64, 5].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(parse(PERF_RECORD_SAMPLE, &[]), Some(Record::Sample));
        assert_eq!(parse(PERF_RECORD_LOST, &body), Some(Record::Lost(5)));
        assert_eq!(parse(PERF_RECORD_LOST, &body[..15]), None);
        assert_eq!(parse(PERF_RECORD_THROTTLE, &body), Some(Record::Throttled));
        assert_eq!(parse(1, &body), None);
    }
}
