//! Precise pauses: they spin, and sleep only while much is left.
//!
//! A thread that pauses stands still in virtual time, and has its processor meanwhile: were the
//! target really faster, nobody else would get it. So a pause keeps it in real time too. While a
//! thread slept instead, others would run on its processor that were not to have it yet, and a
//! thread that is woken from a sleep goes ahead of others, so that the kernel would order the
//! program's threads in a way of which the faster program knows nothing. Who waits for a processor
//! behind a pause takes it as [its own](crate::thread). Under a limit on processor time, as a
//! container has it, pauses sleep: there the program's threads may be many more than what it may
//! use.
//!
//! A sleeping thread also comes back late: by some 80 us with the kernel's default timer slack of
//! 50 us, by some 30 us without slack. So a long pause asks for no slack while it sleeps. What it
//! overshoots nevertheless is told to the ledger as credit.

use crate::clock;
use crate::process::process;
use crate::time::{Nanos, Real};
use libc::{CLOCK_MONOTONIC, PR_GET_TIMERSLACK, PR_SET_TIMERSLACK, TIMER_ABSTIME, timespec};
use std::sync::atomic::Ordering::Relaxed;

/// How long before its end a pause stops sleeping and starts to spin. Longer than the debts of most
/// pauses, and too short to keep a processor from whoever else needs it.
const SPIN: Nanos = Nanos::from_millis(2);

/// How long before its end it does under a limit on processor time, of which a thread that spins
/// uses as much as one that works.
const SPIN_UNDER_LIMIT: Nanos = Nanos::from_micros(50);

/// Says whether there is a limit on the program's processor time.
pub(crate) fn set_under_limit(limit: bool) {
    process().machine.is_limited.store(limit, Relaxed);
}

/// How long before its end a pause starts to spin.
fn spin(under_limit: bool) -> Nanos {
    if under_limit { SPIN_UNDER_LIMIT } else { SPIN }
}

/// Blocks the calling thread until `until` and returns the time at which it really came back.
pub(crate) fn until(until: Real) -> Real {
    sleep_and_spin(until, spin(process().machine.is_limited.load(Relaxed)))
}

/// Sleeps until about `until`, without spinning, for a thread that has nothing to do before then.
pub fn nap(until: Real) {
    sleep_until(until);
}

/// CPU time that pauses of all threads have used so far. Those that still go on are not in it.
pub(crate) fn cpu() -> Nanos {
    Nanos(process().machine.paused.load(Relaxed))
}

/// Does so, and spins for the last `spin` of it.
fn sleep_and_spin(until: Real, spin: Nanos) -> Real {
    let mut now = clock::now();
    let mut used = Used::begin(until - now, clock::thread_cpu);
    if until - now > spin {
        sleep_until(until - spin);
        used.something_else(clock::thread_cpu);
        now = clock::now();
    }
    while now < until {
        std::hint::spin_loop();
        let before = std::mem::replace(&mut now, clock::now());
        if used.step(now - before, clock::thread_cpu) {
            now = clock::now();
        }
    }
    process().machine.paused.fetch_add(used.total().0, Relaxed);
    now
}

/// A step of a spin that took longer was not one alone: the kernel had the processor for a tick or
/// another interrupt, which counts as CPU time of the thread, or others had it, which does not.
const MOST_STEP: Nanos = Nanos::from_micros(5);

/// Shorter pauses don't read the CPU clock, which takes about a microsecond.
const LEAST_READ: Nanos = Nanos::from_micros(20);

/// CPU time that a pause uses: by the sum of its steps, which costs nothing, and by the thread's
/// CPU clock whenever something else than a step went on.
#[derive(Debug)]
struct Used {
    /// The thread's CPU time at the begin. `None` of a pause that is too short to read it.
    began: Option<Nanos>,
    /// Used up to the last reading.
    read: Nanos,
    /// Sum of the steps since then.
    steps: Nanos,
}

impl Used {
    /// Of a pause of this length that begins now.
    fn begin(length: Nanos, thread_cpu: impl FnOnce() -> Nanos) -> Used {
        let began = (length > LEAST_READ).then(thread_cpu);
        Used { began, read: Nanos::ZERO, steps: Nanos::ZERO }
    }

    /// Adds a step of the spin. Returns whether that took the time to read the clock.
    fn step(&mut self, step: Nanos, thread_cpu: impl FnOnce() -> Nanos) -> bool {
        if step < MOST_STEP {
            self.steps += step;
            return false;
        }
        self.something_else(thread_cpu)
    }

    /// Something else than steps went on until now. Returns whether that took the time to read the
    /// clock.
    fn something_else(&mut self, thread_cpu: impl FnOnce() -> Nanos) -> bool {
        let Some(began) = self.began else { return false };
        (self.read, self.steps) = (thread_cpu() - began, Nanos::ZERO);
        true
    }

    /// CPU time that the pause used in all.
    fn total(&self) -> Nanos {
        self.read + self.steps
    }
}

/// Sleeps until `until`, with the least timer slack, which is put back afterwards. Signals don't
/// shorten it.
fn sleep_until(until: Real) {
    let slack = timer_slack();
    set_timer_slack(1);
    let time = timespec { tv_sec: until.0 / 1_000_000_000, tv_nsec: until.0 % 1_000_000_000 };
    let no_place = std::ptr::null_mut::<timespec>();
    // SAFETY: the address of the calling thread's errno, which whoever is interrupted by a signal
    // handler that pauses finds as it was.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    // The system call itself: the C library's function may go by the program's clock here.
    // SAFETY: `time` is a valid timespec, and with TIMER_ABSTIME the kernel writes nothing back
    // through the null pointer.
    while unsafe {
        libc::syscall(libc::SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &time, no_place)
    } == -1
        && *errno == libc::EINTR
    {}
    *errno = before;
    set_timer_slack(slack);
}

/// Lets the calling thread wake up as close to time as the kernel can, for good, also when all
/// processors are busy.
pub(crate) fn on_time() {
    set_timer_slack(1);
    set_slice(SHORTEST_SLICE);
}

/// The shortest time slice that Linux grants. Who asks for a short one gets it early: since 6.12 it
/// goes ahead of threads with longer slices as soon as it is woken, where it would wait for up to 3
/// ms.
const SHORTEST_SLICE: Nanos = Nanos::from_micros(100);

/// Asks for a time slice for the calling thread, unless the program runs under a policy of its own
/// choice. A kernel that knows none, before 6.12, changes nothing.
fn set_slice(slice: Nanos) {
    // SAFETY: takes a plain number and touches no memory.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        return;
    }
    // SAFETY: all zeros are a valid value: the policy SCHED_OTHER, no flags, nice 0.
    let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
    wanted.size = size_of::<libc::sched_attr>() as u32;
    wanted.sched_runtime = slice.0 as u64;
    wanted.sched_nice = nice();
    // SAFETY: the kernel reads `size` bytes of `wanted`, and sets what the calling thread (0) is
    // allowed to set by itself.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
}

/// The calling thread's nice value.
pub(crate) fn nice() -> i32 {
    // SAFETY: takes plain numbers. What it returns in an error, -1, is a nice value too.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
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
        for us in [0, 1, 60, 300, 2100] {
            let end = clock::now() + Nanos::from_micros(us);
            assert!(until(end) >= end);
        }
    }

    #[test]
    fn pause_counts_its_spinning_as_cpu_time() {
        let before = cpu();
        until(clock::now() + Nanos::from_micros(300));
        assert!(cpu() > before);
    }

    #[test]
    fn steps_of_a_pause_are_summed_until_something_else_goes_on() {
        let never = || -> Nanos { unreachable!("no clock is read") };
        let us = Nanos::from_micros;
        let mut used = Used::begin(us(100), || us(1000));
        assert!(!used.step(us(1), never) && !used.step(us(2), never));
        assert_eq!(used.total(), us(3));
        // A tick of 8 us is CPU time of the thread, and so is what the clock saw beside the steps.
        assert!(used.step(us(8), || us(1012)));
        assert_eq!(used.total(), us(12));
        assert!(!used.step(us(1), never));
        // Another thread had the processor for 3 ms.
        assert!(used.step(us(3000), || us(1014)));
        assert_eq!(used.total(), us(14));
    }

    #[test]
    fn short_pause_reads_no_clock_and_leaves_out_long_steps() {
        let never = || -> Nanos { unreachable!("no clock is read") };
        let us = Nanos::from_micros;
        let mut used = Used::begin(us(20), never);
        assert!(!used.step(us(2), never) && !used.step(us(8), never) && !used.step(us(1), never));
        assert_eq!(used.total(), us(3));
    }

    #[test]
    fn a_pause_spins_and_under_a_limit_it_sleeps() {
        let used = |under_limit| {
            let began = clock::thread_cpu();
            sleep_and_spin(clock::now() + Nanos::from_micros(1900), spin(under_limit));
            clock::thread_cpu() - began
        };
        // A thread that is preempted uses less.
        assert!((0..1000).any(|_| used(false) > Nanos::from_micros(1000)));
        let sleeps = (0..5).map(|_| used(true)).min().unwrap();
        assert!(sleeps < Nanos::from_micros(500), "{sleeps}");
    }

    #[cfg(not(loom))]
    #[test]
    fn thread_to_be_on_time_asks_for_a_short_slice() {
        std::thread::spawn(|| {
            on_time();
            assert_eq!(timer_slack(), 1);
            // SAFETY: all zeros are a valid value, and the kernel writes no more than `size` bytes
            // of it.
            let (code, has) = unsafe {
                let mut has: libc::sched_attr = std::mem::zeroed();
                let size = size_of::<libc::sched_attr>();
                (libc::syscall(libc::SYS_sched_getattr, 0, &raw mut has, size, 0), has)
            };
            // Kernels before 6.12 know no slices, and say 0.
            assert!(code != 0 || [0, SHORTEST_SLICE.0 as u64].contains(&has.sched_runtime));
            println!("slice: {} ns", has.sched_runtime);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn puts_timer_slack_back() {
        let before = timer_slack();
        until(clock::now() + SPIN + Nanos::from_micros(200));
        assert_eq!(timer_slack(), before);
    }
}
