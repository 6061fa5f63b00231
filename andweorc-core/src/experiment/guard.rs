//! Bounds on an experiment: what it may do to the program before it is ended early.
//!
//! The thread that looks for lagging threads looks at the experiment too. It ends
//!
//! - one that **slows** the program by more than a stated factor F. Nobody pauses for longer than D
//!   grows, so that the program is slowed by `real / (real - delay)` at most, and that stays below
//!   F while `delay / real <= 1 - 1/F`. What D rises by at once, beyond the time that passes, is
//!   not the target's doing, but the credit of somebody whose pause ended late, on a machine that
//!   had no processor for it: of that a lump is counted;
//! - one in which **no point is hit** for much longer than ever in the baselines;
//! - one, or a baseline, in which the program **did not run**: it was stopped (SIGSTOP, a
//!   debugger), or had no processor. Between two looks D grows for [`MAX_GAP`] at most
//!   ([`Ledger::known_until`](crate::ledger::Ledger::known_until)), so that nobody ever pays for
//!   the stop.
//!
//! An experiment that was ended early is discarded: its rates are of no use, and a rate that was
//! only kept when it was good would be a biased one.

use crate::experiment::stop::Stop;
use crate::point::points;
use crate::sync::Mutex;
use crate::thread::ledger;
use crate::time::{Nanos, Real};
use std::fmt;
use std::sync::Arc;

/// A program in which nobody has looked for this long did not run.
const MAX_GAP: Nanos = Nanos::from_millis(100);

/// Delay that any experiment may cost beyond its share: D grows in lumps, of this size at most.
const MAX_LUMP: Nanos = Nanos::from_millis(20);

/// Overshoot of pauses, as a share of the time.
const OVERSHOOT: f64 = 0.02;

/// How often hits are counted.
const COUNT_EVERY: Nanos = Nanos::from_millis(100);

/// A program may always do nothing for this long.
const MIN_PATIENCE: Nanos = Nanos::from_millis(1000);

/// How many times longer than ever in the last baseline nothing may be hit.
const PATIENCE: i64 = 4;

/// Why an experiment was ended early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// The program did not run for so long.
    Stopped(Nanos),
    /// The experiment slowed the program by more than this factor, the most that is allowed.
    TooSlow(f64),
    /// No point was hit for so long.
    NoProgress(Nanos),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Stopped(gap) => {
                write!(f, "the program did not run for {:.1} s", gap.as_secs_f64())
            }
            Cut::TooSlow(factor) => {
                write!(f, "it slowed the program by more than a factor of {factor}")
            }
            Cut::NoProgress(gap) => write!(f, "no point was hit for {:.1} s", gap.as_secs_f64()),
        }
    }
}

/// The guard of one [`Experimenter`](crate::experiment::Experimenter).
#[derive(Debug)]
pub(crate) struct Guard {
    stop: Arc<Stop>,
    state: Mutex<GuardState>,
}

#[derive(Debug)]
struct GuardState {
    max_slowdown: f64,
    /// How long nothing may be hit, once a baseline tells.
    patience: Option<Nanos>,
    held: Option<Watched>,
    /// Why the last experiment was ended early.
    cut: Option<Cut>,
}

/// The experiment that is held.
#[derive(Clone, Copy, Debug)]
struct Watched {
    baseline: bool,
    begun: Real,
    /// D at the last look.
    owed: Nanos,
    /// By how much it grew, as far as in the time that passed it could.
    delay: Nanos,
    /// By how much more it could have grown.
    spare: Nanos,
    looked: Real,
    counted: Real,
    hits: u64,
    /// When `hits` rose last.
    hit: Real,
    /// The longest time without a hit.
    longest: Nanos,
}

impl Guard {
    pub(crate) fn new(stop: Arc<Stop>, max_slowdown: f64) -> Guard {
        let state = GuardState { max_slowdown, patience: None, held: None, cut: None };
        Guard { stop, state: Mutex::new(state) }
    }

    pub(crate) fn set_max_slowdown(&self, factor: f64) {
        self.state.lock().max_slowdown = factor;
    }

    /// An experiment begins.
    pub(crate) fn begin(&self, baseline: bool, now: Real) {
        let mut state = self.state.lock();
        ledger().known_until(Real::NEVER);
        state.cut = None;
        state.held = Some(Watched::new(baseline, now, ledger().global_delay(now), hits()));
    }

    /// Ends the experiment that is held.
    pub(crate) fn end(&self, now: Real) {
        let mut state = self.state.lock();
        let Some(mut held) = state.held.take() else { return };
        ledger().known_until(Real::NEVER);
        if state.cut.is_none() {
            // When a stopped program goes on, this may come before the next look.
            state.cut = held.stopped(now);
        }
        if held.baseline && state.cut.is_none() {
            let longest = held.longest.max(now - held.hit);
            state.patience = Some(Nanos(longest.0.saturating_mul(PATIENCE)).max(MIN_PATIENCE));
        }
    }

    /// Why the last experiment was ended early, if it was.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.state.lock().cut
    }

    /// Looks at the experiment that is held, every few ms.
    pub(crate) fn look(&self, now: Real) {
        let mut state = self.state.lock();
        let GuardState { max_slowdown, patience, held: Some(held), cut: None } = &mut *state else {
            return;
        };
        let hits = (now - held.counted >= COUNT_EVERY).then(hits);
        let cut = held.look(now, ledger().global_delay(now), hits, *max_slowdown, *patience);
        if cut.is_some() {
            // First of all the delays stop, then the one who holds it is told.
            ledger().end(now);
            state.cut = cut;
            self.stop.cut();
        } else {
            ledger().known_until(now + MAX_GAP);
        }
    }
}

/// Hits of all points.
fn hits() -> u64 {
    points().iter().map(|point| point.count()).sum()
}

impl Watched {
    fn new(baseline: bool, now: Real, owed: Nanos, hits: u64) -> Watched {
        let zero = Nanos::ZERO;
        let [looked, counted, hit] = [now; 3];
        let [delay, spare, longest] = [zero; 3];
        Watched { baseline, begun: now, owed, delay, spare, looked, counted, hits, hit, longest }
    }

    /// By how much D has grown by itself since the experiment began.
    fn delay(&mut self, now: Real, owed: Nanos) -> Nanos {
        self.spare = self.spare.min(MAX_LUMP) + (now - self.looked);
        let grown = (owed - self.owed).min(self.spare);
        self.spare -= grown;
        self.delay += grown;
        self.owed = owed;
        self.delay
    }

    /// Whether the program did not run since the last look.
    fn stopped(&mut self, now: Real) -> Option<Cut> {
        let since = now - self.looked;
        self.looked = now;
        (since > MAX_GAP).then_some(Cut::Stopped(since))
    }

    /// Whether it must be ended, by what is seen now: D, and the hits of all points when they were
    /// counted.
    fn look(
        &mut self,
        now: Real,
        owed: Nanos,
        hits: Option<u64>,
        max_slowdown: f64,
        patience: Option<Nanos>,
    ) -> Option<Cut> {
        let (real, delay) = (now - self.begun, self.delay(now, owed));
        let stopped = self.stopped(now);
        if stopped.is_some() {
            return stopped;
        }
        let share = 1.0 - 1.0 / max_slowdown + OVERSHOOT;
        if delay.0 as f64 > share * real.0 as f64 + MAX_LUMP.0 as f64 {
            return Some(Cut::TooSlow(max_slowdown));
        }
        let hits = hits?;
        self.counted = now;
        let idle = now - self.hit;
        if hits > self.hits {
            self.longest = self.longest.max(idle);
            (self.hits, self.hit) = (hits, now);
        } else if !self.baseline && patience.is_some_and(|patience| idle > patience) {
            return Some(Cut::NoProgress(idle));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = Nanos::from_millis(2);

    /// Looks every period for `seconds`, at a D that grows by `share` of the time and at `hits` of
    /// each instant.
    fn look_for(
        held: &mut Watched,
        seconds: i64,
        share: f64,
        patience: Option<Nanos>,
        hits: impl Fn(i64) -> u64,
    ) -> Option<(f64, Cut)> {
        let begun = held.begun;
        (1..=seconds * 500).find_map(|i| {
            let now = begun + Nanos(PERIOD.0 * i);
            let owed = Nanos((share * (now - begun).0 as f64) as i64);
            let counted = (now - held.counted >= COUNT_EVERY).then(|| hits(now.0 / 1_000_000));
            let cut = held.look(now, owed, counted, 2.0, patience)?;
            Some(((now - begun).as_secs_f64(), cut))
        })
    }

    fn held(baseline: bool) -> Watched {
        Watched::new(baseline, Real(0), Nanos::ZERO, 0)
    }

    #[test]
    fn delays_up_to_the_factor_are_allowed_and_no_more() {
        assert_eq!(look_for(&mut held(false), 20, 0.5, None, |ms| ms as u64), None);
        let (after, cut) = look_for(&mut held(false), 20, 0.75, None, |ms| ms as u64).unwrap();
        assert_eq!(cut, Cut::TooSlow(2.0));
        assert!(after < 0.1, "{after} s");
    }

    #[test]
    fn pause_overruns_cut_an_experiment_only_when_frequent() {
        let late = |after: i64, every: i64| {
            let mut held = held(false);
            let looks = (1..=5000).map(|i| (Real(PERIOD.0 * i), i));
            let mut owed = Nanos::ZERO;
            looks.into_iter().find_map(|(now, i)| {
                owed += Nanos(PERIOD.0 / 4);
                if i >= after && (i - after) % every == 0 {
                    owed += Nanos::from_millis(200);
                }
                held.look(now, owed, None, 2.0, None)
            })
        };
        assert_eq!(late(10, 150), None, "each 300 ms");
        // Where it goes on and on the program does hardly anything.
        assert_eq!(late(10, 10), Some(Cut::TooSlow(2.0)));
    }

    #[test]
    fn an_experiment_without_progress_is_ended_and_a_baseline_is_not() {
        let patience = Some(Nanos::from_millis(1500));
        let until_a_second = |ms: i64| ms.min(1000) as u64;
        let (after, cut) = look_for(&mut held(false), 20, 0.1, patience, until_a_second).unwrap();
        assert!(matches!(cut, Cut::NoProgress(_)) && (2.5..2.8).contains(&after), "{after} s");
        assert_eq!(look_for(&mut held(true), 20, 0.0, patience, until_a_second), None);
        // Nothing is known of the program before the first baseline.
        assert_eq!(look_for(&mut held(false), 20, 0.1, None, until_a_second), None);
        // Slow is not stuck.
        assert_eq!(look_for(&mut held(false), 20, 0.1, patience, |ms| ms as u64 / 1400), None);
    }

    #[test]
    fn a_gap_between_looks_is_a_stop() {
        let mut held = held(true);
        assert_eq!(held.look(Real(2_000_000), Nanos::ZERO, None, 2.0, None), None);
        let later = Real(2_000_000) + Nanos::from_millis(2500);
        let cut = held.look(later, Nanos::ZERO, None, 2.0, None).unwrap();
        assert_eq!(cut, Cut::Stopped(Nanos::from_millis(2500)));
        assert_eq!(cut.to_string(), "the program did not run for 2.5 s");
    }

    #[test]
    fn a_stop_is_seen_also_where_the_experiment_ends_before_the_next_look() {
        let end_after = |length: Nanos| {
            let guard = Guard::new(Arc::default(), 2.0);
            guard.begin(true, Real(0));
            guard.end(Real(0) + length);
            guard.cut()
        };
        let stop = Nanos::from_millis(2500);
        assert_eq!(end_after(stop), Some(Cut::Stopped(stop)));
        assert_eq!(end_after(PERIOD), None);
    }
}
