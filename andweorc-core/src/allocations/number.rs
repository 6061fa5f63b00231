//! Numbers of threads, by which a block is known to be freed by the thread that made it.
//!
//! Other numbers of threads are given on when a thread ends, which takes a destructor. These are
//! not, and so are there for all that the allocator is asked for.

use crate::process::asked::Switches;
use crate::process::process;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The highest number; after it they begin anew.
pub(super) const MAX: u32 = (1 << 20) - 1;

/// In place of a number, for threads of andweorc's own.
const OWN: u32 = u32::MAX;

crate::plain_thread_local! {
    /// From 1; 0 while the thread has none.
    static NUMBER: Cell<u32> = Cell::new(0);
}

/// The number of the calling thread; `None` for one of andweorc's own.
#[inline]
pub(super) fn number() -> Option<u32> {
    match NUMBER.get() {
        0 => Some(new_number()),
        OWN => None,
        number => Some(number),
    }
}

#[cold]
#[inline(never)]
fn new_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only that the numbers differ.
    let number = NEXT.fetch_add(1, Ordering::Relaxed) % MAX + 1;
    NUMBER.set(number);
    // Before the first block of this thread has a mark.
    process().asked.switch_on(Switches::COUNTS_VISITS);
    number
}

/// Counts nothing of what the calling thread, one of andweorc's own, allocates from now on.
pub(crate) fn leave_out_here() {
    NUMBER.set(OWN);
}

/// Runs `run`, which is andweorc's own work on a thread of the program: what it allocates is not
/// counted.
pub fn left_out<R>(run: impl FnOnce() -> R) -> R {
    struct Back(u32);
    impl Drop for Back {
        fn drop(&mut self) {
            NUMBER.set(self.0);
        }
    }
    let _back = Back(NUMBER.replace(OWN));
    run()
}
