//! Clocks of one request that go slower the more spans share its time.

use crate::time::Real;
use crate::wall::stacks::ns;
use std::collections::VecDeque;

/// So many bends of the waiting clock are remembered. Where a wait is longer than they reach back,
/// its parts are told apart as if the clock had gone evenly before.
const MAX_BENDS: usize = 64;

/// A moment of a request and what the clock of waits told then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) at: Real,
    pub(super) told: f64,
}

/// Clocks that tell how much of the time of a request one part of it had that was running, or
/// waiting, all the time: each moment is that of what runs, in equal parts, or else of what waits.
#[derive(Debug)]
pub(super) struct Shares {
    now: Real,
    running: f64,
    waiting: f64,
    /// Where the clock of waits changed its pace.
    bends: VecDeque<Mark>,
    pace: f64,
}

impl Shares {
    pub(super) fn new(now: Real) -> Shares {
        Shares { now, running: 0.0, waiting: 0.0, bends: VecDeque::new(), pace: 0.0 }
    }

    /// Goes on to `now`, while so many parts ran and so many waited. Returns the time that is
    /// nobody's, ns. A moment that has passed already, by the clock of another thread, is none.
    pub(super) fn advance(&mut self, now: Real, running: u32, waiting: u32) -> f64 {
        let stretch = ns(now - self.now);
        if stretch == 0.0 {
            return 0.0;
        }
        let pace = if running > 0 || waiting == 0 { 0.0 } else { 1.0 / f64::from(waiting) };
        if pace != self.pace {
            if self.bends.len() == MAX_BENDS {
                self.bends.pop_front();
            }
            self.bends.push_back(self.mark());
            self.pace = pace;
        }
        self.now = now;
        self.waiting += stretch * pace;
        if running > 0 {
            self.running += stretch / f64::from(running);
        }
        if running == 0 && waiting == 0 { stretch } else { 0.0 }
    }

    /// The clock of what runs.
    pub(super) fn running(&self) -> f64 {
        self.running
    }

    /// This moment.
    pub(super) fn mark(&self) -> Mark {
        Mark { at: self.now, told: self.waiting }
    }

    /// The clock of waits at a moment between two marks.
    pub(super) fn told_at(&self, at: Real, from: Mark, until: Mark) -> f64 {
        let within = |mark: &&Mark| from.at < mark.at && mark.at < until.at;
        let before = self.bends.iter().filter(within).rfind(|bend| bend.at <= at).unwrap_or(&from);
        let after = self.bends.iter().filter(within).find(|bend| bend.at > at).unwrap_or(&until);
        let whole = ns(after.at - before.at);
        if at <= before.at || whole == 0.0 {
            return before.told;
        }
        let part = (ns(at - before.at) / whole).min(1.0);
        before.told + part * (after.told - before.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_of_waits_stops_while_something_runs_and_is_slower_for_two() {
        let mut shares = Shares::new(Real(0));
        let from = shares.mark();
        assert_eq!(shares.advance(Real(10), 0, 1), 0.0);
        assert_eq!(shares.advance(Real(30), 2, 1), 0.0);
        assert_eq!(shares.advance(Real(50), 0, 2), 0.0);
        assert_eq!(shares.advance(Real(40), 0, 2), 0.0, "passed already");
        assert_eq!(shares.advance(Real(57), 0, 0), 7.0, "nobody's");
        assert_eq!(shares.running(), 10.0);
        let until = shares.mark();
        assert_eq!(until, Mark { at: Real(57), told: 20.0 });
        let told = [0, 5, 10, 20, 30, 40, 50, 57].map(|at| shares.told_at(Real(at), from, until));
        assert_eq!(told, [0.0, 5.0, 10.0, 10.0, 10.0, 15.0, 20.0, 20.0]);
    }
}
