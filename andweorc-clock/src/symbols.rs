//! The C library's `clock_gettime`, `epoll_wait`, `nanosleep` and `clock_nanosleep`.

use andweorc_core::hooks::program_clock::Kind;
use andweorc_core::hooks::thread::Blocking;
use andweorc_core::hooks::time::{Nanos, Virtual};
use andweorc_core::hooks::weak_symbol::c_function;
use andweorc_core::hooks::{clock, program_clock};
use andweorc_threads as _;
use libc::{c_int, c_void, clockid_t, epoll_event, timespec};
use std::mem;
use std::ptr::{self, null_mut};
use std::sync::atomic::AtomicPtr;

andweorc_core::hooks::weak_symbol!("clock_gettime", in_place_of_clock_gettime);
andweorc_core::hooks::weak_symbol!("epoll_wait", in_place_of_epoll_wait);
andweorc_core::hooks::weak_symbol!("nanosleep", in_place_of_nanosleep);
andweorc_core::hooks::weak_symbol!("clock_nanosleep", in_place_of_clock_nanosleep);

/// Called in the place of the C library's function.
///
/// # Safety
///
/// The C library's contract: `time` is a valid place for a time.
unsafe extern "C" fn in_place_of_clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller answers for `time`.
    let answer = unsafe { clock::c_clock_gettime(id, time) };
    if program_clock::is_read()
        && answer == 0
        && let Some(kind) = kind(id)
    {
        // SAFETY: the kernel has written a time there.
        let real = unsafe { program_clock::from_timespec(&*time) };
        let read = program_clock::to_timespec(program_clock::read(kind, real));
        // SAFETY: as above.
        unsafe { ptr::write(time, read) };
    }
    answer
}

/// The kind of a clock that counts from the start of the machine. `None` of others.
fn kind(id: clockid_t) -> Option<Kind> {
    match id {
        libc::CLOCK_MONOTONIC => Some(Kind::Monotonic),
        libc::CLOCK_MONOTONIC_RAW => Some(Kind::Raw),
        libc::CLOCK_MONOTONIC_COARSE => Some(Kind::Coarse),
        libc::CLOCK_BOOTTIME => Some(Kind::Boot),
        _ => None,
    }
}

/// ns.
const MILLISECOND: i64 = 1_000_000;

type EpollWait = unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int) -> c_int;

type ClockNanosleep =
    unsafe extern "C" fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int;

type Nanosleep = unsafe extern "C" fn(*const timespec, *mut timespec) -> c_int;

/// Called in the place of the C library's function.
///
/// # Safety
///
/// The C library's contract: there is room for `most` at `events`.
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
/// There is room for `most` at `events`, as for `epoll_wait`.
unsafe fn wait_on(epoll: c_int, events: *mut epoll_event, most: c_int, left: Nanos) -> c_int {
    let time = program_clock::to_timespec(Virtual(left.0));
    let no_mask = ptr::null::<c_void>();
    // SAFETY: the caller answers for `events`; no signal mask is given.
    let answer =
        unsafe { libc::syscall(libc::SYS_epoll_pwait2, epoll, events, most, &time, no_mask, 8) };
    // SAFETY: the address of the calling thread's errno.
    if answer != -1 || unsafe { *libc::__errno_location() } == libc::EINTR {
        return answer as c_int;
    }
    // Linux before 5.11 knows whole milliseconds only, and a sandbox may refuse a system call that
    // it does not know. Any other error comes again.
    let whole = (left.0 + MILLISECOND - 1) / MILLISECOND;
    // SAFETY: as above.
    unsafe { c_epoll_wait()(epoll, events, most, whole as c_int) }
}

/// Called in the place of the C library's function.
///
/// # Safety
///
/// The C library's contract: `time` is a valid time, and `left` null or a valid place for one.
unsafe extern "C" fn in_place_of_nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the caller answers for both.
    let sleep = |time: *const timespec| unsafe { c_nanosleep()(time, left) };
    if time.is_null() || !program_clock::is_virtual() {
        return sleep(time);
    }
    // SAFETY: the caller answers for it.
    sleep_until(after(unsafe { &*time }), |rest| sleep(rest))
}

/// Called in the place of the C library's function, by `thread::sleep`.
///
/// # Safety
///
/// The C library's contract: `time` is a valid time, and `left` null or a valid place for one.
unsafe extern "C" fn in_place_of_clock_nanosleep(
    id: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    let sleep = |flags, time: *const timespec| {
        // SAFETY: the caller answers for both.
        unsafe { c_clock_nanosleep()(id, flags, time, left) }
    };
    if time.is_null() || !program_clock::is_on() || kind(id) != Some(Kind::Monotonic) {
        return sleep(flags, time);
    }
    // SAFETY: the caller answers for it.
    let time = unsafe { &*time };
    let until = match flags & libc::TIMER_ABSTIME {
        0 => after(time),
        _ => Virtual(program_clock::from_timespec(time).0),
    };
    sleep_until(until, |rest| sleep(0, rest))
}

/// When so much time has passed on the program's clock.
fn after(time: &timespec) -> Virtual {
    Virtual(program_clock::now().0.saturating_add(program_clock::from_timespec(time).0))
}

/// Sleeps until a time on the program's clock, by `sleep`, which returns 0 if it has slept for the
/// time that it is given.
fn sleep_until(until: Virtual, sleep: impl Fn(&timespec) -> c_int) -> c_int {
    static SLEEP: u64 = 0;
    // Delay that passes during the sleep is taken by it, and not paid again.
    let blocking = Blocking::begin(ptr::from_ref(&SLEEP).addr());
    let mut answer = 0;
    loop {
        let rest = until - program_clock::now();
        if rest <= Nanos::ZERO || answer != 0 {
            break;
        }
        answer = sleep(&program_clock::to_timespec(Virtual(rest.0)));
    }
    match blocking {
        Some(blocking) if answer == 0 && program_clock::is_virtual() => {
            blocking.end_by_virtual_time();
        }
        Some(blocking) => blocking.end_by_time(),
        None => {}
    }
    answer
}

/// The C library's own `epoll_wait`.
fn c_epoll_wait() -> EpollWait {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let found = c_function(&FOUND, c"epoll_wait", kernel_epoll_wait as *mut c_void);
    // SAFETY: both functions have this signature.
    unsafe { mem::transmute::<*mut c_void, EpollWait>(found) }
}

/// The C library's own `nanosleep`.
fn c_nanosleep() -> Nanosleep {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let found = c_function(&FOUND, c"nanosleep", kernel_nanosleep as *mut c_void);
    // SAFETY: both functions have this signature.
    unsafe { mem::transmute::<*mut c_void, Nanosleep>(found) }
}

/// The C library's own `clock_nanosleep`.
fn c_clock_nanosleep() -> ClockNanosleep {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let found = c_function(&FOUND, c"clock_nanosleep", kernel_clock_nanosleep as *mut c_void);
    // SAFETY: both functions have this signature.
    unsafe { mem::transmute::<*mut c_void, ClockNanosleep>(found) }
}

/// The system call itself. Returns the number of the error, as the C library's function does.
unsafe extern "C" fn kernel_clock_nanosleep(
    id: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    // SAFETY: the caller answers for both.
    let answer = unsafe { libc::syscall(libc::SYS_clock_nanosleep, id, flags, time, left) };
    // SAFETY: the address of the calling thread's errno.
    if answer == -1 { unsafe { *libc::__errno_location() } } else { 0 }
}

/// The system call itself.
unsafe extern "C" fn kernel_nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the caller answers for both.
    unsafe { libc::syscall(libc::SYS_nanosleep, time, left) as c_int }
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
