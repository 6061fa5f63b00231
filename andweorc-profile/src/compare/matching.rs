//! Which target of one version is which target of the other.
//!
//! Matched by kind, name and normalized path; never by address, never by the line alone. In this
//! order, each step on what is left:
//!
//! 1. same kind, name and path;
//! 2. same kind and name, and one path is the tail of the other (a folder was built in another
//!    place);
//! 3. same kind and name, and only one of them is left on each side: it *moved*.
//!
//! Several of the same kind, name and path are told apart by the order of their lines, when there
//! are as many on either side. What has no name but its place is matched by steps 1 and 2 only: a
//! spawn site by its path, a line target by path and line.

use crate::TargetKind;
use crate::estimate::TargetSummary;

/// A target of A, a target of B, or both, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) a: Option<usize>,
    pub(crate) b: Option<usize>,
    /// Whether the target is in another file than before.
    pub(crate) moved: bool,
}

/// Pairs all targets: those of A in their order, then those that only B has.
pub(crate) fn pairs(a: &[TargetSummary], b: &[TargetSummary]) -> Vec<Pair> {
    let mut of_a: Vec<Option<(usize, bool)>> = vec![None; a.len()];
    let mut taken = vec![false; b.len()];
    let steps: [fn(&TargetSummary, &TargetSummary) -> bool; 3] = [
        |a, b| named_alike(a, b) && path(a) == path(b),
        |a, b| named_alike(a, b) && tail_of_the_other(&path(a), &path(b)),
        |a, b| named_alike(a, b) && a.kind != TargetKind::Line && !own_name(a).is_empty(),
    ];
    for (step, alike) in steps.into_iter().enumerate() {
        let moved = step == 2;
        for i in 0..a.len() {
            let mut there: Vec<usize> =
                (0..b.len()).filter(|&j| !taken[j] && alike(&a[i], &b[j])).collect();
            let Some(&first) = there.first().filter(|_| of_a[i].is_none()) else { continue };
            let mut here: Vec<usize> =
                (0..a.len()).filter(|&j| of_a[j].is_none() && alike(&a[j], &b[first])).collect();
            let told_apart = here.len() == 1
                || here.iter().all(|&j| path(&a[j]) == path(&a[i]))
                    && there.iter().all(|&j| path(&b[j]) == path(&b[first]));
            if here.len() != there.len() || !told_apart || (moved && here.len() != 1) {
                continue;
            }
            here.sort_by_key(|&j| a[j].line);
            there.sort_by_key(|&j| b[j].line);
            for (i, j) in here.into_iter().zip(there) {
                of_a[i] = Some((j, moved));
                taken[j] = true;
            }
        }
    }
    let both = of_a.iter().enumerate().map(|(i, found)| Pair {
        a: Some(i),
        b: found.map(|(j, _)| j),
        moved: found.is_some_and(|(_, moved)| moved),
    });
    let only_b = (0..b.len()).filter(|&j| !taken[j]);
    both.chain(only_b.map(|j| Pair { a: None, b: Some(j), moved: false })).collect()
}

fn named_alike(a: &TargetSummary, b: &TargetSummary) -> bool {
    a.kind == b.kind && own_name(a) == own_name(b)
}

/// Its name; empty for a spawn site without a name, which is called by its place
/// (`src/shop.rs:12`): the line moves with every edit above it. A line target is its line.
fn own_name(target: &TargetSummary) -> String {
    match (target.kind, &target.file, target.line) {
        (TargetKind::Line, _, line) => line.unwrap_or(0).to_string(),
        (_, Some(file), Some(line)) if target.name == format!("{file}:{line}") => String::new(),
        _ => target.name.clone(),
    }
}

fn path(target: &TargetSummary) -> Option<String> {
    target.file.as_deref().map(normalized)
}

fn tail_of_the_other(a: &Option<String>, b: &Option<String>) -> bool {
    let tail = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    matches!((a, b), (Some(a), Some(b)) if tail(a, b) || tail(b, a))
}

/// A source path as far as it says which file it is: `/` between folders, no `.` and `..`, and
/// without what differs from build to build: the hash of a registry and a crate's version, the hash
/// of rustc, and the folder that cargo-andweorc checks a revision out to.
pub(crate) fn normalized(path: &str) -> String {
    let path = path.replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." && parts.last().is_some_and(|last| *last != "..") {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    let after = |marks: &[&str], skip: usize| {
        let at = parts.windows(marks.len()).rposition(|window| window == marks)?;
        parts.get(at + marks.len() + skip..).filter(|rest| !rest.is_empty())
    };
    if let Some(rest) = after(&["registry", "src"], 1) {
        let krate = without_version(rest[0]);
        return [&["registry", krate], &rest[1..]].concat().join("/");
    }
    if let Some(rest) = after(&["rustc"], 1).filter(|rest| rest[0] == "library") {
        return rest.join("/");
    }
    if let Some(rest) = after(&["andweorc", "compare"], 1) {
        return rest.join("/");
    }
    parts.join("/")
}

/// `tokio-1.47.0` without its version.
fn without_version(krate: &str) -> &str {
    let begins_a_version = |(at, _): &(usize, &str)| {
        krate[at + 1..].split('.').next().is_some_and(|major| {
            !major.is_empty() && major.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    krate.match_indices('-').find(begins_a_version).map_or(krate, |(at, _)| &krate[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Metric, Verdict};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn target(kind: TargetKind, name: &str, file: &str, line: u32) -> TargetSummary {
        TargetSummary {
            kind,
            name: name.into(),
            file: Some(file.into()),
            line: Some(line),
            share: None,
            wall_share: None,
            fills_time: false,
            effects: vec![],
            impacts: vec![],
            odd_runs: vec![],
            ranked_by: Metric::Throughput,
            verdict: Verdict::Nothing,
            seconds: 0.0,
        }
    }

    fn span(name: &str, file: &str, line: u32) -> TargetSummary {
        target(TargetKind::Span, name, file, line)
    }

    fn found(
        a: &[TargetSummary],
        b: &[TargetSummary],
    ) -> Vec<(Option<usize>, Option<usize>, bool)> {
        pairs(a, b).into_iter().map(|pair| (pair.a, pair.b, pair.moved)).collect()
    }

    #[test]
    fn paths_lose_what_differs_from_build_to_build() {
        for (path, expected) in [
            ("src/a.rs", "src/a.rs"),
            ("./src//x/../a.rs", "src/a.rs"),
            (r"src\a.rs", "src/a.rs"),
            ("../other/a.rs", "../other/a.rs"),
            (
                "/r/registry/src/index.crates.io-1949cf8c/h2-sys-0.4.1/src/a.rs",
                "registry/h2-sys/src/a.rs",
            ),
            ("/rustc/0123abc/library/core/src/a.rs", "library/core/src/a.rs"),
            ("/w/target/andweorc/compare/v1.0/src/a.rs", "src/a.rs"),
        ] {
            assert_eq!(normalized(path), expected);
        }
    }

    proptest! {
        #[test]
        fn any_path_can_be_normalized(
            parts in vec(prop::sample::select(vec![
                "", ".", "..", "src", "rustc", "library", "registry", "andweorc", "compare", "a-1.0", "-", "\\", "ä.rs",
            ]), 0..12),
        ) {
            let path = normalized(&parts.join("/"));
            prop_assert!(!path.starts_with('/') && !path.contains("//") && !path.contains('\\'));
        }
    }

    #[test]
    fn a_line_that_moved_in_its_file_is_the_same_target() {
        let a = [span("stock", "src/a.rs", 10)];
        assert_eq!(found(&a, &[span("stock", "src/a.rs", 99)]), [(Some(0), Some(0), false)]);
        assert_eq!(
            found(&a, &[span("stock", "/ci/shop/src/a.rs", 9)]),
            [(Some(0), Some(0), false)]
        );
    }

    #[test]
    fn another_file_is_moved_and_another_name_or_kind_is_not_the_same() {
        let a = [span("stock", "src/a.rs", 10)];
        assert_eq!(found(&a, &[span("stock", "src/b.rs", 10)]), [(Some(0), Some(0), true)]);
        let other = [(Some(0), None, false), (None, Some(0), false)];
        assert_eq!(found(&a, &[span("stocks", "src/a.rs", 10)]), other);
        assert_eq!(found(&a, &[target(TargetKind::Task, "stock", "src/a.rs", 10)]), other);
    }

    #[test]
    fn namesakes_are_told_apart_by_file_and_then_by_order() {
        let a =
            [span("get", "src/a.rs", 10), span("get", "src/a.rs", 20), span("get", "src/b.rs", 5)];
        let b =
            [span("get", "src/b.rs", 15), span("get", "src/a.rs", 25), span("get", "src/a.rs", 15)];
        let all = [(Some(0), Some(2), false), (Some(1), Some(1), false), (Some(2), Some(0), false)];
        assert_eq!(found(&a, &b), all);
        // One of two is gone, and nothing says which.
        let unclear = found(&a[..2], &b[1..2]);
        assert_eq!(
            unclear,
            [(Some(0), None, false), (Some(1), None, false), (None, Some(0), false)]
        );
    }

    #[test]
    fn spawn_sites_without_a_name_are_matched_by_their_file() {
        let task =
            |file: &str, line| target(TargetKind::Task, &format!("{file}:{line}"), file, line);
        let a = [task("src/a.rs", 10)];
        assert_eq!(found(&a, &[task("src/a.rs", 12)]), [(Some(0), Some(0), false)]);
        assert_eq!(found(&a, &[task("/ci/shop/src/a.rs", 12)]), [(Some(0), Some(0), false)]);
        let other = [(Some(0), None, false), (None, Some(0), false)];
        assert_eq!(found(&a, &[task("src/b.rs", 10)]), other);
    }

    #[test]
    fn line_targets_are_matched_by_path_and_line_only() {
        let line =
            |file: &str, line| target(TargetKind::Line, &format!("{file}:{line}"), file, line);
        assert_eq!(
            found(&[line("src/a.rs", 3)], &[line("src/a.rs", 3)]),
            [(Some(0), Some(0), false)]
        );
        let other = [(Some(0), None, false), (None, Some(0), false)];
        assert_eq!(found(&[line("src/a.rs", 3)], &[line("src/a.rs", 4)]), other);
        assert_eq!(found(&[line("src/a.rs", 3)], &[line("src/b.rs", 3)]), other);
    }
}
