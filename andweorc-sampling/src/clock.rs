//! The clocks that andweorc reads.

use andweorc_profile::time::{Nanos, Real};
#[cfg(not(loom))]
use libc::CLOCK_MONOTONIC;
use libc::{CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, c_int, clockid_t, timespec};
#[cfg(feature = "program-clock")]
use std::sync::atomic::AtomicPtr;
#[cfg(feature = "program-clock")]
use {crate::weak_symbol::c_function, std::ffi::c_void, std::mem, std::ptr::null_mut};

#[cfg(loom)]
crate::plain_thread_local! {
    // All threads of a model are one of the system's.
    static NOW: std::cell::Cell<Real> = std::cell::Cell::new(Real(0));
}

/// Real time now: the model's clock, which stands still but for [`advance`].
#[cfg(loom)]
pub fn now() -> Real {
    NOW.get()
}

/// Moves the model's clock on.
#[cfg(loom)]
pub fn advance(by: Nanos) {
    NOW.set(NOW.get() + by);
}

/// Sets the model's clock, at the begin of each run.
#[cfg(loom)]
pub fn set(now: Real) {
    NOW.set(now);
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
mod ticks;

/// Makes [`now`] as fast as it can be on this machine.
pub fn start() {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    ticks::start();
}

/// Runs `f`, which is what a signal handler does, and reads the clock in it.
pub fn in_signal_handler(f: impl FnOnce()) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    ticks::in_signal_handler(f);
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    f();
}

/// Real time now. About 10 ns where the processor's counter can be read directly, or else 25 ns:
/// the kernel answers from shared memory.
#[cfg(not(loom))]
#[inline]
pub fn now() -> Real {
    #[cfg(target_arch = "x86_64")]
    return ticks::now();
    #[cfg(not(target_arch = "x86_64"))]
    return monotonic();
}

/// Real time now, from the kernel.
#[cfg(not(loom))]
fn monotonic() -> Real {
    Real(read(CLOCK_MONOTONIC))
}

/// CPU time that the calling thread has used: real time less preemption and sleep. About 400 ns: a
/// system call.
pub fn thread_cpu() -> Nanos {
    Nanos(read(CLOCK_THREAD_CPUTIME_ID))
}

/// CPU time that the whole process has used, all threads.
pub fn process_cpu() -> Nanos {
    Nanos(read(CLOCK_PROCESS_CPUTIME_ID))
}

/// How many of the kernel's ticks, the unit of /proc/stat, make a second.
pub fn ticks_per_second() -> f64 {
    // SAFETY: takes a plain number and touches no memory of ours.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

/// CPU time that a thread of this process has used, by its kernel id. `None` when there is no such
/// thread.
pub fn cpu_of_thread(tid: i32) -> Option<Nanos> {
    // The kernel's encoding of a thread's CPU clock: see MAKE_THREAD_CPUCLOCK in its
    // posix-timers.h.
    const PER_THREAD: clockid_t = 4;
    const SCHED: clockid_t = 2;
    try_read((!tid << 3) | PER_THREAD | SCHED).map(Nanos)
}

/// The C library's own `clock_gettime`, whatever virtual clock the program has in its place.
///
/// # Safety
///
/// The C library's contract: `time` is a valid place for a time.
#[cfg(not(feature = "program-clock"))]
pub unsafe fn c_clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller answers for `time`.
    unsafe { libc::clock_gettime(id, time) }
}

/// The C library's own `clock_gettime`, whatever virtual clock the program has in its place.
///
/// # Safety
///
/// The C library's contract: `time` is a valid place for a time.
#[cfg(feature = "program-clock")]
pub unsafe fn c_clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
    type Function = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

    unsafe extern "C" fn kernel(id: clockid_t, time: *mut timespec) -> c_int {
        // SAFETY: the caller answers for `time`.
        unsafe { libc::syscall(libc::SYS_clock_gettime, id, time) as c_int }
    }

    let found = c_function(&FOUND, c"clock_gettime", kernel as *mut c_void);
    // SAFETY: both functions have this signature.
    let function = unsafe { mem::transmute::<*mut c_void, Function>(found) };
    // SAFETY: the caller answers for `time`.
    unsafe { function(id, time) }
}

fn read(clock: clockid_t) -> i64 {
    try_read(clock).expect("the three clocks exist on every Linux")
}

fn try_read(clock: clockid_t) -> Option<i64> {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call may write to; nothing else is touched.
    let code = unsafe { c_clock_gettime(clock, &mut time) };
    (code == 0).then(|| time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_a_thread_is_read_by_its_id() {
        let own = thread_cpu();
        let by_id = cpu_of_thread(nix::unistd::gettid().as_raw()).unwrap();
        assert!(by_id >= own && by_id <= thread_cpu());
        assert_eq!(cpu_of_thread(1 << 27), None, "beyond every thread id");
    }

    #[test]
    fn clocks_advance() {
        let (real, cpu, all) = (now(), thread_cpu(), process_cpu());
        let mut x = 0u64;
        while thread_cpu() == cpu {
            x = std::hint::black_box(x + 1);
        }
        assert!(now() > real);
        assert!(process_cpu() >= all);
    }
}
