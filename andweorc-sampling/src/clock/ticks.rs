//! CLOCK_MONOTONIC from the processor's time-stamp counter: a reading of 10 ns instead of 22, and
//! there are three in a poll and its wake.
//!
//! A thread remembers one reading of both, its anchor, and for a millisecond after it adds the
//! ticks since to it. Then it anchors itself anew. So what it says never drifts away from the
//! kernel's clock, whatever becomes of the counter. Between threads it is as exact as the anchors,
//! some tens of ns.
//!
//! # When the counter is used
//!
//! - Only on x86-64, where the kernel reads its own clock from this counter, which means that it
//!   found the counters of all processors to agree, and goes on to watch that; and where the
//!   processor says that they run at one rate (`constant_tsc`), in sleep too (`nonstop_tsc`). The
//!   kernel is asked again each second, since it drops a counter that it no longer trusts.
//! - Only while its rate is known: two measurements, one after the other, agree (`Rate`). A
//!   suspended machine, whose counter goes on while CLOCK_MONOTONIC stands still, a virtual one
//!   that moved to another host, or a kernel that changes its clock's speed makes them differ: then
//!   the kernel's clock is read until they agree again. Meanwhile no thread is off by more than one
//!   anchor serves.
//!
//! Elsewhere, and else, the kernel's clock is read each time.
//!
//! # Going back
//!
//! Within a thread time does not go back: an anchor that turns out to have been ahead of the
//! kernel's clock (by ns, since rates are never exact) makes the next one that much slower. Only
//! when it was ahead by more than [`MOST_AHEAD`] the counter has jumped, and time goes back to what
//! is right.

use crate::clock::monotonic;
use andweorc_profile::time::{Nanos, Real};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering, compiler_fence};

/// For how long an anchor serves.
const SERVES: Nanos = Nanos::from_millis(1);

/// By how much an anchor may have been ahead and be waited for.
const MOST_AHEAD: Nanos = Nanos::from_micros(100);

/// A reading whose two halves are farther apart, in ticks, was interrupted between them.
const CLOSE: u64 = 2_000;

/// Of a thread without an anchor: any stretch is longer than an anchor serves.
const NO_TICK: u64 = u64::MAX;

/// File that names the source from which the kernel reads its clock.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The kernel trusts the counter.
static TRUSTED: AtomicBool = AtomicBool::new(false);

/// How long a tick is: ns times 2^32; [`NO_TICK`] while that is not known.
static TICK: AtomicU64 = AtomicU64::new(NO_TICK);

/// When it is to be measured next, by whoever anchors then: real ns.
static NEXT: AtomicI64 = AtomicI64::new(0);

static RATE: Mutex<Rate> = Mutex::new(Rate { from: None, tick: NO_TICK });

/// A reading of both clocks at once.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    real: Real,
}

impl Reading {
    /// `None` when something came in between.
    fn take() -> Option<Reading> {
        let before = counter();
        let real = monotonic();
        let apart = counter().wrapping_sub(before);
        (apart <= CLOSE).then(|| Reading { ticks: before.wrapping_add(apart / 2), real })
    }
}

/// A thread's anchor, on one cache line.
#[repr(align(32))]
struct Anchor {
    ticks: Cell<u64>,
    real: Cell<Real>,
    /// How long a tick is, or [`NO_TICK`].
    tick: Cell<u64>,
    /// For how many ticks it serves; none without an anchor.
    serves: Cell<u64>,
}

crate::plain_thread_local! {
    // A signal handler may read the clock.
    static ANCHOR: Anchor = Anchor::new();
}

impl Anchor {
    const fn new() -> Anchor {
        Anchor {
            ticks: Cell::new(0),
            real: Cell::new(Real(0)),
            tick: Cell::new(NO_TICK),
            serves: Cell::new(0),
        }
    }

    /// The time when the counter stands at `ticks`, if the anchor still serves.
    #[inline]
    fn at(&self, ticks: u64) -> Option<Real> {
        let since = ticks.wrapping_sub(self.ticks.get());
        // While it serves, the product is less than `SERVES` times 2^32, 2^52.
        let passed = || Nanos((since.wrapping_mul(self.tick.get()) >> 32) as i64);
        (since < self.serves.get()).then(|| self.real.get() + passed())
    }

    /// Time since the anchor, ns. Very long when the counter went back.
    fn passed(&self, ticks: u64) -> u128 {
        let since = ticks.wrapping_sub(self.ticks.get());
        (u128::from(since) * u128::from(self.tick.get())) >> 32
    }

    /// Anchors anew, where a tick is now as long as `tick` says. Returns the time.
    fn renew(&self, now: Reading, tick: u64) -> Real {
        let ahead = self.ahead_of(now);
        let real = now.real + ahead;
        let tick = if tick == NO_TICK { NO_TICK } else { slower(tick, ahead) };
        // A signal handler in between finds no anchor.
        self.tick.set(NO_TICK);
        self.serves.set(0);
        compiler_fence(Ordering::SeqCst);
        self.real.set(real);
        self.ticks.set(now.ticks);
        compiler_fence(Ordering::SeqCst);
        self.tick.set(tick);
        self.serves.set(serves(tick));
        real
    }

    /// By how much what the thread was last told may be ahead of the kernel's clock.
    fn ahead_of(&self, now: Reading) -> Nanos {
        if self.tick.get() == NO_TICK {
            return Nanos::ZERO;
        }
        let passed = self.passed(now.ticks).min(SERVES.0 as u128);
        let ahead = (self.real.get() + Nanos(passed as i64)) - now.real;
        if ahead > MOST_AHEAD { Nanos::ZERO } else { ahead.max(Nanos::ZERO) }
    }
}

/// For how many ticks an anchor serves, when a tick is as long as `tick` says.
fn serves(tick: u64) -> u64 {
    if tick == NO_TICK { 0 } else { ((SERVES.0 as u64) << 32).div_ceil(tick) }
}

/// A tick by which an anchor that is `ahead` is right again as it ends.
fn slower(tick: u64, ahead: Nanos) -> u64 {
    let less = u128::from(tick) * ahead.0.unsigned_abs() as u128 / SERVES.0 as u128;
    tick - less as u64
}

/// How long a tick is, measured again and again.
#[derive(Debug)]
struct Rate {
    /// Where the measurement began that is under way.
    from: Option<Reading>,
    /// Length of a tick by the last measurement.
    tick: u64,
}

impl Rate {
    /// The first ones take this long: two readings that are each right within 50 ns give the rate
    /// within 5 ppm, 5 ns in [`SERVES`].
    const FIRST: Nanos = Nanos::from_millis(20);

    /// The others.
    const THEN: Nanos = Nanos::from_millis(1_000);

    /// They agree within 1/1000: a kernel that slews its clock changes it by half of that.
    const AGREE: u64 = 1_000;

    /// Between 10 GHz and 100 MHz.
    const PLAUSIBLE: std::ops::Range<u128> = (1 << 32) / 10..10 << 32;

    /// Goes on to `now`. When a measurement is over, returns how long a tick is, [`NO_TICK`] if
    /// that is not sure, and when to come again.
    fn measure(&mut self, now: Reading) -> Option<(u64, Real)> {
        let Some(from) = self.from else {
            self.from = Some(now);
            return Some((NO_TICK, now.real + Rate::FIRST));
        };
        let (real, ticks) = (now.real - from.real, now.ticks.wrapping_sub(from.ticks));
        if real < Rate::FIRST {
            return None;
        }
        let tick = ((real.0 as u128) << 32).checked_div(u128::from(ticks)).unwrap_or(0);
        let tick = if Rate::PLAUSIBLE.contains(&tick) { tick as u64 } else { NO_TICK };
        let agree = tick != NO_TICK && tick.abs_diff(self.tick) <= tick / Rate::AGREE;
        *self = Rate { from: Some(now), tick };
        Some(if agree { (tick, now.real + Rate::THEN) } else { (NO_TICK, now.real + Rate::FIRST) })
    }
}

/// Looks whether the counter can be used. The clock is right without this, and slower.
pub(super) fn start() {
    // Relaxed: who sees it late uses the kernel's clock until then.
    TRUSTED.store(is_steady() && is_source(), Ordering::Relaxed);
}

/// Whether the processors say that their counters run at one rate and never stop.
fn is_steady() -> bool {
    let Ok(processors) = fs::read_to_string("/proc/cpuinfo") else { return false };
    let flags = processors.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|flag| flags.split_whitespace().any(|known| known == *flag))
}

/// Whether the kernel reads its own clock from the counter. Allocates nothing: a signal handler may
/// come by here.
fn is_source() -> bool {
    let mut name = [0; 16];
    let read = File::open(SOURCE).and_then(|mut source| source.read(&mut name));
    read.is_ok_and(|length| name[..length].trim_ascii() == b"tsc")
}

/// Real time now. Not inlined: a request reads it in a dozen places, each of which would have a
/// cache line of code for it.
#[inline(never)]
pub(super) fn now() -> Real {
    ANCHOR.with(|anchor| anchor.at(counter()).unwrap_or_else(|| anchored(anchor)))
}

/// Runs `f`, which a signal handler consists of, and puts the anchor back: what was interrupted may
/// have read half of it.
pub(super) fn in_signal_handler(f: impl FnOnce()) {
    ANCHOR.with(|anchor| {
        let (ticks, real) = (anchor.ticks.get(), anchor.real.get());
        let (tick, serves) = (anchor.tick.get(), anchor.serves.get());
        f();
        anchor.ticks.set(ticks);
        anchor.real.set(real);
        anchor.tick.set(tick);
        anchor.serves.set(serves);
    });
}

/// Reads the kernel's clock, and anchors the calling thread if the counter can be used.
#[cold]
fn anchored(anchor: &Anchor) -> Real {
    // Relaxed, here and below: each of these is right by itself at any time.
    if !TRUSTED.load(Ordering::Relaxed) {
        return monotonic();
    }
    let Some(now) = Reading::take() else {
        // Interrupted: this once without an anchor.
        let now = Reading { ticks: counter(), real: monotonic() };
        return now.real + anchor.ahead_of(now);
    };
    if now.real.0 >= NEXT.load(Ordering::Relaxed) {
        measure(now);
    }
    anchor.renew(now, TICK.load(Ordering::Relaxed))
}

/// Goes on to measure how long a tick is, and looks whether the kernel still trusts the counter.
#[cold]
fn measure(now: Reading) {
    // Somebody else does; or a signal handler interrupted who does.
    let Ok(mut rate) = RATE.try_lock() else { return };
    let Some((tick, next)) = rate.measure(now) else { return };
    let trusted = is_source();
    TRUSTED.store(trusted, Ordering::Relaxed);
    TICK.store(if trusted { tick } else { NO_TICK }, Ordering::Relaxed);
    NEXT.store(next.0, Ordering::Relaxed);
}

#[inline]
fn counter() -> u64 {
    // SAFETY: reads a register; every x86-64 processor has it, and a kernel that forbids it has no
    // tsc as its clock source.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests;
