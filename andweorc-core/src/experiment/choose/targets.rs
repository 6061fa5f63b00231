//! Choosing targets when the user named none, and finding those that he named.

use super::MIN_SHARE;
use super::names::{all_of, by_name, is_named};
use super::times::{TargetTimes, Time};
use super::waits::longest_waits;
use crate::sampler::is_sampled;
use crate::settings::is_own_file;
use crate::target::{Target, is_main};
use andweorc_profile::TargetKind;
use std::cmp::Reverse;
use std::collections::HashMap;

/// How many targets are tested at most: with more, none would be settled in time.
pub(crate) const MAX_TARGETS: usize = 8;

/// A task that takes this share of the program's CPU time is the program itself.
const MIN_SHARE_OF_ALL: f64 = 0.9;

/// A target that spends less than this share of its time outside of other targets is a container:
/// its parts are tested instead.
const MIN_OWN_SHARE: f64 = 0.5;

impl TargetTimes {
    /// The targets to test, given what they used since `before` of `real_ns` that passed and of
    /// `cpu_ns` in all: those named by `wanted`; by default what may matter.
    /// Second, the wanted names that no target has.
    ///
    /// A name may have its kind before it: `span:stock`. A bare name means all targets of it but
    /// waits, `wait:stock`, and functions without what they call, `function-self:stock`. `lines`,
    /// `functions` and `functions-self` are the hottest of them, so `many` at most.
    pub(crate) fn choose_targets(
        &self,
        before: &TargetTimes,
        [real_ns, cpu_ns]: [u64; 2],
        wanted: &[String],
        many: usize,
    ) -> (Vec<&'static Target>, Vec<String>) {
        let mut used = self.since(before);
        used.sort_by_key(|(_, time)| Reverse(time.busy));
        if wanted.is_empty() {
            used = by_default(used, [real_ns, cpu_ns]);
        }
        let mut sampled = HashMap::new();
        used.retain(|(target, time)| {
            if !is_sampled(target) || wanted.iter().any(|wanted| is_named(target, wanted)) {
                return true;
            }
            let count = sampled.entry(target.kind()).or_insert(0);
            *count += 1;
            *count <= many && time.own as f64 >= MIN_SHARE * cpu_ns as f64
        });
        let is_named = |target: &Target, wanted: &str| {
            is_named(target, wanted) || all_of(wanted) == Some(target.kind())
        };
        by_name(used.into_iter().map(|(target, _)| target).collect(), wanted, is_named)
    }
}

/// Of these targets, the busiest first, the ones that may matter: the busiest that are no
/// containers, and the longest waits for the world outside. Of what is sampled, the functions.
///
/// Left out, where there are others, are the task of `main`, a task that takes nearly all CPU time,
/// and what belongs to libraries.
fn by_default(
    used: Vec<(&'static Target, Time)>,
    [real_ns, cpu_ns]: [u64; 2],
) -> Vec<(&'static Target, Time)> {
    let waits = longest_waits(&used, real_ns);
    let share = |time: &Time| time.busy as f64 / cpu_ns.max(1) as f64;
    let mut work = used;
    work.retain(|(target, time)| {
        !matches!(target.kind(), TargetKind::Wait | TargetKind::Line | TargetKind::FunctionSelf)
            && share(time) >= MIN_SHARE
            && time.own as f64 >= MIN_OWN_SHARE * time.busy as f64
    });
    let is_all = |(target, time): &(&Target, Time)| {
        is_main(target.id()) || target.kind() == TargetKind::Task && share(time) >= MIN_SHARE_OF_ALL
    };
    keep_if_any(&mut work, |it| !is_all(it));
    keep_if_any(&mut work, |(target, _)| is_own(target));
    work.truncate(MAX_TARGETS - waits.len());
    work.extend(waits);
    work
}

/// Keeps those of which this is true, if there are any.
fn keep_if_any<T>(all: &mut Vec<T>, keep: impl Fn(&T) -> bool) {
    if all.iter().any(&keep) {
        all.retain(keep);
    }
}

/// Whether a target is in the workspace's own code, and not in that of a dependency.
pub(super) fn is_own(target: &Target) -> bool {
    target.file().is_none_or(|file| is_own_file(file) && !is_of_package(file))
}

/// Whether a file is called by the package of cargo's registry that it is in:
/// `hyper-1.8.1/src/rt.rs`.
fn is_of_package(file: &str) -> bool {
    let package = file.split('/').next().unwrap_or_default();
    let version = package.rsplit_once('-').map_or("", |(_, version)| version);
    version.split('.').count() >= 3 && version.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::choose::{want_functions_alone, want_samples};
    use crate::target::target;
    use crate::time::Nanos;

    #[test]
    fn containers_and_trifles_are_not_chosen_unless_wanted() {
        let new = |name| target(TargetKind::Span, name, None, None);
        let before = TargetTimes::read();
        new("choose: request").record(Nanos(1000), Nanos(10));
        new("choose: part").record(Nanos(990), Nanos(990));
        new("choose: trifle").record(Nanos(10), Nanos(10));
        let after = TargetTimes::read();
        let chosen = |wanted: &[String]| {
            let (targets, unknown) = after.choose_targets(&before, [1000, 1000], wanted, 8);
            let mut names: Vec<_> = targets.iter().map(|t| t.name()).collect();
            names.retain(|name| name.starts_with("choose: "));
            (names, unknown)
        };
        assert_eq!(chosen(&[]), (vec!["choose: part"], vec![]));
        let wanted = ["choose: request", "no such"].map(str::to_owned);
        assert_eq!(chosen(&wanted), (vec!["choose: request"], vec!["no such".to_owned()]));
    }

    #[test]
    fn the_hottest_lines_and_functions_have_a_word() {
        let before = TargetTimes::read();
        for (kind, name, own) in [
            (TargetKind::Line, "choose: hot:1", 600),
            (TargetKind::Line, "choose: cold:2", 1),
            (TargetKind::Function, "choose: hot", 600),
            (TargetKind::Function, "choose: main", 0),
            (TargetKind::FunctionSelf, "choose: hot", 600),
        ] {
            target(kind, name, None, None).record(Nanos(own.max(1)), Nanos(own));
        }
        let after = TargetTimes::read();
        let chosen = |wanted: &str| {
            let wanted: Vec<String> = vec![wanted.to_owned()];
            let (targets, _) = after.choose_targets(&before, [1000, 1000], &wanted, 8);
            let mut names: Vec<_> = targets.iter().map(|t| t.name()).collect();
            names.retain(|name| name.starts_with("choose: "));
            names
        };
        assert_eq!(chosen("lines"), ["choose: hot:1"]);
        assert_eq!(chosen("functions"), ["choose: hot"]);
        assert_eq!(chosen("functions-self"), ["choose: hot"]);
        assert_eq!(chosen("line:choose: cold:2"), ["choose: cold:2"]);
        assert_eq!(chosen("choose: main"), ["choose: main"]);
        for (wanted, samples) in
            [("lines", true), ("function:x", true), ("line:x", true), ("x", false)]
        {
            assert_eq!(want_samples(&[wanted.to_owned()]), samples);
            assert!(!want_functions_alone(&[wanted.to_owned()]));
        }
        for wanted in ["function-self:x", "functions-self"].map(|wanted| [wanted.to_owned()]) {
            assert!(want_samples(&wanted) && want_functions_alone(&wanted));
        }
    }
}
