//! Which stack, wait or other thing of one version belongs to which of the other, by its target.

use crate::compare::impact::parts;
use crate::compare::matching::pairs;
use crate::estimate::summary::Identity;
use crate::{Run, TargetKind, TargetRecord};
use std::collections::HashMap;

/// Targets of two versions by number: what is the same target has the same number. They are matched
/// as [`super::compare`] matches them.
#[derive(Debug)]
pub struct SameTargets {
    /// Numbers of the targets of A, and of B.
    numbers: [Numbers; 2],
}

/// An [`Identity`] that lives on its own.
type Key = (TargetKind, String, Option<String>, Option<u32>);

type Numbers = HashMap<Key, usize>;

impl SameTargets {
    /// The targets of the runs of A and of B.
    pub fn of(a: &[Run], b: &[Run]) -> SameTargets {
        let (a, b) = (parts(a), parts(b));
        let mut numbers = [Numbers::new(), Numbers::new()];
        for (number, pair) in pairs(&a, &b).into_iter().enumerate() {
            let targets = [pair.a.map(|i| &a[i]), pair.b.map(|i| &b[i])];
            for (numbers, target) in numbers.iter_mut().zip(targets) {
                numbers.extend(target.map(|target| (owned(target.identity()), number)));
            }
        }
        SameTargets { numbers }
    }

    /// The number of a target of A (`side` 0) or of B (1). `None` where that has no such target.
    ///
    /// # Panics
    ///
    /// When there is no such side.
    pub fn number(&self, side: usize, target: &TargetRecord) -> Option<usize> {
        self.numbers[side].get(&owned(target.identity())).copied()
    }
}

fn owned((kind, name, file, line): Identity<'_, TargetKind>) -> Key {
    (kind, name.to_owned(), file.map(str::to_owned), line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::run;
    use std::slice;

    fn target(id: u32, name: &str, file: &str, line: u32) -> TargetRecord {
        let mut target = TargetRecord::new(id, TargetKind::Span, name);
        (target.file, target.line) = (Some(file.into()), Some(line));
        target
    }

    #[test]
    fn same_target_has_one_number_on_both_sides_and_another_its_own() {
        let (mut a, mut b) = (run(), run());
        a.targets = vec![target(1, "stock", "src/a.rs", 10), target(2, "gone", "src/a.rs", 20)];
        b.targets = vec![target(1, "new", "src/a.rs", 10), target(7, "stock", "/ci/src/a.rs", 12)];
        let same = SameTargets::of(slice::from_ref(&a), slice::from_ref(&b));
        let of = |side, target| same.number(side, target).unwrap();
        let (stock, gone) = (of(0, &a.targets[0]), of(0, &a.targets[1]));
        let (new, stock_in_b) = (of(1, &b.targets[0]), of(1, &b.targets[1]));
        assert_eq!(stock, stock_in_b);
        assert!(gone != new && gone != stock && new != stock, "{same:?}");
        assert_eq!(same.number(1, &a.targets[1]), None, "B has no such target");
    }
}
