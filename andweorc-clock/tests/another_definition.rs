//! A program that defines the same functions: it links, its own go first, and its clock stays real.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]

use andweorc_clock as _;
use andweorc_core::{clock, program_clock};
use libc::{c_int, clockid_t, timespec};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

static CALLS: AtomicU32 = AtomicU32::new(0);

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller answers for `time`.
    unsafe { clock::c_clock_gettime(id, time) }
}

#[test]
fn the_programs_own_function_goes_first() {
    let before = CALLS.load(Ordering::Relaxed);
    std::hint::black_box(Instant::now());
    assert!(CALLS.load(Ordering::Relaxed) > before);
    assert!(!program_clock::start(), "no reading comes by andweorc's");
    assert!(program_clock::is_kept_real());
}
