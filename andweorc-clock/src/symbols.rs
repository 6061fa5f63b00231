//! The C library's `clock_gettime` and `epoll_wait`.

use andweorc_core::time::{Nanos, Virtual};
use andweorc_core::{clock, program_clock};
use andweorc_threads as _;
use libc::{c_int, c_void, clockid_t, epoll_event, timespec};
use std::ffi::CStr;
use std::mem;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

andweorc_core::weak_symbol!("clock_gettime", in_place_of_clock_gettime);
andweorc_core::weak_symbol!("epoll_wait", in_place_of_epoll_wait);

/// Called in the place of the C library's function.
///
/// # Safety
///
/// As for that function: `time` is a valid place for a time.
unsafe extern "C" fn in_place_of_clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller answers for `time`.
    let answer = unsafe { clock::c_clock_gettime(id, time) };
    if program_clock::is_read() && answer == 0 && is_virtual(id) {
        // SAFETY: the kernel has written a time there.
        let real = unsafe { program_clock::from_timespec(&*time) };
        let read = program_clock::to_timespec(program_clock::read(real));
        // SAFETY: as above.
        unsafe { ptr::write(time, read) };
    }
    answer
}

/// Whether a clock counts from the start of the machine, as `Instant` does.
fn is_virtual(id: clockid_t) -> bool {
    matches!(
        id,
        libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME
    )
}

/// ns.
const MILLISECOND: i64 = 1_000_000;

type EpollWait = unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int) -> c_int;

/// The C library's own, once it was looked up.
static EPOLL_WAIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Called in the place of the C library's function.
///
/// # Safety
///
/// As for that function: there is room for `most` at `events`.
unsafe extern "C" fn in_place_of_epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let until = (timeout > 0 && program_clock::is_virtual())
        .then(|| Virtual(program_clock::now().0 + i64::from(timeout) * MILLISECOND));
    // SAFETY: the caller answers for `events`.
    let mut answer = unsafe { c_epoll_wait()(epoll, events, most, timeout) };
    while answer == 0
        && let Some(left) = until.map(|until| until - program_clock::now())
        && left > Nanos::ZERO
    {
        // SAFETY: as above.
        answer = unsafe { wait_on(epoll, events, most, left) };
    }
    if program_clock::is_read() {
        program_clock::driver_returned();
    }
    answer
}

/// Waits for events for a time that need not be whole milliseconds.
///
/// # Safety
///
/// As for `epoll_wait`.
unsafe fn wait_on(epoll: c_int, events: *mut epoll_event, most: c_int, left: Nanos) -> c_int {
    let time = program_clock::to_timespec(Virtual(left.0));
    let no_mask = ptr::null::<c_void>();
    // SAFETY: the caller answers for `events`; no signal mask is given.
    let answer =
        unsafe { libc::syscall(libc::SYS_epoll_pwait2, epoll, events, most, &time, no_mask, 8) };
    // SAFETY: the address of the calling thread's errno.
    if answer != -1 || unsafe { *libc::__errno_location() } != libc::ENOSYS {
        return answer as c_int;
    }
    // Linux before 5.11 knows but whole milliseconds.
    let whole = (left.0 + MILLISECOND - 1) / MILLISECOND;
    // SAFETY: as above.
    unsafe { c_epoll_wait()(epoll, events, most, whole as c_int) }
}

/// The C library's own `epoll_wait`.
fn c_epoll_wait() -> EpollWait {
    // Acquire and Release: all threads find the same, and what it points to was there before main.
    let known = EPOLL_WAIT.load(Ordering::Acquire);
    let found = if known.is_null() { next(c"epoll_wait") } else { known };
    if found.is_null() {
        return kernel_epoll_wait;
    }
    EPOLL_WAIT.store(found, Ordering::Release);
    // SAFETY: the C library's function of that name has this signature.
    unsafe { mem::transmute::<*mut c_void, EpollWait>(found) }
}

/// The function that the program would have called if this crate defined none. Null where the C
/// library is linked statically.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// The system call itself.
unsafe extern "C" fn kernel_epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let no_mask = ptr::null::<c_void>();
    // SAFETY: the caller answers for `events`; no signal mask is given.
    unsafe {
        libc::syscall(libc::SYS_epoll_pwait, epoll, events, most, timeout, no_mask, 8) as c_int
    }
}
