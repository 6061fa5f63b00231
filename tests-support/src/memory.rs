//! Counts what is allocated.
//!
//! ```
//! #[global_allocator]
//! static COUNTING: tests_support::memory::Counting = tests_support::memory::Counting;
//!
//! let before = tests_support::memory::live();
//! let held = vec![0_u8; 1000];
//! assert_eq!(tests_support::memory::live() - before, 1000);
//! # drop(held);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are allocated at present.
static LIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Bytes that this thread has allocated, less what it freed. The cell needs no destructor, so
    /// that the allocator may use it at any time.
    static HERE: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, and counts.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

// SAFETY: all is the system allocator's; what is added counts and touches no memory that was handed
// out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Relaxed: a count that publishes nothing else.
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        HERE.set(HERE.get().wrapping_add_unsigned(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        HERE.set(HERE.get().wrapping_sub_unsigned(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Bytes that all threads hold, where [`Counting`] is the allocator: for a test that is alone in
/// its process.
pub fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Bytes that this thread has allocated, less those that it freed: for a test beside others.
pub fn live_here() -> isize {
    HERE.get()
}
