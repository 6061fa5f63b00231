//! The clock that the program reads.
//!
//! Time in the ledger is virtual. Were the program's own clock real, what lives by it would go on
//! while all else is delayed, and seem to be faster than it is: rate limiters, intervals, pacers,
//! timeouts, back-offs. So the crate `andweorc-clock` defines `clock_gettime`, which `Instant`
//! reads, and answers as [`read`] says: real time less the delay D that the whole program owes.
//!
//! # What follows for timers
//!
//! tokio's driver sleeps in `epoll_wait` until its next timer, and the timeout of `epoll_wait` goes
//! by this clock too. A timer that goes off is due in virtual time by that: the task that it wakes
//! is ready at V, and must not be held. An event of a socket comes from a world that is not
//! delayed, and is held as ever. [`noticed_a_timer`] tells the two apart, since tokio reads the
//! clock after it has woken for events, and before it wakes for timers.
//!
//! # Targets that are waits
//!
//! While a wait is the target, the clock runs as fast as real time. Otherwise the timer that such a
//! wait may be for would be as far ahead in virtual time as ever, and the wait would not get
//! shorter. Timers are held then, as events are.
//!
//! # Going back
//!
//! D grows no faster than time passes, so the clock never goes back; what samples and messages of
//! other processes add to D comes in lumps, and the clock stands still for as long. That holds
//! across threads too.

pub(crate) mod state;

use crate::clock;
use crate::plain_thread_local;
use crate::process::{ledger, process};
use crate::time::{Nanos, Real, Speedup, Virtual};
use libc::timespec;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// How readings of the program's clock are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    /// They are real.
    Off,
    /// They are real, and one shows that they come by here.
    Probing,
    /// One has come by.
    Seen,
    /// They are virtual.
    On,
    /// They are real, and are to stay so.
    Kept,
}

/// A clock that counts from the start of the machine. Some go on while it is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CLOCK_MONOTONIC, which `Instant` reads.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW.
    Raw,
    /// CLOCK_MONOTONIC_COARSE.
    Coarse,
    /// CLOCK_BOOTTIME.
    Boot,
}

/// Where the calling thread is in the driver of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Driver {
    /// Nothing that is known.
    Unknown,
    /// Waking tasks for events: `epoll_wait` has returned, and the clock was not read since.
    Events,
    /// Waking tasks for timers: the clock was read after `epoll_wait` had returned.
    Timers,
}

/// The calling thread, as a reader of the clock.
struct Here {
    driver: Cell<Driver>,
    /// True for a thread of andweorc's own, which goes by real time.
    reads_real: Cell<bool>,
}

plain_thread_local! {
    // A signal handler may read the clock.
    static HERE: Here = Here { driver: Cell::new(Driver::Unknown), reads_real: Cell::new(false) };
}

/// Makes the clock virtual, if the program reads it by the crate `andweorc-clock`. Returns whether
/// it is.
pub fn start() -> bool {
    let probing = process().program_clock.mode.compare_exchange(
        Mode::Off as u8,
        Mode::Probing as u8,
        Ordering::SeqCst,
        Ordering::SeqCst,
    );
    if probing.is_ok() {
        std::hint::black_box(Instant::now());
        let seen = process().program_clock.mode.load(Ordering::SeqCst) == Mode::Seen as u8;
        // Where nothing comes by here now, nothing will.
        let mode = if seen { Mode::On } else { Mode::Kept };
        process().program_clock.mode.store(mode as u8, Ordering::SeqCst);
    }
    is_on()
}

/// Keeps the clock real for the life of the process. Does nothing once it is virtual.
pub fn keep_real() {
    let (off, kept) = (Mode::Off as u8, Mode::Kept as u8);
    // Fails where it is virtual, or kept already.
    process()
        .program_clock
        .mode
        .compare_exchange(off, kept, Ordering::SeqCst, Ordering::SeqCst)
        .ok();
}

/// Whether the clock is [kept](keep_real) real, or nothing could be done about it.
pub fn is_kept_real() -> bool {
    process().program_clock.mode.load(Ordering::SeqCst) == Mode::Kept as u8
}

/// Whether the program's clock is virtual.
#[inline]
pub fn is_on() -> bool {
    // Relaxed: it is switched on before the first experiment, and stays on.
    process().program_clock.mode.load(Ordering::Relaxed) == Mode::On as u8
}

/// Whether a reading is of interest here.
#[inline]
pub fn is_read() -> bool {
    // Relaxed: as above.
    let mode = process().program_clock.mode.load(Ordering::Relaxed);
    mode != Mode::Off as u8 && mode != Mode::Kept as u8
}

/// Answers a reading of a clock of this kind that shows `real`, ns: the time less the delay.
pub fn read(kind: Kind, real: Real) -> Virtual {
    if !is_on() {
        let (probing, seen) = (Mode::Probing as u8, Mode::Seen as u8);
        // Fails where another thread was here first.
        process()
            .program_clock
            .mode
            .compare_exchange(probing, seen, Ordering::SeqCst, Ordering::SeqCst)
            .ok();
        return Virtual(real.0);
    }
    if HERE.with(|here| here.reads_real.get()) {
        return Virtual(real.0);
    }
    if HERE.with(|here| here.driver.get()) == Driver::Events {
        HERE.with(|here| here.driver.set(Driver::Timers));
    }
    let now = if kind == Kind::Monotonic { real } else { clock::now() };
    let read = real.less(behind(now));
    let last = &process().program_clock.last[kind as usize];
    if ledger().speedup() == Speedup::ZERO {
        // Relaxed, here and below: of readings on two threads none comes first but by what these
        // threads have told each other, and that orders them here too.
        return Virtual(read.0.max(last.load(Ordering::Relaxed)));
    }
    Virtual(last.fetch_max(read.0, Ordering::Relaxed).max(read.0))
}

/// The time on the clock that the calling thread reads. Does not count as a [`read`].
pub fn now() -> Virtual {
    let now = clock::now();
    now.less(behind(now))
}

/// By how much the clock that the calling thread reads is behind real time.
pub fn behind(now: Real) -> Nanos {
    if HERE.with(|here| here.reads_real.get()) || !is_on() {
        return Nanos::ZERO;
    }
    let behind = process().program_clock.behind.load(Ordering::SeqCst);
    if behind & 1 == 1 {
        Nanos(behind >> 1)
    } else {
        Nanos(behind >> 1) + ledger().global_delay(now)
    }
}

/// The calling thread is one of andweorc's own: it goes by real time.
pub(crate) fn read_real_here() {
    HERE.with(|here| here.reads_real.set(true));
}

/// Calls `f`, which reads the clock for andweorc's own use: it sees real time, and where the thread
/// is in a driver is not told by that.
pub fn by_real_time<R>(f: impl FnOnce() -> R) -> R {
    let before = HERE.with(|here| here.reads_real.replace(true));
    let result = f();
    HERE.with(|here| here.reads_real.set(before));
    result
}

/// Whether the calling thread is one of andweorc's own.
pub(crate) fn reads_real() -> bool {
    HERE.with(|here| here.reads_real.get())
}

/// While this lives the clock runs as fast as real time.
#[derive(Debug)]
pub(crate) struct Frozen(());

/// Lets the clock run as fast as real time, although D is about to grow. Nothing may be delayed at
/// this moment.
pub(crate) fn freeze(now: Real) -> Frozen {
    let behind = process().program_clock.behind.load(Ordering::SeqCst) >> 1;
    process()
        .program_clock
        .behind
        .store((behind + ledger().global_delay(now).0) << 1 | 1, Ordering::SeqCst);
    Frozen(())
}

impl Drop for Frozen {
    /// D grows no more.
    fn drop(&mut self) {
        let behind = process().program_clock.behind.load(Ordering::SeqCst) >> 1;
        let owed = ledger().global_delay(clock::now());
        process().program_clock.behind.store((behind - owed.0) << 1, Ordering::SeqCst);
    }
}

/// The calling thread has waited for events, and got those that there are.
pub fn driver_returned() {
    HERE.with(|here| here.driver.set(Driver::Events));
}

/// The calling thread is about to poll a task: what it does from here on is not the driver's.
#[inline]
pub fn driver_is_left() {
    HERE.with(|here| here.driver.set(Driver::Unknown));
}

/// Whether what the calling thread wakes, in nobody's name, it wakes for a timer. False where the
/// program's clock does not come by here.
pub fn noticed_a_timer() -> bool {
    HERE.with(|here| here.driver.get()) == Driver::Timers
}

/// Whether the calling thread wakes for a [timer](noticed_a_timer) that goes by the virtual clock.
pub fn noticed_a_virtual_timer() -> bool {
    noticed_a_timer() && is_virtual()
}

/// Whether the program's clock is behind by all that is owed at the moment.
pub fn is_virtual() -> bool {
    is_on() && process().program_clock.behind.load(Ordering::SeqCst) & 1 == 0
}

/// A time as the C library has it. One beyond 292 years is as late as can be.
pub fn from_timespec(time: &timespec) -> Real {
    Real(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec))
}

/// A time on the program's clock, as the C library has it.
pub fn to_timespec(time: Virtual) -> timespec {
    timespec { tv_sec: time.0.div_euclid(1_000_000_000), tv_nsec: time.0.rem_euclid(1_000_000_000) }
}
