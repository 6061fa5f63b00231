//! Names that the user writes: what they mean, and how messages list them.

use crate::target::Target;
use andweorc_profile::TargetKind;
use andweorc_profile::plain;

/// Whether targets among these are seen by samples alone.
pub(crate) fn want_samples(wanted: &[String]) -> bool {
    let kinds = ["line:", "function:", FUNCTION_SELF];
    wanted
        .iter()
        .any(|wanted| all_of(wanted).is_some() || kinds.iter().any(|kind| wanted.starts_with(kind)))
}

/// Before the name of a function that is meant without what it calls.
const FUNCTION_SELF: &str = "function-self:";

/// Whether targets among these are functions without what they call.
pub(crate) fn want_functions_alone(wanted: &[String]) -> bool {
    let is = |wanted: &String| {
        all_of(wanted) == Some(TargetKind::FunctionSelf) || wanted.starts_with(FUNCTION_SELF)
    };
    wanted.iter().any(is)
}

/// The words for the hottest lines, and the hottest functions, with and without what they call.
pub(crate) fn all_of(wanted: &str) -> Option<TargetKind> {
    match wanted {
        "lines" => Some(TargetKind::Line),
        "functions" => Some(TargetKind::Function),
        "functions-self" => Some(TargetKind::FunctionSelf),
        _ => None,
    }
}

/// Whether a user means `target` by `wanted`.
pub(crate) fn is_named(target: &Target, wanted: &str) -> bool {
    let kind = target.kind();
    // Of the path of a line the end is enough; and the user may know it whole, where the target's
    // is relative to the workspace.
    let is_end = |name: &str| {
        let ends = |whole: &str, end: &str| {
            whole.strip_suffix(end).is_some_and(|rest| rest.ends_with('/'))
        };
        kind == TargetKind::Line
            && (ends(target.name(), name) || name.starts_with('/') && ends(name, target.name()))
    };
    // A task is called by its function, which may be spawned at several places.
    let is_place = |name: &str| {
        let place = name.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        matches!(kind, TargetKind::Task | TargetKind::Wait)
            && place.is_some_and(|place| {
                (target.file(), target.line()) == (Some(place.0), Some(place.1))
            })
    };
    let is = |name: &str| target.name() == plain::cut_name(name) || is_end(name) || is_place(name);
    (!matches!(kind, TargetKind::Wait | TargetKind::FunctionSelf) && is(wanted))
        || wanted.split_once(':').is_some_and(|(word, name)| word == kind.to_string() && is(name))
}

/// Of `all`, those with a wanted name, in the order of the names; all when none is wanted. Second,
/// the names that none has.
pub(super) fn by_name<T: Copy>(
    all: Vec<T>,
    wanted: &[String],
    is_named: impl Fn(T, &str) -> bool,
) -> (Vec<T>, Vec<String>) {
    if wanted.is_empty() {
        return (all, Vec::new());
    }
    let mut chosen = Vec::new();
    let mut unknown = Vec::new();
    for wanted in wanted {
        let before = chosen.len();
        chosen.extend(all.iter().copied().filter(|&it| is_named(it, wanted)));
        if chosen.len() == before {
            unknown.push(wanted.clone());
        }
    }
    (chosen, unknown)
}

/// Names for a message: each once, in order, at most a dozen, and none at great length.
pub(crate) fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(12);
    names.truncate(12);
    let list = names
        .iter()
        .map(|name| format!("`{}`", plain::cut_name(name)))
        .collect::<Vec<_>>()
        .join(", ");
    match (list.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => list,
        (false, more) => format!("{list} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::target;

    #[test]
    fn wanted_names_keep_their_order_and_unknown_ones_are_told() {
        let all = vec!["a", "b", "c", "a"];
        let wanted = ["c", "x", "a"].map(str::to_owned);
        assert_eq!(
            by_name(all.clone(), &wanted, |s, name| s == name),
            (vec!["c", "a", "a"], vec!["x".to_owned()])
        );
        assert_eq!(by_name(all.clone(), &[], |s, name| s == name), (all, vec![]));
    }

    #[test]
    fn a_kind_before_the_name_tells_targets_of_one_name_apart() {
        let all = [TargetKind::Span, TargetKind::Task, TargetKind::Wait]
            .map(|kind| target(kind, "choose: pay", None, None));
        let meant = |wanted: &str| all.map(|target| is_named(target, wanted));
        assert_eq!(meant("choose: pay"), [true, true, false]);
        assert_eq!(meant("span:choose: pay"), [true, false, false]);
        assert_eq!(meant("wait:choose: pay"), [false, false, true]);
        assert_eq!(meant("wait:choose"), [false, false, false]);
    }

    #[test]
    fn a_task_is_named_by_its_function_or_its_place() {
        let all = [TargetKind::Task, TargetKind::Wait, TargetKind::Span]
            .map(|kind| target(kind, "choose_handle", Some("src/choose.rs"), Some(40)));
        let meant = |wanted: &str| all.map(|target| is_named(target, wanted));
        assert_eq!(meant("choose_handle"), [true, false, true]);
        assert_eq!(meant("src/choose.rs:40"), [true, false, false]);
        assert_eq!(meant("task:src/choose.rs:40"), [true, false, false]);
        assert_eq!(meant("wait:src/choose.rs:40"), [false, true, false]);
        assert_eq!(meant("src/choose.rs:41"), [false, false, false]);
    }

    #[test]
    fn functions_have_paths_and_of_a_lines_path_the_end_is_enough() {
        let function = target(TargetKind::Function, "choose::stock::update", None, None);
        assert!(is_named(function, "choose::stock::update"));
        assert!(is_named(function, "function:choose::stock::update"));
        assert!(!is_named(function, "stock::update") && !is_named(function, "span:choose"));
        let alone = target(TargetKind::FunctionSelf, "choose::stock::update", None, None);
        assert!(is_named(alone, "function-self:choose::stock::update"));
        assert!(!is_named(function, "function-self:choose::stock::update"));
        assert!(!is_named(alone, "choose::stock::update"), "a bare name means what it calls too");
        assert!(!is_named(alone, "function:choose::stock::update"));
        let file = "/choose/src/stock.rs";
        let line = target(TargetKind::Line, &format!("{file}:42"), Some(file), Some(42));
        for name in ["/choose/src/stock.rs:42", "src/stock.rs:42", "stock.rs:42"] {
            assert!(is_named(line, name) && is_named(line, &format!("line:{name}")), "{name}");
        }
        assert!(!is_named(line, "tock.rs:42") && !is_named(line, "src/stock.rs:4"));
        let line = target(TargetKind::Line, "examples/choose.rs:4", Some("x"), Some(4));
        for name in ["examples/choose.rs:4", "choose.rs:4", "/home/me/shop/examples/choose.rs:4"] {
            assert!(is_named(line, name) && is_named(line, &format!("line:{name}")), "{name}");
        }
        assert!(!is_named(line, "shop/examples/choose.rs:4") && !is_named(line, "/choose.rs:4"));
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        let many: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        assert!(names(many.iter().map(String::as_str)).ends_with("and 8 more"));
        assert_eq!(names(std::iter::empty()), "none");
    }
}
