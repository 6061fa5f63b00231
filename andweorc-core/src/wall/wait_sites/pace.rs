//! Which waits of a thread are sampled: all of them while they are few, and else a part, by chance.

use crate::time::{Nanos, Real};

/// Waits are counted over so long.
const WINDOW: Nanos = Nanos(100_000_000);

/// About so many are sampled in that time.
const IN_A_WINDOW: u32 = 20;

/// Never more than this are.
const MOST: u32 = 2 * IN_A_WINDOW;

/// A sample stands for no more than 2 to the power of this.
const MAX_SHIFT: u32 = 20;

/// The waits that begin on one thread.
#[derive(Debug)]
pub(crate) struct Pace {
    window: Real,
    seen: u32,
    taken: u32,
    /// One of 2 to the power of this is sampled.
    shift: u32,
    /// State of the draws.
    state: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new()
    }
}

impl Pace {
    pub(in crate::wall) const fn new() -> Pace {
        Pace { window: Real(0), seen: 0, taken: 0, shift: 0, state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Whether a wait is sampled that begins at `now`: the power of 2 that says for how many it
    /// stands then.
    pub(super) fn draw(&mut self, now: Real) -> Option<u32> {
        if now - self.window >= WINDOW {
            let many = self.seen.div_ceil(IN_A_WINDOW).max(1).next_power_of_two();
            self.shift = many.trailing_zeros().min(MAX_SHIFT);
            (self.window, self.seen, self.taken) = (now, 0, 0);
        }
        self.seen = self.seen.saturating_add(1);
        // Marsaglia's xorshift of 64 bits.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let is_drawn = self.state >> 32 & ((1 << self.shift) - 1) == 0;
        if !is_drawn || self.taken >= MOST {
            return None;
        }
        self.taken += 1;
        Some(self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many waits in one window are sampled, and for how many these stand.
    fn window(pace: &mut Pace, number: i64, waits: u64) -> (u64, u64) {
        let at = |wait: u64| Real(number * WINDOW.0 + wait as i64);
        let drawn: Vec<u32> = (0..waits).filter_map(|wait| pace.draw(at(wait))).collect();
        (drawn.len() as u64, drawn.iter().map(|shift| 1 << shift).sum())
    }

    #[test]
    fn few_waits_are_all_sampled_and_of_many_about_as_many_as_wanted() {
        let pace = &mut Pace::new();
        assert_eq!(window(pace, 1, 15), (15, 15));
        // Nobody knew that there would be many.
        assert_eq!(window(pace, 2, 10_000), (u64::from(MOST), u64::from(MOST)));
        let windows = 400;
        let all = (0..windows).map(|at| window(pace, 3 + at, 10_000));
        let (taken, stood_for) = all.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let windows = windows as u64;
        assert!(taken <= windows * u64::from(IN_A_WINDOW), "{taken}");
        assert!(stood_for.abs_diff(windows * 10_000) < windows * 1_000, "{stood_for}");
    }
}
