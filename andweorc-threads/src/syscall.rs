//! The C library's `syscall`.

use andweorc_core::hooks::thread::{self, Blocking};
use andweorc_core::hooks::time::Virtual;
use andweorc_core::hooks::{clock, program_clock};
use libc::{c_int, c_long, timespec};

andweorc_core::hooks::weak_symbol!("syscall", in_place_of_syscall);

/// Function that is called in the place of the C library's, which takes the number of the system
/// call and up to six arguments.
///
/// That one is variadic; on x86-64 and aarch64 its caller passes whole numbers and pointers as for
/// this signature, and what it does not pass is garbage that the kernel does not look at, here as
/// there.
///
/// # Safety
///
/// As for the system call.
unsafe extern "C" fn in_place_of_syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the caller answers for the arguments.
    let call = || unsafe { kernel(number, a, b, c, d, e, f) };
    let answer = if number != libc::SYS_futex {
        call()
    } else if has_deadline(b as c_int, d) && program_clock::is_on() {
        // SAFETY: the caller answers for the arguments, and that is where the deadline is.
        let deadline = unsafe { program_clock::from_timespec(&*(d as *const timespec)) };
        let end = match program_clock::is_virtual() {
            true => Blocking::end_by_virtual_time,
            false => Blocking::end_by_time,
        };
        futex(a as usize, b as c_int, end, || {
            until(Virtual(deadline.0), |deadline| {
                // SAFETY: as above, with another deadline.
                unsafe { kernel(number, a, b, c, deadline as *const timespec as c_long, e, f) }
            })
        })
    } else {
        futex(a as usize, b as c_int, Blocking::end_by_time, call)
    };
    // The kernel's errors are the negatives of their numbers.
    if (-4095..0).contains(&answer) {
        set_errno(-answer as c_int);
        return -1;
    }
    answer
}

/// Whether a futex call of this operation, whose fourth argument is `time`, waits until a time of
/// the clock that `Instant` reads.
fn has_deadline(operation: c_int, time: c_long) -> bool {
    let waits = operation & libc::FUTEX_CMD_MASK == libc::FUTEX_WAIT_BITSET;
    waits && time != 0 && operation & libc::FUTEX_CLOCK_REALTIME == 0
}

/// Waits until the program's clock, which is virtual, gets to `deadline`: by `wait`, which takes a
/// time of the kernel's and gives its answer.
fn until(deadline: Virtual, wait: impl Fn(&timespec) -> c_long) -> c_long {
    loop {
        let behind = program_clock::behind(clock::now());
        let real = Virtual(deadline.0.saturating_add(behind.0));
        let answer = wait(&program_clock::to_timespec(real));
        let is_early = program_clock::now() < deadline;
        if answer != -c_long::from(libc::ETIMEDOUT) || !is_early {
            return answer;
        }
    }
}

/// A futex call of the operation `operation` on the word at `at`, with what it means to the ledger.
/// `end_by_time` says what it means that a wait has timed out.
fn futex(
    at: usize,
    operation: c_int,
    end_by_time: fn(Blocking),
    call: impl FnOnce() -> c_long,
) -> c_long {
    if !andweorc_core::hooks::enabled() {
        return call();
    }
    thread::blocking_is_seen();
    let errno = errno();
    let answer = match operation & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => {
            let blocking = Blocking::begin(at);
            let answer = call();
            if let Some(blocking) = blocking {
                match -answer as c_int {
                    libc::ETIMEDOUT => end_by_time(blocking),
                    _ => blocking.end(),
                }
            }
            answer
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET | libc::FUTEX_WAKE_OP => {
            thread::catch_up_before_waking(at);
            call()
        }
        // What else there is moves waiters from one futex to another; std and parking_lot make no
        // use of it.
        _ => call(),
    };
    // What was done beside the call has no errors of its own.
    set_errno(errno);
    answer
}

fn errno() -> c_int {
    // SAFETY: the address of the calling thread's errno.
    unsafe { *libc::__errno_location() }
}

fn set_errno(errno: c_int) {
    // SAFETY: the address of the calling thread's errno.
    unsafe { *libc::__errno_location() = errno };
}

/// The system call itself. Errors come back as negative numbers.
///
/// # Safety
///
/// As for the system call.
#[cfg(target_arch = "x86_64")]
unsafe fn kernel(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let answer;
    // SAFETY: the caller answers for the arguments; the kernel changes no other registers than
    // these.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// The system call itself. Errors come back as negative numbers.
///
/// # Safety
///
/// As for the system call.
#[cfg(target_arch = "aarch64")]
unsafe fn kernel(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let answer;
    // SAFETY: the caller answers for the arguments; the kernel changes no other register than that
    // of the answer.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    answer
}
