//! The function `syscall` of this program is andweorc's, and does what the C library's does.

use andweorc_threads as _;
use libc::{c_int, c_long};
use std::ffi::c_void;
use std::ptr;

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

fn clear_errno() {
    // SAFETY: the address of this thread's errno.
    unsafe { *libc::__errno_location() = 0 };
}

#[test]
fn the_function_is_andweorcs() {
    // SAFETY: asks for an address by name.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) };
    let ours = libc::syscall as unsafe extern "C" fn(c_long, ...) -> c_long as *mut c_void;
    assert!(!next.is_null() && next != ours, "the C library's is another");
}

#[test]
fn answers_and_errors_are_the_kernels() {
    for on in [false, true] {
        if on {
            andweorc_core::thread::enable();
        }
        // SAFETY: calls that take numbers, or memory that lives.
        unsafe {
            clear_errno();
            assert_eq!(libc::syscall(libc::SYS_getpid), c_long::from(libc::getpid()));
            assert_eq!(errno(), 0, "no error, no errno");
            assert_eq!(libc::syscall(libc::SYS_close, -1), -1);
            assert_eq!(errno(), libc::EBADF);
            assert_eq!(libc::syscall(libc::SYS_getpid), c_long::from(libc::getpid()));
            assert_eq!(errno(), libc::EBADF, "success leaves it alone");

            let word = 1u32;
            clear_errno();
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            let none = ptr::null::<libc::timespec>();
            assert_eq!(libc::syscall(libc::SYS_futex, &raw const word, wait, 2u32, none), -1);
            assert_eq!(errno(), libc::EAGAIN, "the word is another");
            let soon = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            let ended =
                libc::syscall(libc::SYS_futex, &raw const word, wait, 1u32, &raw const soon);
            assert_eq!((ended, errno()), (-1, libc::ETIMEDOUT));
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            assert_eq!(libc::syscall(libc::SYS_futex, &raw const word, wake, 1u32), 0);
            assert_eq!(errno(), libc::ETIMEDOUT, "nobody to wake is no error");
        }
    }
}

/// A call with all six arguments, and an answer that is an address.
#[test]
fn six_arguments_get_there() {
    let (read_write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
    let flags = private | libc::MAP_ANONYMOUS;
    let nowhere = ptr::null::<c_void>();
    // SAFETY: a fresh mapping, which is written to while it is there.
    unsafe {
        let at = libc::syscall(libc::SYS_mmap, nowhere, 8192usize, read_write, flags, -1, 0usize);
        assert!(at > 0 && at % 4096 == 0, "{at}");
        (at as *mut u8).add(8191).write(7);
        assert_eq!(libc::syscall(libc::SYS_munmap, at, 8192usize), 0);
    }
}
