//! Which target comes next in a run of several programs: all targets of all programs at all
//! speedups, round after round, each round in another order.

use andweorc_profile::coordination::{KnownTarget, Tested};
use andweorc_profile::time::Speedup;

/// A target of one service at one speedup.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arm {
    pub(crate) tested: Tested,
    pub(crate) speedup: Speedup,
}

/// How often an arm was held so that it can be used.
#[derive(Debug)]
struct Count {
    arm: Arm,
    held: u32,
    /// A guard refused it.
    is_refused: bool,
}

/// The arms of a run. Those of a service that is gone wait until it comes back.
#[derive(Debug)]
pub(crate) struct Plan {
    counts: Vec<Count>,
    speedups: Vec<Speedup>,
    random: fastrand::Rng,
}

impl Plan {
    /// A plan without targets. The order is the same in each run with the same `seed`.
    pub(crate) fn new(speedups: Vec<Speedup>, seed: u64) -> Plan {
        Plan { counts: Vec::new(), speedups, random: fastrand::Rng::with_seed(seed) }
    }

    /// Adds the targets of a service; ones that it had before have new ids.
    pub(crate) fn add(&mut self, service: &str, targets: Vec<KnownTarget>) {
        for target in targets {
            for &speedup in &self.speedups {
                let tested = Tested { service: service.to_owned(), target: target.clone() };
                let arm = Arm { tested, speedup };
                match self.counts.iter_mut().find(|it| is_alike(&it.arm, &arm)) {
                    Some(known) => known.arm = arm,
                    None => self.counts.push(Count { arm, held: 0, is_refused: false }),
                }
            }
        }
    }

    /// How many arms there are.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns the next arm of a service that is there, one of those that were held least; `None`
    /// where there is none.
    pub(crate) fn next(&mut self, is_there: impl Fn(&str) -> bool) -> Option<Arm> {
        let left = |it: &&Count| !it.is_refused && is_there(&it.arm.tested.service);
        let least = self.counts.iter().filter(left).map(|it| it.held).min()?;
        let due = self.counts.iter().filter(left).filter(|it| it.held == least);
        let due: Vec<&Count> = due.collect();
        self.random.choice(due).map(|it| it.arm.clone())
    }

    /// Counts an arm that was held so that it can be used.
    pub(crate) fn count(&mut self, arm: &Arm) {
        self.each(arm, |it| it.held += 1);
    }

    /// Leaves out an arm that a guard refused.
    pub(crate) fn refuse(&mut self, arm: &Arm) {
        self.each(arm, |it| it.is_refused = true);
    }

    fn each(&mut self, arm: &Arm, change: impl Fn(&mut Count)) {
        self.counts.iter_mut().filter(|it| is_alike(&it.arm, arm)).for_each(change);
    }
}

/// Whether two arms are the same but for the target's id, which is another one when a service has
/// been started again.
fn is_alike(a: &Arm, b: &Arm) -> bool {
    let id = a.tested.target.id;
    let other =
        Tested { target: KnownTarget { id, ..b.tested.target.clone() }, ..b.tested.clone() };
    a.speedup == b.speedup && a.tested == other
}

#[cfg(test)]
mod tests {
    use super::*;
    use andweorc_profile::TargetKind;

    fn known(id: u32, name: &str) -> KnownTarget {
        KnownTarget { id, kind: TargetKind::Span, name: name.into(), file: None, line: None }
    }

    fn plan() -> Plan {
        let mut plan = Plan::new(vec![Speedup::from_ppm(250_000), Speedup::from_ppm(500_000)], 1);
        plan.add("a", vec![known(1, "x"), known(2, "y")]);
        plan.add("b", vec![known(1, "x")]);
        plan
    }

    #[test]
    fn every_arm_has_its_turn_in_each_round() {
        let mut plan = plan();
        assert_eq!(plan.len(), 6);
        for _ in 0..3 {
            let mut round = Vec::new();
            for _ in 0..6 {
                let arm = plan.next(|_| true).unwrap();
                assert!(!round.contains(&arm), "{arm:?}");
                plan.count(&arm);
                round.push(arm);
            }
        }
    }

    #[test]
    fn arms_that_are_refused_or_of_services_that_are_gone_are_not_chosen() {
        let mut plan = plan();
        let refused = plan.next(|service| service == "b").unwrap();
        assert_eq!(refused.tested.service, "b");
        plan.refuse(&refused);
        for _ in 0..20 {
            let next = plan.next(|service| service == "b").unwrap();
            assert_ne!(next, refused);
            plan.count(&next);
        }
        assert_eq!(plan.next(|_| false), None);
    }

    #[test]
    fn a_service_that_comes_back_has_its_counts_and_new_ids() {
        let mut plan = plan();
        let arm = plan.next(|service| service == "b").unwrap();
        plan.refuse(&arm);
        plan.add("b", vec![known(9, "x")]);
        assert_eq!(plan.len(), 6);
        let left = plan.next(|service| service == "b").unwrap();
        assert_eq!(left.tested.target.id, 9);
        assert_ne!(left.speedup, arm.speedup);
    }
}
