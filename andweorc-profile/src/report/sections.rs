//! The targets by what they come to, and what they are called.

use crate::TargetKind;
use crate::estimate::{AllocationSummary, Analysis, TargetSummary, Verdict};
use crate::plain;
use crate::report::words::seconds;
use std::mem;

/// Targets of one verdict.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Section<'a> {
    /// The advice that they have in common: `MAKE FASTER`.
    pub heading: &'static str,
    /// A verdict of this section.
    pub verdict: Verdict,
    /// In the order of the ranking, at least one.
    pub targets: Vec<&'a TargetSummary>,
}

/// The targets by verdict, what to do something about first. Sections without any are left out.
pub fn sections(analysis: &Analysis) -> Vec<Section<'_>> {
    let all = [
        ("MAKE FASTER", Verdict::Matters),
        ("SPEEDING UP HURTS", Verdict::Hurts),
        ("LEAVE ALONE", Verdict::Nothing),
        ("UNDECIDED", Verdict::Inconclusive { more_seconds: None }),
    ];
    let section = |(heading, verdict): (&'static str, Verdict)| {
        let same = |target: &&TargetSummary| {
            mem::discriminant(&target.verdict) == mem::discriminant(&verdict)
        };
        let targets: Vec<_> = analysis.targets.iter().filter(same).collect();
        (!targets.is_empty()).then_some(Section { heading, verdict, targets })
    };
    all.into_iter().filter_map(section).collect()
}

/// That which would decide an undecided target of these: `45 s more`.
pub fn needs(analysis: &Analysis, target: &TargetSummary) -> String {
    match (target.verdict, target.ranking_effect()) {
        // One experiment makes no verdict.
        (_, Some(effect)) if effect.n < 2 => "a repetition".to_owned(),
        (Verdict::Inconclusive { more_seconds: Some(more) }, _) => {
            format!("{} more", seconds(more.max(1.0)))
        }
        // How long it takes can't be told yet, or the load is what does not let it be judged.
        (_, Some(effect)) if effect.runs > 1 => "more runs".to_owned(),
        (_, Some(effect)) if analysis.can_judge(effect.metric) => "more time".to_owned(),
        (_, Some(_)) => "a closed load".to_owned(),
        _ => "more experiments".to_owned(),
    }
}

/// The reason why the shares of a target say nothing, if they don't: a sentence.
pub fn fills_time(target: &TargetSummary) -> Option<String> {
    target.fills_time.then(|| {
        format!(
            "{} spins, or works without a pause on what nobody waits for: its CPU time grows with \
             the time that others take, so its share of CPU says nothing",
            label(target)
        )
    })
}

/// The share of a target in the program's CPU time, where it says something.
pub fn cpu_share(target: &TargetSummary) -> Option<f64> {
    target.share.filter(|_| !target.fills_time)
}

/// The name of a target in reports. One that has another kind than span says so, as
/// `ANDWEORC_TARGETS` takes it; a wait is no part of the program's work, and is described.
pub fn label(target: &TargetSummary) -> String {
    named(target.kind, &target.name)
}

/// The name in reports of a target that allocates.
pub fn allocation_label(of: &AllocationSummary) -> String {
    of.kind.map_or_else(|| plain::name(&of.name).into_owned(), |kind| named(kind, &of.name))
}

/// The name in reports of a target of this kind: `task:audit`.
pub fn named(kind: TargetKind, name: &str) -> String {
    let name = plain::name(name);
    match kind {
        // One of another service has that in its name: `inventory/lookup`.
        TargetKind::Span | TargetKind::Remote => name.into_owned(),
        TargetKind::Wait => format!("what {name} waits for"),
        kind => format!("{kind}:{name}"),
    }
}

/// Where it is, as briefly as can be: `shop.rs:12`. `None` where the name says it.
pub(super) fn place(name: &str, file: Option<&str>, line: Option<u32>) -> Option<String> {
    let (file, line) = (file?, line?);
    if name.ends_with(&format!("{file}:{line}")) {
        return None;
    }
    let last = file.rsplit('/').next().unwrap_or(file);
    // Every folder has one of this name.
    let short = if last == "mod.rs" { file.rsplit('/').nth(1) } else { None };
    let short = short.map_or(last.to_owned(), |folder| format!("{folder}/{last}"));
    Some(format!("{}:{line}", plain::name(&short)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_last_of_its_path() {
        let place = |file: &str| place("stock", Some(file), Some(7)).unwrap();
        assert_eq!(place("src/shop.rs"), "shop.rs:7");
        assert_eq!(place("src/shop/mod.rs"), "shop/mod.rs:7");
        assert_eq!(place("mod.rs"), "mod.rs:7");
        assert_eq!(super::place("src/a.rs:7", Some("src/a.rs"), Some(7)), None);
        assert_eq!(super::place("stock", None, Some(7)), None);
    }
}
