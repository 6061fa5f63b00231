//! Which experiment to hold next: where it narrows the ranking most.
//!
//! At first every (target, speedup) gets its turn, and the largest speedup, by which verdicts are,
//! [`PASSES`] times, in a new order each time, so that drift of the machine does not fall on one of
//! them. Then come the targets without a verdict,
//! the one first that will have it soonest: so most of them have one when the time is up. Last come
//! those whose effect is known least, until all are settled.
//!
//! Later too the largest speedup gets two turns of three.

use crate::target::Target;
use crate::time::Speedup;
use andweorc_profile::estimate::{Analysis, Verdict};

/// Turns of each target at its largest speedup before the estimates decide: one experiment makes no
/// verdict.
pub(crate) const PASSES: u32 = 2;

/// The share of a run's time that these turns take at most; with the rest the estimates decide.
const FIRST: f64 = 0.5;

/// One (target, speedup), and how often it was held undisturbed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    pub(crate) target: &'static Target,
    pub(crate) speedup: Speedup,
    held: u32,
}

impl Arm {
    /// A target at a speedup that was not held yet.
    pub(crate) fn new(target: &'static Target, speedup: Speedup) -> Arm {
        Arm { target, speedup, held: 0 }
    }
}

/// Knowledge of a target's effect so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Known {
    /// The target has a verdict, and its interval is narrow.
    Settled,
    /// The target has no verdict; so many more seconds would tell. Infinite when even that is
    /// unknown.
    Undecided(f64),
    /// The target has a verdict. Half the width of its interval, in points.
    Within(f64),
}

/// A target whose effect is known to within this, in points, needs no more experiments.
const NARROW: f64 = 1.0;

impl Known {
    /// Knowledge of a target by what the estimates say of it, if they say anything yet.
    pub(crate) fn of(analysis: Option<&Analysis>, target: &Target) -> Known {
        let record = target.to_record();
        let summary = analysis.and_then(|all| all.targets.iter().find(|it| it.is(&record)));
        match summary {
            None => Known::Undecided(f64::INFINITY),
            // More experiments would tell no more of a target that takes all time that there is.
            Some(it) if it.fills_time => Known::Settled,
            Some(it) => match it.verdict {
                Verdict::Inconclusive { more_seconds } => {
                    Known::Undecided(more_seconds.unwrap_or(f64::INFINITY))
                }
                Verdict::Nothing => Known::Settled,
                _ if it.half_width() <= NARROW => Known::Settled,
                _ => Known::Within(it.half_width()),
            },
        }
    }
}

/// The experiments of a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    arms: Vec<Arm>,
    random: fastrand::Rng,
    /// Turns of each arm, where the estimates decide nothing.
    fixed_passes: Option<u32>,
}

impl Plan {
    /// All targets at all speedups. The order is the same in every run with the same `seed`.
    pub(crate) fn new(targets: &[&'static Target], speedups: &[Speedup], seed: u64) -> Plan {
        let arms = targets
            .iter()
            .flat_map(|&target| {
                speedups.iter().map(move |&speedup| Arm { target, speedup, held: 0 })
            })
            .collect();
        Plan { arms, random: fastrand::Rng::with_seed(seed), fixed_passes: None }
    }

    /// Gives each target so many turns at each speedup, and then ends.
    pub(crate) fn with_fixed_passes(self, passes: u32) -> Plan {
        Plan { fixed_passes: Some(passes), ..self }
    }

    /// How many (target, speedup) there are.
    pub(crate) fn len(&self) -> usize {
        self.arms.len()
    }

    /// How many experiments a run should have time for.
    pub(crate) fn wanted(&self) -> u32 {
        let first: u32 = self.arms.iter().map(|arm| self.passes(arm)).sum();
        (f64::from(first) / FIRST).ceil() as u32
    }

    /// So often an arm gets its turn before the estimates decide.
    fn passes(&self, arm: &Arm) -> u32 {
        if let Some(passes) = self.fixed_passes {
            return passes;
        }
        let is_less = |it: &Arm| it.target.id() == arm.target.id() && it.speedup > arm.speedup;
        if self.arms.iter().any(is_less) { 1 } else { PASSES }
    }

    /// The next experiment; `None` when all targets are settled. `known` tells what is known of a
    /// target.
    pub(crate) fn next(&mut self, known: impl Fn(&Target) -> Known) -> Option<Arm> {
        let early = |arm: &&Arm| arm.held < self.passes(arm);
        if let Some(least) = self.arms.iter().filter(early).map(|arm| arm.held).min() {
            let due = self.arms.iter().filter(early).filter(|arm| arm.held == least);
            let due: Vec<Arm> = due.copied().collect();
            return self.random.choice(due);
        }
        if self.fixed_passes.is_some() {
            return None;
        }
        // Undecided ones before all others, then the most urgent.
        let urgency = |target: &Target| match known(target) {
            Known::Settled => None,
            Known::Undecided(seconds) => Some((true, -seconds)),
            Known::Within(half) => Some((false, half)),
        };
        let all = self.arms.iter().filter_map(|arm| Some((urgency(arm.target)?, arm)));
        let most = |((a, x), one): &((bool, f64), &Arm), ((b, y), other): &((bool, f64), &Arm)| {
            a.cmp(b).then(x.total_cmp(y)).then(other.held.cmp(&one.held))
        };
        let first = all.max_by(most)?.1;
        let of_target = || self.arms.iter().filter(|arm| arm.target.id() == first.target.id());
        let largest = of_target().max_by_key(|arm| arm.speedup)?;
        let least = of_target().min_by_key(|arm| arm.held)?;
        Some(if largest.held < 2 * least.held { *largest } else { *least })
    }

    /// Leaves out what can't be tested.
    pub(crate) fn leave_out(&mut self, out: Arm) {
        self.arms.retain(|arm| arm.target.id() != out.target.id() || arm.speedup != out.speedup);
    }

    /// Leaves out all targets that can't be tested any more.
    pub(crate) fn leave_out_all(&mut self, out: impl Fn(&Target) -> bool) {
        self.arms.retain(|arm| !out(arm.target));
    }

    /// Counts an experiment that can be used.
    pub(crate) fn count(&mut self, held: Arm) {
        for arm in &mut self.arms {
            if arm.target.id() == held.target.id() && arm.speedup == held.speedup {
                arm.held += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::target;
    use andweorc_profile::TargetKind;
    use std::collections::HashMap;

    fn plan() -> Plan {
        let targets = ["plan a", "plan b"].map(|name| target(TargetKind::Task, name, None, None));
        Plan::new(&targets, &[Speedup::from_ppm(250_000), Speedup::from_ppm(500_000)], 1)
    }

    #[test]
    fn everything_gets_its_passes_first() {
        let mut plan = plan();
        let mut held = HashMap::new();
        // Each of two targets once at the smaller speedup.
        for _ in 0..2 * (1 + PASSES) {
            let arm = plan.next(|_| Known::Settled).expect("passes are left");
            *held.entry((arm.target.name(), arm.speedup)).or_insert(0) += 1;
            plan.count(arm);
        }
        assert_eq!(held.len(), 4);
        let largest = Speedup::from_ppm(500_000);
        let is_due = |(&(_, speedup), &n): (&(&str, Speedup), &u32)| {
            n == if speedup == largest { PASSES } else { 1 }
        };
        assert!(held.iter().all(is_due), "{held:?}");
        assert!(plan.next(|_| Known::Settled).is_none());
    }

    #[test]
    fn fixed_passes_are_held_whatever_is_known() {
        let mut plan = plan().with_fixed_passes(3);
        for _ in 0..4 * 3 {
            let arm = plan.next(|_| Known::Settled).expect("passes are left");
            plan.count(arm);
        }
        assert!(plan.next(|_| Known::Undecided(1.0)).is_none());
    }

    #[test]
    fn discarded_experiment_is_repeated() {
        let mut plan = plan();
        for _ in 0..100 {
            assert!(plan.next(|_| Known::Settled).is_some());
        }
    }

    #[test]
    fn cell_left_out_of_the_plan_is_never_chosen_again() {
        let mut plan = plan();
        let out = plan.next(|_| Known::Settled).unwrap();
        plan.leave_out(out);
        assert_eq!(plan.len(), 3);
        for _ in 0..100 {
            let next = plan.next(|_| Known::Settled).unwrap();
            assert!(next.target.id() != out.target.id() || next.speedup != out.speedup);
        }
    }

    #[test]
    fn where_no_target_can_be_tested_any_more_there_is_no_next_experiment() {
        let mut plan = plan();
        plan.leave_out_all(|target| target.name() == "plan a");
        assert_eq!(plan.next(|_| Known::Within(1.0)).unwrap().target.name(), "plan b");
        plan.leave_out_all(|_| true);
        assert!(plan.next(|_| Known::Within(1.0)).is_none());
    }

    #[test]
    fn the_target_that_is_decided_soonest_goes_next_mostly_at_its_largest_speedup() {
        let mut plan = plan();
        while let Some(arm) = plan.next(|_| Known::Settled) {
            plan.count(arm);
        }
        let next = |plan: &mut Plan, a: Known, b: Known| {
            plan.next(|target| if target.name() == "plan a" { a } else { b }).unwrap()
        };
        let name = |a, b| next(&mut plan.clone(), a, b).target.name();
        assert_eq!(name(Known::Within(1.0), Known::Within(5.0)), "plan b");
        assert_eq!(name(Known::Undecided(1.0), Known::Undecided(5.0)), "plan a");
        assert_eq!(name(Known::Undecided(f64::INFINITY), Known::Within(5.0)), "plan a");
        assert_eq!(name(Known::Settled, Known::Within(0.1)), "plan b");
        let mut held = [0, 0];
        for _ in 0..30 {
            let arm = next(&mut plan, Known::Undecided(1.0), Known::Settled);
            held[usize::from(arm.speedup == Speedup::from_ppm(500_000))] += 1;
            plan.count(arm);
        }
        assert!((18..=22).contains(&held[1]), "{held:?}");
    }
}
