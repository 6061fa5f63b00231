//! Precise pauses: sleep, then spin for the last tens of microseconds.
//!
//! A sleeping thread comes back late: by about 80 us with the kernel's default timer slack of 50 us, by about 30 us
//! (99th percentile 100 us) without slack, on a virtual machine with Linux 6. So a pause asks for no slack while it sleeps, sleeps
//! until 50 us before its end and spins for the rest. What it still overshoots is told to the ledger as credit.

use crate::clock;
use crate::time::{Nanos, Real};
use libc::{CLOCK_MONOTONIC, PR_GET_TIMERSLACK, PR_SET_TIMERSLACK, TIMER_ABSTIME, timespec};

/// How long before its end a pause stops sleeping and starts to spin.
const SPIN: Nanos = Nanos::from_micros(50);

/// Blocks the calling thread until `until` and returns the time at which it really came back.
pub fn until(until: Real) -> Real {
    let mut now = clock::now();
    if until - now > SPIN {
        sleep_until(until - SPIN);
        now = clock::now();
    }
    while now < until {
        std::hint::spin_loop();
        now = clock::now();
    }
    now
}

/// Sleeps until `until`, with the least timer slack, which is put back afterwards. Signals don't shorten it.
fn sleep_until(until: Real) {
    let slack = timer_slack();
    set_timer_slack(1);
    let time = timespec { tv_sec: until.0 / 1_000_000_000, tv_nsec: until.0 % 1_000_000_000 };
    // SAFETY: `time` is a valid timespec, and with TIMER_ABSTIME the kernel writes nothing back through the null pointer.
    while unsafe {
        libc::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, std::ptr::null_mut())
    } == libc::EINTR
    {}
    set_timer_slack(slack);
}

/// Lets the calling thread wake up as close to time as the kernel can, for good.
#[cfg(not(loom))]
pub(crate) fn without_slack() {
    set_timer_slack(1);
}

/// The calling thread's timer slack, ns.
fn timer_slack() -> libc::c_ulong {
    // SAFETY: takes no argument and returns a plain number.
    unsafe { libc::prctl(PR_GET_TIMERSLACK) as libc::c_ulong }
}

/// Sets the calling thread's timer slack, ns. A kernel that refuses changes nothing.
fn set_timer_slack(slack: libc::c_ulong) {
    // SAFETY: takes a plain number and touches no memory.
    unsafe { libc::prctl(PR_SET_TIMERSLACK, slack) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_comes_back_early() {
        for us in [0, 1, 40, 60, 300] {
            let end = clock::now() + Nanos::from_micros(us);
            assert!(until(end) >= end);
        }
    }

    #[test]
    fn puts_timer_slack_back() {
        let before = timer_slack();
        until(clock::now() + Nanos::from_micros(200));
        assert_eq!(timer_slack(), before);
    }
}
