//! Payment in mid-run: threads that lag behind for long are told to pay, by a signal.
//!
//! A task pays at the boundaries of its polls, before it wakes another one and at the ends of its
//! spans, and one poll may run for tens of ms between those. Paid in such lumps, the debt changes
//! the timing of everybody who shares something else with that task, a std lock or a socket. So
//! while experiments run, one thread looks at the accounts and sends a signal to who owes more than
//! [`LEAST`]; its handler pauses.
//!
//! - It looks [`RARELY`] where there are tasks only, which pay in time by themselves. It looks
//!   [`OFTEN`] once a plain thread has [registered](thread::register), which may have nothing that
//!   it pays at, or lines are [sampled](crate::sampler).
//! - Only threads that are in a poll (or registered), outside the target, not known to be blocked,
//!   using CPU time, and at work at this moment are told. A thread that waits for another takes its
//!   delay as it waits: to pause then would have it come late to a lock, which the one that let it
//!   go has taken again by then. One that sleeps in a system call may find it ended by the signal
//!   (EINTR), which SA_RESTART does not mend for nanosleep(2), poll(2) or a socket with a timeout.
//! - A program that handles the [signal](crate::signal) itself keeps its handler and is not nudged,
//!   and neither is a thread that blocks it.
//! - The pause may happen while the thread holds a lock; it is as short as the debt, so that others
//!   wait no longer than they would have paused themselves.

use crate::asked::looks_often;
use crate::background_thread::BackgroundThread;
use crate::clock;
use crate::proc_stat;
use crate::stall::Stalls;
use crate::thread::{self, Overhead, ledger};
use crate::time::{Nanos, Real};
use andweorc_sampling::asked_stack;
use andweorc_sampling::signal::{self, Handler, SIGNAL, Sender, Work};
use andweorc_sampling::slots;
use std::collections::HashMap;
use std::ffi::c_void;
use std::time::Duration;

/// How often the thread looks where [that was asked for](crate::asked::look_often), in baselines
/// too, so that what it costs is on both sides of a comparison. While no experiment is held there
/// is nothing to see, and it sleeps.
///
/// A look takes some 40 us from a busy processor (on a virtual machine a timer interrupt alone
/// takes 20 us), and that counts more the more the program is delayed: looks every 500 us made a
/// pipeline of 600 and 400 us read 4 to 9 points too low, when tasks did not yet pay before their
/// wakes, and every 2 or 4 ms were right within 2 points. What it takes from the target is now time
/// of the target ([`Overhead`]).
const OFTEN: Duration = Duration::from_millis(2);

/// How often it looks otherwise. In nine programs of tasks, up to a third of the time behind by
/// more than [`LEAST`], predictions were the same with both (docs/lab-notebook/causes.md), and
/// looks every 2 ms took 16 us of each request of two services whose processors were all busy.
const RARELY: Duration = Duration::from_millis(16);

/// Delay that a thread may owe without being told.
const LEAST: Nanos = Nanos::from_micros(100);

/// A thread that looks for those that lag while it is told to, and calls `also` at each look; it
/// sees [stalls](crate::stall) too. Nobody is nudged if the signal is not to be had.
pub(crate) fn nudger(also: impl Fn(Real) + Send + 'static) -> BackgroundThread {
    let handler = Handler::install(Sender::Nudger, &CATCHES_UP);
    BackgroundThread::start("andweorc-nudge", move || {
        let mut seen = HashMap::new();
        let (takes, mut stalls) = (Overhead::new(), Stalls::new());
        move || {
            takes.count();
            let period = if looks_often() { OFTEN } else { RARELY };
            let since = clock::now();
            std::thread::sleep(period);
            let now = clock::now();
            stalls.woke(now - since - Nanos::from(period));
            also(now);
            slots::see_who_has_the_signal();
            if handler.is_some() && signal::may_send() {
                look(&mut seen, now);
            }
            Duration::ZERO
        }
    })
}

/// Tells those to pay who lag and use CPU time. `seen` is what they had used when they were last
/// looked at.
fn look(seen: &mut HashMap<i32, Nanos>, now: Real) {
    for tid in ledger().lagging(LEAST, now) {
        let Some(cpu) = clock::cpu_of_thread(tid) else { continue };
        let before = seen.insert(tid, cpu);
        if before.is_some_and(|before| cpu > before) && is_at_work(tid, cpu) {
            tell(tid);
        }
    }
}

/// Whether a thread that had used `cpu` a moment ago runs, or waits for a processor. Of one that
/// runs its CPU clock tells, without a file that has to be read.
fn is_at_work(tid: i32, cpu: Nanos) -> bool {
    clock::cpu_of_thread(tid).is_some_and(|now| now > cpu)
        || proc_stat::is_asleep(tid) == Some(false)
}

/// Sends the signal to one thread of this process. One that ended meanwhile gets none.
pub(crate) fn tell(tid: i32) {
    // SAFETY: takes plain numbers; the kernel checks that the thread belongs to this process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, SIGNAL as libc::c_int) };
}

/// The work of the signal's handler.
const CATCHES_UP: Work = Work { is_wanted: || true, run: catch_up, own_stack: slots::own_stack };

/// Has the calling thread tell its call chain, if it is asked for that, and pay what it owes.
///
/// Async-signal-safe, as [`asked_stack::answer`] and [`thread::catch_up_in_signal_handler`].
extern "C" fn catch_up(context: *mut c_void) {
    // SAFETY: the handler alone calls it, with its own third argument, and was installed with
    // SA_SIGINFO.
    unsafe { asked_stack::answer(context, thread::is_in_poll_since) };
    thread::catch_up_in_signal_handler();
    if signal::is_pending() {
        // Its time went to the pause, and not to what the thread does.
        slots::skip_next();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::hint::spin_loop;
    use std::sync::mpsc::{self, TryRecvError};

    #[test]
    fn thread_that_works_is_told_to_pay_and_one_that_sleeps_is_not() {
        let (told, tids) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let sleeper_told = told.clone();
        let sleeper = std::thread::spawn(move || {
            sleeper_told.send(nix::unistd::gettid().as_raw()).unwrap();
            ended.recv().unwrap_err();
        });
        let sleeps = tids.recv().unwrap();
        while proc_stat::is_asleep(sleeps) != Some(true) {
            std::thread::yield_now();
        }
        let is_told = |tid| clock::cpu_of_thread(tid).is_some_and(|cpu| is_at_work(tid, cpu));
        assert!((0..1000).all(|_| !is_told(sleeps)));
        let (stop, stopped) = mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            told.send(nix::unistd::gettid().as_raw()).unwrap();
            while stopped.try_recv() == Err(TryRecvError::Empty) {
                spin_loop();
            }
        });
        let works = tids.recv().unwrap();
        // Whether it has a processor or waits for one.
        assert!((0..1000).all(|_| is_told(works)));
        drop((end, stop));
        sleeper.join().unwrap();
        worker.join().unwrap();
        assert!(!is_told(works), "it is gone");
    }
}
