//! CLOCK_MONOTONIC from the processor's time-stamp counter: a reading of 10 ns instead of 22, and there are three in a poll and its wake.
//!
//! A thread remembers one reading of both, its anchor, and for a millisecond after it adds the ticks since to it. Then it anchors itself
//! anew. So the two clocks never drift apart, whatever becomes of the counter: a suspended machine, a virtual one that moved, a kernel that
//! slews its clock. Within a thread time never goes back; between threads it is as exact as the anchors, some tens of ns.
//!
//! Only where the kernel itself reads its clock from this counter, on x86-64; elsewhere the kernel's clock is read each time.

use crate::clock::monotonic;
use crate::time::{Nanos, Real};
use std::cell::Cell;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering, compiler_fence};

/// For how long an anchor serves.
const SERVES: Nanos = Nanos::from_millis(1);

/// The rate is measured over at least this stretch: two anchors that are each right within 50 ns give it within 5 ppm, 5 ns in [`SERVES`].
const MEASURED_OVER: Nanos = Nanos::from_millis(20);

/// How often it is measured anew.
const MEASURED_EVERY: Nanos = Nanos::from_millis(1_000);

/// An anchor whose two readings are farther apart was interrupted between them.
const CLOSE: u64 = 2_000;

/// The kernel trusts the counter.
static TRUSTED: AtomicBool = AtomicBool::new(false);

/// How long a tick is: ns times 2^32; 0 while that is not known.
static TICK: AtomicU64 = AtomicU64::new(0);

/// When [`TICK`] is to be measured next, by whoever anchors then.
static NEXT: AtomicI64 = AtomicI64::new(0);

/// The anchor from which it is measured.
static FROM: Mutex<Option<Anchor>> = Mutex::new(None);

/// A reading of both clocks at once.
#[derive(Clone, Copy)]
struct Anchor {
    ticks: u64,
    real: Real,
}

thread_local! {
    // No destructors: a signal handler may read the clock.
    static TICKS: Cell<u64> = const { Cell::new(0) };
    static REAL: Cell<Real> = const { Cell::new(Real(0)) };
    /// [`TICK`] as it was then; 0 where there is no anchor.
    static RATE: Cell<u64> = const { Cell::new(0) };
}

/// Looks whether the counter can be used. The clock is right without this, and slower.
pub(super) fn start() {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let trusted = fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc");
    // Relaxed: who sees it late uses the kernel's clock until then.
    TRUSTED.store(trusted, Ordering::Relaxed);
}

/// Real time now.
#[inline]
pub(super) fn now() -> Real {
    let rate = RATE.get();
    let since = counter().wrapping_sub(TICKS.get());
    let passed = (u128::from(since) * u128::from(rate)) >> 32;
    if rate != 0 && passed < SERVES.0 as u128 {
        REAL.get() + Nanos(passed as i64)
    } else {
        anchored()
    }
}

/// Reads the kernel's clock, and anchors the calling thread if the counter can be used.
#[cold]
fn anchored() -> Real {
    if !TRUSTED.load(Ordering::Relaxed) {
        return monotonic();
    }
    let before = counter();
    let real = monotonic();
    let apart = counter().wrapping_sub(before);
    if apart > CLOSE {
        return real;
    }
    let anchor = Anchor { ticks: before.wrapping_add(apart / 2), real };
    if real.0 >= NEXT.load(Ordering::Relaxed) {
        measure(anchor);
    }
    // The last anchor served up to, but not including, its end: time goes on from there.
    let real = if RATE.get() == 0 { real } else { real.max(REAL.get() + SERVES) };
    // A signal handler in between finds no anchor. The one that it makes itself is written over.
    RATE.set(0);
    compiler_fence(Ordering::SeqCst);
    REAL.set(real);
    TICKS.set(anchor.ticks);
    compiler_fence(Ordering::SeqCst);
    // Relaxed: any rate that was ever stored is right.
    RATE.set(TICK.load(Ordering::Relaxed));
    real
}

/// Measures how long a tick is, from the last measurement to `now`.
fn measure(now: Anchor) {
    // Somebody else does; or a signal handler interrupted who does.
    let Ok(mut from) = FROM.try_lock() else { return };
    let Some(first) = *from else {
        *from = Some(now);
        return;
    };
    let (real, ticks) = (now.real - first.real, now.ticks.wrapping_sub(first.ticks));
    if real < MEASURED_OVER {
        return;
    }
    *from = Some(now);
    let tick = ((real.0 as u128) << 32).checked_div(u128::from(ticks));
    // Between 10 GHz and 100 MHz: a counter that stood still or jumped is not believed until it is measured again.
    let tick = tick.and_then(|tick| u64::try_from(tick).ok());
    let tick = tick.filter(|tick| (1 << 32) / 10 < *tick && *tick < 10 << 32).unwrap_or(0);
    TICK.store(tick, Ordering::Relaxed);
    NEXT.store((now.real + MEASURED_EVERY).0, Ordering::Relaxed);
}

#[inline]
fn counter() -> u64 {
    // SAFETY: reads a register; every x86-64 processor has it, and a kernel that forbids it has no tsc as its clock source.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn follows_the_kernels_clock_and_never_goes_back() {
        start();
        let check = || {
            let mut last = now();
            let end = monotonic() + Nanos::from_millis(60);
            while monotonic() < end {
                let before = monotonic();
                let fast = now();
                let after = monotonic();
                assert!(fast >= last);
                last = fast;
                // A thread that was interrupted in between says nothing.
                if after - before < Nanos::from_micros(5) {
                    let off = (before - fast).max(fast - after);
                    assert!(off < Nanos::from_micros(3), "{off} off");
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(check);
            scope.spawn(check);
        });
        thread::sleep(Duration::from_millis(5));
        check();
    }
}
