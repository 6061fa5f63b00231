//! The units of the two clocks: real time, virtual time and the spans between instants.
//!
//! Everything is a whole number of nanoseconds in an `i64` (292 years). The newtypes exist because
//! real and virtual instants meet in almost every line of the ledger and must never be
//! subtracted from one another by accident: the only way from one to the other is through
//! a delay.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// A signed stretch of time in ns: a delay, a debt (positive) or a credit (negative).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);

/// An instant on the real clock, CLOCK_MONOTONIC, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Real(pub i64);

/// An instant on a virtual clock, in ns: a real instant less the delay taken by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Virtual(pub i64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);

    /// `us` microseconds.
    pub const fn from_micros(us: i64) -> Nanos {
        Nanos(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: i64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// Converts to a [`Duration`] of the same length; a negative length becomes zero.
    pub fn to_duration(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }

    /// Length in seconds, for rates and for people.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    /// Saturates at 292 years.
    fn from(duration: Duration) -> Nanos {
        Nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Real {
    /// Farther in the future than any run: the neutral element of a minimum.
    pub const NEVER: Real = Real(i64::MAX);

    /// The virtual instant of a participant that has taken `delay` by now.
    pub fn less(self, delay: Nanos) -> Virtual {
        Virtual(self.0 - delay.0)
    }
}

impl Virtual {
    /// Farther in the future than any run: the neutral element of a minimum.
    pub const NEVER: Virtual = Virtual(i64::MAX);

    /// The real instant at which the virtual clock of a participant shows this that has taken
    /// `delay` by then.
    pub fn more(self, delay: Nanos) -> Real {
        Real(self.0 + delay.0)
    }

    /// The delay that a participant has taken when its virtual clock shows this at the real instant
    /// `now`.
    pub fn delay_at(self, now: Real) -> Nanos {
        Nanos(now.0 - self.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Nanos) {
        self.0 -= other.0;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(parts: I) -> Nanos {
        Nanos(parts.map(|part| part.0).sum())
    }
}

impl Add<Nanos> for Real {
    type Output = Real;
    fn add(self, stretch: Nanos) -> Real {
        Real(self.0 + stretch.0)
    }
}

impl Sub<Nanos> for Real {
    type Output = Real;
    fn sub(self, stretch: Nanos) -> Real {
        Real(self.0 - stretch.0)
    }
}

impl Sub for Real {
    type Output = Nanos;
    fn sub(self, earlier: Real) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

impl Sub for Virtual {
    type Output = Nanos;
    fn sub(self, earlier: Virtual) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

impl fmt::Display for Nanos {
    /// In the largest unit that keeps the number above one: `12.5us`, `3ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{:?}", Duration::from_nanos(self.0.unsigned_abs()))
    }
}

/// A virtual speedup: the fraction by which the target's time shrinks, `0 <= s <= 1`, held in parts
/// per million so that the ledger's arithmetic is exact and the same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speedup(u32);

impl Speedup {
    /// No speedup: a baseline.
    pub const ZERO: Speedup = Speedup(0);

    const ONE: u32 = 1_000_000;

    /// The speedup of `fraction`, or `None` when it is not a number from 0 to 1.
    ///
    /// ```
    /// use andweorc_profile::time::Speedup;
    /// assert_eq!(Speedup::new(0.25).unwrap().fraction(), 0.25);
    /// assert!(Speedup::new(25.0).is_none());
    /// ```
    pub fn new(fraction: f64) -> Option<Speedup> {
        (0.0..=1.0)
            .contains(&fraction)
            .then(|| Speedup((fraction * f64::from(Self::ONE)).round() as u32))
    }

    /// Speedup as a fraction, 0 to 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE)
    }

    /// In parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// From parts per million; more than a million is taken as one million.
    pub const fn from_ppm(ppm: u32) -> Speedup {
        Speedup(if ppm > Self::ONE { Self::ONE } else { ppm })
    }

    /// The part of `stretch` that the speedup saves: what everything else owes.
    pub fn of(self, stretch: Nanos) -> Nanos {
        Nanos((i128::from(stretch.0) * i128::from(self.0) / i128::from(Self::ONE)) as i64)
    }

    /// The stretch of which the speedup [saves](Speedup::of) this, as far as there is one.
    pub fn whole(self, saved: Nanos) -> Nanos {
        Nanos((i128::from(saved.0) * i128::from(Self::ONE) / i128::from(self.0.max(1))) as i64)
    }
}

impl fmt::Display for Speedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.fraction() * 100.0)
    }
}
