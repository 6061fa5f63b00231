//! **Internal to `andweorc`: no stability.** Use this crate through the feature `threads` of the
//! facade crate `andweorc`.
//!
//! Sees that threads are blocked by each other. A thread that waits for another takes its delay
//! meanwhile; without this it pays that again afterwards, and predictions for programs of plain
//! threads are too low.
//!
//! std's locks, condition variables, `park`, `OnceLock` and channels, parking_lot and tokio's
//! parking wait by the futex system call, and all of them call it through the C library's function
//! `syscall`. This crate defines that function, in its place: linked into a program, every such
//! call comes here.
//!
//! - A wait that another thread ends is told to the ledger as [blocked
//!   time](andweorc_core::thread::Blocking); one that times out is not: time passed outside.
//! - Before it wakes others, a thread pays what it owes.
//! - Every other system call, and everything while andweorc is off, goes to the kernel as it came,
//!   and what the kernel answers goes back as the C library would hand it on: -1 and `errno` on
//!   errors. That costs one compare and one relaxed load more.
//! - It allocates nothing, takes no lock and uses no thread-local that must be set up first, so it
//!   may be called from anywhere: signal handlers, destructors of threads, a child of fork.
//!
//! # What it does not see
//!
//! `JoinHandle::join`, locks of the pthread library and of C code, `thread::sleep`: their system
//! calls are inside the C library. Wrap joins in `andweorc::blocked`. It is there on Linux on
//! x86-64 and aarch64, not under miri, and not in a shared library that a foreign program loads. It
//! works under AddressSanitizer; with any other sanitizer, which may define `syscall` itself, leave
//! the feature off.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod syscall;
