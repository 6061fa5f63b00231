//! The interposed `syscall` beside the C library's: how many of the answers, with errno, differ is
//! printed.

use std::ffi::{c_int, c_long};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

extern crate andweorc_threads;

type Syscall = unsafe extern "C" fn(c_long, ...) -> c_long;

pub fn main() {
    andweorc_core::thread::enable();
    andweorc_core::thread::register();
    // SAFETY: both are `syscall` of the C library's type.
    let both: [Syscall; 2] = unsafe {
        [
            std::mem::transmute::<*mut libc::c_void, Syscall>(libc::dlsym(
                libc::RTLD_NEXT,
                c"syscall".as_ptr(),
            )),
            std::mem::transmute::<*const (), Syscall>(libc::syscall as *const ()),
        ]
    };
    let interposed = both[0] as usize != both[1] as usize;
    let mut word = 0u32;
    let p = &raw mut word as c_long;
    let time = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 };
    let t = &raw const time as c_long;
    let futex = |op: c_int, value, timeout, second, third| {
        (libc::SYS_futex, [p, c_long::from(op), value, timeout, second, third])
    };
    let calls = [
        (libc::SYS_getpid, [0; 6]),
        (libc::SYS_gettid, [0; 6]),
        (libc::SYS_close, [-1, 0, 0, 0, 0, 0]),
        (libc::SYS_read, [0, 1, 8, 0, 0, 0]),
        (9999, [0; 6]),
        (libc::SYS_getpriority, [0; 6]),
        (libc::SYS_lseek, [0, 0, 77, 0, 0, 0]),
        (libc::SYS_mmap, [0, 0, 0, 0, -1, 0]),
        (libc::SYS_kill, [0; 6]),
        futex(libc::FUTEX_WAIT, 5, 0, 0, 0),
        futex(libc::FUTEX_WAIT, 0, t, 0, 0),
        futex(libc::FUTEX_WAKE, 1, 0, 0, 0),
        (libc::SYS_futex, [1, c_long::from(libc::FUTEX_WAIT), 0, t, 0, 0]),
        futex(77, 0, 0, 0, 0),
        futex(libc::FUTEX_CMP_REQUEUE, 1, 1, p, 9),
        futex(libc::FUTEX_WAIT_BITSET, 0, 0, 0, 0),
        (libc::SYS_prctl, [9999, 0, 0, 0, 0, 0]),
        (libc::SYS_getrandom, [p, 0, 0, 0, 0, 0]),
    ];
    let mut differ = 0;
    for (number, [a, b, c, d, e, f]) in calls {
        let answers = both.map(|syscall| {
            // SAFETY: each of these calls touches nothing but `word`, or fails.
            unsafe {
                *libc::__errno_location() = 42;
                (syscall(number, a, b, c, d, e, f), *libc::__errno_location())
            }
        });
        if answers[0] != answers[1] {
            println!("system call {number}: {answers:?}");
            differ += 1;
        }
    }
    let (mutex, condvar) = (Mutex::new(0), Condvar::new());
    let guard = mutex.lock().expect("nobody panics with it");
    let (_guard, waited) =
        condvar.wait_timeout(guard, Duration::from_millis(20)).expect("as above");
    // SAFETY: the child makes one system call more.
    let status = unsafe {
        let child = both[1](libc::SYS_fork);
        if child == 0 {
            libc::_exit(3);
        }
        let mut status = 0;
        libc::waitpid(child as i32, &mut status, 0);
        status
    };
    let held = interposed && waited.timed_out() && libc::WEXITSTATUS(status) == 3;
    println!("differ={differ} held={}", u8::from(held));
}
