//! Which experiment to hold next: where it narrows the ranking most.
//!
//! At first every (target, speedup) gets its turn [`PASSES`] times, in a new order each time, so that drift of the machine
//! does not fall on one of them. From then on the target whose effect is known least goes next, until all are settled.

use crate::target::Target;
use crate::time::Speedup;

/// Turns of every (target, speedup) before the estimates decide.
pub(crate) const PASSES: u32 = 3;

/// One (target, speedup), and how often it was held unspoiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) target: &'static Target,
    pub(crate) speedup: Speedup,
    held: u32,
}

impl Cell {
    /// A target at a speedup that was not held yet.
    pub(crate) fn new(target: &'static Target, speedup: Speedup) -> Cell {
        Cell { target, speedup, held: 0 }
    }
}

/// What is known of a target's effect by now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Known {
    /// Its verdict is certain and its interval narrow.
    Settled,
    /// Half the width of its interval, in points; infinite without one.
    Within(f64),
}

/// The experiments of a run.
#[derive(Debug)]
pub(crate) struct Plan {
    cells: Vec<Cell>,
    random: fastrand::Rng,
}

impl Plan {
    /// All targets at all speedups. The order is the same in every run with the same `seed`.
    pub(crate) fn new(targets: &[&'static Target], speedups: &[Speedup], seed: u64) -> Plan {
        let cells = targets
            .iter()
            .flat_map(|&target| {
                speedups.iter().map(move |&speedup| Cell { target, speedup, held: 0 })
            })
            .collect();
        Plan { cells, random: fastrand::Rng::with_seed(seed) }
    }

    /// How many (target, speedup) there are.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The next experiment; `None` when all targets are settled. `known` tells what is known of a target.
    pub(crate) fn next(&mut self, known: impl Fn(&Target) -> Known) -> Option<Cell> {
        let least = self.cells.iter().map(|cell| cell.held).min()?;
        if least < PASSES {
            let due: Vec<_> = self.cells.iter().filter(|cell| cell.held == least).collect();
            return self.random.choice(due).copied();
        }
        let width = |cell: &Cell| match known(cell.target) {
            Known::Settled => None,
            Known::Within(half) => Some(half),
        };
        // The widest first; of one target's speedups, the one held least.
        self.cells
            .iter()
            .filter_map(|cell| width(cell).map(|half| (half, cell)))
            .max_by(|(a, x), (b, y)| a.total_cmp(b).then(y.held.cmp(&x.held)))
            .map(|(_, cell)| *cell)
    }

    /// Leaves out what can't be tested.
    pub(crate) fn leave_out(&mut self, out: Cell) {
        self.cells
            .retain(|cell| cell.target.id() != out.target.id() || cell.speedup != out.speedup);
    }

    /// Leaves out all targets that can't be tested any more.
    pub(crate) fn leave_out_all(&mut self, out: impl Fn(&Target) -> bool) {
        self.cells.retain(|cell| !out(cell.target));
    }

    /// Counts an experiment that can be used.
    pub(crate) fn held(&mut self, held: Cell) {
        for cell in &mut self.cells {
            if cell.target.id() == held.target.id() && cell.speedup == held.speedup {
                cell.held += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TargetKind;
    use crate::target::target;
    use std::collections::HashMap;

    fn plan() -> Plan {
        let targets = ["plan a", "plan b"].map(|name| target(TargetKind::Task, name, None, None));
        Plan::new(&targets, &[Speedup::from_ppm(250_000), Speedup::from_ppm(500_000)], 1)
    }

    #[test]
    fn everything_gets_its_passes_first() {
        let mut plan = plan();
        let mut held = HashMap::new();
        for _ in 0..PASSES as usize * plan.len() {
            let cell = plan.next(|_| Known::Settled).expect("passes are left");
            *held.entry((cell.target.name(), cell.speedup)).or_insert(0) += 1;
            plan.held(cell);
        }
        assert_eq!(held.len(), 4);
        assert!(held.values().all(|&n| n == PASSES));
        assert!(plan.next(|_| Known::Settled).is_none());
    }

    #[test]
    fn a_spoiled_experiment_is_repeated() {
        let mut plan = plan();
        for _ in 0..100 {
            assert!(plan.next(|_| Known::Settled).is_some());
        }
    }

    #[test]
    fn what_is_left_out_never_comes_again() {
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
    fn the_least_known_target_goes_next_at_its_least_held_speedup() {
        let mut plan = plan();
        while let Some(cell) = plan.next(|_| Known::Settled) {
            plan.held(cell);
        }
        let known = |target: &Target| match target.name() {
            "plan a" => Known::Within(1.0),
            _ => Known::Within(5.0),
        };
        let first = plan.next(known).unwrap();
        assert_eq!(first.target.name(), "plan b");
        plan.held(first);
        let second = plan.next(known).unwrap();
        assert_eq!(second.target.name(), "plan b");
        assert_ne!(first.speedup, second.speedup);
    }
}
