//! Explanations when the hottest lines or functions are wanted, and there are none, and when it is
//! not known what called them.

use crate::experiment::choose::{MIN_SHARE, all_of};
use crate::settings::Scope;
use crate::spelled::spelled;
use crate::target::targets;
use andweorc_profile::{StacksRecord, TargetKind};
use andweorc_sampling::symbols::SymbolError;

/// Why `wanted`, the word for the hottest lines or functions, stands for none, after so many
/// samples. `lack` is what keeps samples from being charged to lines. `None` when it is no such
/// word.
pub(crate) fn diagnose(
    wanted: &str,
    samples: u64,
    scope: &Scope,
    lack: Option<&SymbolError>,
) -> Option<String> {
    let kind = all_of(wanted)?;
    let hottest = |kind| {
        let all = targets().into_iter().filter(move |it| it.kind() == kind && it.own_ns() > 0);
        all.max_by_key(|it| it.own_ns()).map(|it| it.name())
    };
    let has_functions = hottest(TargetKind::Function).is_some();
    let why = explain(kind, samples, hottest(kind), has_functions, scope, lack);
    Some(format!("{}, `{wanted}`: {why}", spelled("ANDWEORC_TARGETS")))
}

/// `hottest` is the name of the hottest target of this kind, if there is one.
fn explain(
    kind: TargetKind,
    samples: u64,
    hottest: Option<&str>,
    has_functions: bool,
    scope: &Scope,
    lack: Option<&SymbolError>,
) -> String {
    let what = if kind == TargetKind::Line { "line" } else { "function" };
    if let Some(hottest) = hottest {
        let least = MIN_SHARE * 100.0;
        return format!(
            "no {what} in scope ({scope}) has {least} % of the CPU time for itself; the hottest is `{hottest}`: name it, `{kind}:{hottest}`, or \
             take more code into scope with ANDWEORC_SCOPE (--scope)"
        );
    }
    if samples == 0 {
        return format!(
            "no {what} was found, since no sample was taken: of threads that use the CPU, those are sampled that poll profiled tasks or have \
             called `andweorc::start_profiling()`"
        );
    }
    match lack {
        Some(lack) if kind == TargetKind::Line && has_functions => return lack.to_string(),
        // Without line tables functions have names all the same, so that these would be in scope.
        Some(lack) if !matches!(lack, SymbolError::NoLines) => return lack.to_string(),
        _ => {}
    }
    let more = lack.map(|lack| format!(". Besides, {lack}")).unwrap_or_default();
    format!(
        "no {what} was found in scope: of {samples} samples none was in {scope}. Say which code is yours with ANDWEORC_SCOPE (--scope): crates, files, \
         regexes (`shop,src/stock/**,re:^shop::`). What a function without a frame pointer was called by is not seen: build with \
         RUSTFLAGS=\"-C force-frame-pointers=yes\"{more}"
    )
}

/// Chains that do not reach the start of their task or thread are worth a word from this part of
/// all on.
const MANY_UNKNOWN: f64 = 0.1;

/// Where the callers of much of the CPU time are not known: of how much, why, and what to do.
pub(crate) fn diagnose_chains(stacks: &StacksRecord) -> Option<String> {
    let StacksRecord { samples, cut_off, ended_early, .. } = *stacks;
    let part = |of: u64| of as f64 / samples.max(1) as f64;
    if part(cut_off + ended_early) < MANY_UNKNOWN {
        return None;
    }
    let remedy = if ended_early > cut_off {
        "code on the way has no frame pointers: build with RUSTFLAGS=\"-C \
         force-frame-pointers=yes\", as `cargo andweorc run` does"
    } else {
        "they are deeper than what is kept of a call chain: optimised builds have shorter ones"
    };
    let percent = 100.0 * part(cut_off + ended_early);
    Some(format!(
        "the outermost callers of {percent:.0} % of the CPU time are not known in the graph of CPU \
         time, since {remedy}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use TargetKind::{Function, FunctionSelf, Line};

    #[test]
    fn unknown_callers_are_told_with_their_part_and_a_remedy() {
        let stacks = |cut_off, ended_early| {
            let record = StacksRecord { samples: 200, cut_off, ended_early, ..Default::default() };
            diagnose_chains(&record)
        };
        assert_eq!(stacks(9, 10), None);
        let early = stacks(0, 60).unwrap();
        assert!(early.contains("30 %") && early.contains("force-frame-pointers=yes"), "{early}");
        let cut_off = stacks(30, 10).unwrap();
        assert!(cut_off.contains("20 %") && cut_off.contains("deeper"), "{cut_off}");
        assert_eq!(diagnose_chains(&StacksRecord::default()), None, "nothing was sampled");
    }

    #[test]
    fn missing_target_is_explained_with_scope_and_remedy() {
        let scope: Scope = "bank".parse().unwrap();
        let (no_lines, stripped) = (Some(&SymbolError::NoLines), Some(&SymbolError::Stripped));
        for (text, parts) in [
            (
                explain(Function, 90, None, false, &scope, None),
                ["no function", "in bank", "--scope"],
            ),
            (
                explain(Line, 90, None, false, &Scope::default(), None),
                ["no line", "own crates", "90"],
            ),
            (
                explain(Line, 90, None, true, &scope, no_lines),
                ["Cargo.toml", "debug", "no line information"],
            ),
            (
                explain(Function, 90, None, false, &scope, no_lines),
                ["none was in bank", "--scope", "inlined"],
            ),
            (
                explain(Function, 90, None, false, &scope, stripped),
                ["stripped", "`strip`", "Cargo.toml"],
            ),
            (
                explain(Line, 90, None, false, &scope, stripped),
                ["stripped", "`strip`", "line-tables-only"],
            ),
            (
                explain(Function, 0, None, false, &scope, stripped),
                ["no sample", "start_profiling", "CPU"],
            ),
            (
                explain(FunctionSelf, 90, Some("bank::pay"), true, &scope, None),
                ["2 %", "`function-self:bank::pay`", "(bank)"],
            ),
        ] {
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
        assert_eq!(diagnose("shop::stock", 90, &scope, None), None, "the name of something");
        let told = diagnose("functions-self", 90, &scope, None).unwrap();
        assert!(told.starts_with("ANDWEORC_TARGETS, `functions-self`: no function"), "{told}");
    }
}
