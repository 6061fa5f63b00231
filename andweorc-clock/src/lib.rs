//! **Internal to `andweorc`: no stability.** Use this crate through the feature `clock` of the
//! facade crate `andweorc`.
//!
//! Makes the clock that the program reads a virtual one. While andweorc delays a program, what
//! lives by the clock must be delayed with it: a rate limiter, an interval, a pacer, a timeout.
//! Otherwise it goes on in real time, and seems to be faster than it is.
//!
//! Rust's std reads its `Instant`s by the C library's function `clock_gettime`, and tokio, governor
//! and most others read `Instant`s. This crate defines that function in its place, and answers with
//! real time less what the program was delayed ([`andweorc_core::program_clock`]).
//!
//! - Clocks that count from the start of the machine are virtual: CLOCK_MONOTONIC, its `_RAW` and
//!   `_COARSE` kinds, and CLOCK_BOOTTIME. The time of day and CPU clocks are as they were.
//! - A virtual clock never goes back, and runs at most as fast as the real one. Between experiments
//!   it runs as fast; it stays behind by what the program was delayed.
//! - What waits on a futex until a deadline waits until the virtual clock gets there: the crate
//!   `andweorc-threads` sees to that.
//! - While andweorc is off the call goes on to the C library: one relaxed load more.
//! - It allocates nothing and takes no lock, so it may be called from a signal handler.
//!
//! This crate defines `epoll_wait`, `nanosleep` and `clock_nanosleep` too, whose timeouts are
//! virtual then. Whoever reads the clock after `epoll_wait` returned, as tokio does, has woken all
//! whom an event had woken, and goes on with timers.
//!
//! All these definitions are weak and hidden: another one in the program goes first, and shared
//! libraries call the C library's.
//!
//! # What stays in real time
//!
//! - Relative timeouts of other system calls, such as `poll`.
//! - Absolute deadlines that are given to the kernel or the C library, but for futexes and
//!   `clock_nanosleep`: they come early by what the program was delayed.
//! - Crates that read the processor's counter, as quanta and minstant do on x86-64.
//!
//! Works on Linux on x86-64 and aarch64, not under miri, and not in a shared library that a
//! foreign program loads.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod symbols;
