//! Numbers of threads.

use std::ptr;

andweorc_core::hooks::plain_thread_local! {
    static ME: u8 = 0;
}

/// In the place of a thread's number: none.
pub(crate) const NOBODY: usize = 0;

/// The calling thread, by a number that no other has while it lives.
pub(crate) fn thread_key() -> usize {
    ME.with(|here| ptr::from_ref(here).addr())
}
