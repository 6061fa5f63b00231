//! Judgement of a change: regressed, improved, unchanged, inconclusive or erratic.

use crate::compare::clusters::Interval;
use serde::Serialize;

/// Judgement of a change, given the limit from which on a change counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Worse: the interval lies on the worse side of zero, and the change is at least the limit.
    Regressed,
    /// Better: the interval lies on the better side of zero, and the change is at least the limit.
    Improved,
    /// The whole interval lies within the limit.
    Unchanged {
        /// The change is no larger than this, either way: the end of the interval that is farther
        /// from zero, % or points.
        bound: f64,
    },
    /// Neither is shown: more runs, or longer ones, would tell.
    Inconclusive,
    /// Neither is shown, and one side varies so much that the reason has to be found first: several
    /// modes, most often.
    Erratic {
        /// Standard deviation of the side that varies more, % or points.
        scatter: f64,
    },
}

/// Terms by which a change is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// From which change on it counts, % or points.
    pub(crate) limit: f64,
    /// Whether more is worse.
    pub(crate) more_is_worse: bool,
    /// From which standard deviation on a side is erratic, % or points.
    pub(crate) erratic: f64,
}

/// How sure the data are apart from the interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Standard deviation of the side that varies more, in the unit of the limit.
    pub(crate) scatter: f64,
    /// There is but one run on a side: what scatters is then no noise around one value.
    pub(crate) single_run: bool,
    /// The change is no chance find among many.
    pub(crate) discovered: bool,
}

impl Question {
    /// The state of a change with the interval from `low` to `high`.
    pub(crate) fn answer(&self, change: f64, low: f64, high: f64, evidence: Evidence) -> State {
        let erratic = evidence.scatter > self.erratic;
        if erratic && evidence.single_run {
            State::Erratic { scatter: evidence.scatter }
        } else if low >= -self.limit && high <= self.limit {
            State::Unchanged { bound: low.abs().max(high.abs()) }
        } else if evidence.discovered && change.abs() >= self.limit && (low > 0.0 || high < 0.0) {
            if (change > 0.0) == self.more_is_worse { State::Regressed } else { State::Improved }
        } else if erratic {
            State::Erratic { scatter: evidence.scatter }
        } else {
            State::Inconclusive
        }
    }
}

impl Interval {
    /// The ends, each taken through `unit`.
    pub(crate) fn ends(&self, unit: impl Fn(f64) -> f64) -> (f64, f64) {
        (unit(self.value - self.half), unit(self.value + self.half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEADY: Evidence = Evidence { scatter: 3.0, single_run: true, discovered: true };
    const QUESTION: Question = Question { limit: 5.0, more_is_worse: false, erratic: 15.0 };

    fn answer(change: f64, half: f64, evidence: Evidence) -> State {
        QUESTION.answer(change, change - half, change + half, evidence)
    }

    #[test]
    fn a_change_needs_confidence_and_size() {
        assert_eq!(answer(-10.0, 4.0, STEADY), State::Regressed);
        assert_eq!(answer(10.0, 4.0, STEADY), State::Improved);
        assert_eq!(answer(-10.0, 11.0, STEADY), State::Inconclusive, "no confidence");
        assert_eq!(answer(-4.0, 3.0, STEADY), State::Inconclusive, "no size, but not within 5");
        assert_eq!(answer(-3.0, 1.5, STEADY), State::Unchanged { bound: 4.5 });
        let latency = Question { more_is_worse: true, ..QUESTION };
        assert_eq!(latency.answer(10.0, 6.0, 14.0, STEADY), State::Regressed);
        let chance = Evidence { discovered: false, ..STEADY };
        assert_eq!(answer(-10.0, 4.0, chance), State::Inconclusive);
    }

    #[test]
    fn scattered_change_is_erratic_unless_runs_settle_it() {
        let one = Evidence { scatter: 20.0, ..STEADY };
        assert_eq!(answer(-10.0, 4.0, one), State::Erratic { scatter: 20.0 });
        let several = Evidence { single_run: false, ..one };
        assert_eq!(answer(-10.0, 4.0, several), State::Regressed);
        assert_eq!(answer(-10.0, 11.0, several), State::Erratic { scatter: 20.0 });
    }
}
