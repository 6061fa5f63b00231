//! Choosing points and targets when the user named none, and finding those that he named.

use crate::point::{Point, points};
use crate::profile::TargetTime;
use crate::target::{Target, targets};
use std::collections::HashMap;

/// How many targets are tested at most: with more, none would be settled in time.
const MOST_TARGETS: usize = 8;

/// A target below this share of the program's CPU time is not worth testing.
const LEAST_SHARE: f64 = 0.02;

/// A target that spends less than this share of its time outside of other targets is a container: its parts are tested instead.
const LEAST_OWN: f64 = 0.5;

/// The points in order of importance: those named by `wanted`, in that order; by default what the user wrote down, then root spans,
/// then others, each by hits. Points that were never hit are left out. Second, the wanted names that no point has.
pub(crate) fn choose_points(wanted: &[String]) -> (Vec<&'static Point>, Vec<String>) {
    let mut hit: Vec<_> = points().into_iter().filter(|point| point.count() > 0).collect();
    hit.sort_by_key(|point| (point.importance(), std::cmp::Reverse(point.count())));
    by_name(hit, wanted, |point| point.name())
}

/// The time that each target had over a stretch.
#[derive(Debug, Default)]
pub(crate) struct Times(HashMap<u32, (u64, u64, u64)>);

impl Times {
    /// The times up to now.
    pub(crate) fn read() -> Times {
        Times(targets().iter().map(|t| (t.id(), (t.busy_ns(), t.own_ns(), t.count()))).collect())
    }

    /// The times since `before`, as (target, busy ns, own ns, visits), of the targets that had any.
    fn since(&self, before: &Times) -> Vec<(&'static Target, u64, u64, u64)> {
        let mut all = Vec::new();
        for target in targets() {
            let Some((busy, own, count)) = self.0.get(&target.id()) else { continue };
            let (busy0, own0, count0) = before.0.get(&target.id()).copied().unwrap_or_default();
            if *count > count0 {
                all.push((target, busy - busy0, own - own0, count - count0));
            }
        }
        all
    }

    /// The same for the profile.
    pub(crate) fn records_since(&self, before: &Times) -> Vec<TargetTime> {
        let time = |(target, busy_ns, _, count): (&Target, u64, u64, u64)| TargetTime {
            target: target.id(),
            busy_ns,
            count,
        };
        self.since(before).into_iter().map(time).collect()
    }

    /// The targets to test, given what they used since `before` of `cpu_ns` in all: those named by `wanted`; by default the
    /// busiest that are no containers. Second, the wanted names that no target has.
    pub(crate) fn choose_targets(
        &self,
        before: &Times,
        cpu_ns: u64,
        wanted: &[String],
    ) -> (Vec<&'static Target>, Vec<String>) {
        let mut used = self.since(before);
        used.sort_by_key(|&(_, busy, ..)| std::cmp::Reverse(busy));
        if wanted.is_empty() {
            used.retain(|&(_, busy, own, _)| {
                busy as f64 >= LEAST_SHARE * cpu_ns as f64 && own as f64 >= LEAST_OWN * busy as f64
            });
            used.truncate(MOST_TARGETS);
        }
        by_name(used.into_iter().map(|(target, ..)| target).collect(), wanted, |t| t.name())
    }
}

/// Of `all`, those with a wanted name, in the order of the names; all when none is wanted. Second, the names that none has.
fn by_name<T: Copy>(
    all: Vec<T>,
    wanted: &[String],
    name: impl Fn(&T) -> &str,
) -> (Vec<T>, Vec<String>) {
    if wanted.is_empty() {
        return (all, Vec::new());
    }
    let mut chosen = Vec::new();
    let mut unknown = Vec::new();
    for wanted in wanted {
        let before = chosen.len();
        chosen.extend(all.iter().copied().filter(|it| name(it) == wanted));
        if chosen.len() == before {
            unknown.push(wanted.clone());
        }
    }
    (chosen, unknown)
}

/// Names for a message: each once, in order, at most a dozen.
pub(crate) fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(12);
    names.truncate(12);
    let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (list.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => list,
        (false, more) => format!("{list} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_names_keep_their_order_and_unknown_ones_are_told() {
        let all = vec!["a", "b", "c", "a"];
        let wanted = ["c", "x", "a"].map(str::to_owned);
        assert_eq!(
            by_name(all.clone(), &wanted, |s| s),
            (vec!["c", "a", "a"], vec!["x".to_owned()])
        );
        assert_eq!(by_name(all.clone(), &[], |s| s), (all, vec![]));
    }

    #[test]
    fn containers_and_trifles_are_not_chosen_unless_wanted() {
        use crate::profile::TargetKind;
        use crate::target::target;
        use crate::time::Nanos;
        let new = |name| target(TargetKind::Span, name, None, None);
        let before = Times::read();
        new("choose: request").record(Nanos(1000), Nanos(10));
        new("choose: part").record(Nanos(990), Nanos(990));
        new("choose: trifle").record(Nanos(10), Nanos(10));
        let after = Times::read();
        let chosen = |wanted: &[String]| {
            let (targets, unknown) = after.choose_targets(&before, 1000, wanted);
            let mut names: Vec<_> = targets.iter().map(|t| t.name()).collect();
            names.retain(|name| name.starts_with("choose: "));
            (names, unknown)
        };
        assert_eq!(chosen(&[]), (vec!["choose: part"], vec![]));
        let wanted = ["choose: request", "no such"].map(str::to_owned);
        assert_eq!(chosen(&wanted), (vec!["choose: request"], vec!["no such".to_owned()]));
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        let many: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        assert!(names(many.iter().map(String::as_str)).ends_with("and 8 more"));
        assert_eq!(names(std::iter::empty()), "none");
    }
}
