//! The next step: one command, from what is there.

use crate::estimate::{Analysis, Load, TargetSummary, Verdict, WaitSummary};
use crate::plain;
use crate::report::words::shortened;
use crate::report::{real_ns, sections::label, untested_waits};
use crate::{Run, TargetKind};
use serde::Serialize;

/// A run for what is undecided shall not take longer, s, unless one target alone needs more.
const LONGEST: f64 = 600.0;

/// A run shall not take less, s.
const SHORTEST: f64 = 20.0;

/// Before its experiments a run looks what there is and probes its load: about so long, s.
const BEFORE: f64 = 5.0;

/// A target of which nothing is known needs so long, s.
const TYPICAL: f64 = 12.0;

/// Columns that a list of targets may take, for the command to fit on one line.
const LIST: usize = 29;

/// Columns that a name in a sentence has at most.
const NAME: usize = 40;

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Next {
    /// A command, to be typed into a shell.
    pub command: String,
    /// The purpose.
    pub why: String,
}

/// The next step, given what these runs tell.
pub fn next(runs: &[Run], analysis: &Analysis) -> Next {
    let to = |command: &str, why: &str| Next { command: command.into(), why: why.into() };
    let load = "cargo andweorc run --load 'COMMAND'";
    let longer = || format!("cargo andweorc run --duration {}", duration(2.0 * spent(runs)));
    if analysis.ranking_point().is_none() {
        return if runs.iter().all(|run| run.notes.is_empty()) {
            to(load, "with a command that sends requests, such as wrk")
        } else {
            to("cargo andweorc doctor", "after the notes above: is anything else missing?")
        };
    }
    let by_throughput = !analysis.ranked_by.metric.less_is_better();
    match analysis.load {
        Some(Load::Open | Load::Mixed) if by_throughput => {
            return to(
                load,
                "with clients that wait for answers; or give requests a span, whose latency is \
                 ranked by under any load",
            );
        }
        None if by_throughput && !analysis.targets.is_empty() => {
            return to(&longer(), "for more probes of the load");
        }
        _ => {}
    }
    if runs.iter().any(|run| run.joint.is_some()) {
        return of_services(runs, analysis);
    }
    if let Some((targets, seconds)) = open_questions(runs, analysis) {
        return to(
            &format!("cargo andweorc run --targets {targets} --duration {}", duration(seconds)),
            "with the program and load of this run (--bin, --example, --load, ..)",
        );
    }
    let best = analysis.targets.iter().find(|target| target.verdict == Verdict::Matters);
    match best {
        _ if analysis.targets.is_empty() => to(&longer(), "no target was tested"),
        Some(best) => to(
            "cargo andweorc run --compare HEAD",
            &format!(
                "once {} is faster, before you commit: what that really gives",
                shortened(&label(best), NAME)
            ),
        ),
        None if analysis.targets.iter().any(|it| it.kind == TargetKind::Function) => {
            to("cargo andweorc view", "the curves and all experiments")
        }
        None => to(
            "cargo andweorc run --targets functions",
            "nothing that was tested matters, which functions do?",
        ),
    }
}

/// The next step after a run of several services, whose targets can't be named to one of them and
/// which are not built by revisions.
fn of_services(runs: &[Run], analysis: &Analysis) -> Next {
    let is_open = |it: &TargetSummary| matches!(it.verdict, Verdict::Inconclusive { .. });
    let open = analysis.targets.iter().filter(|target| is_open(target)).count();
    let best = analysis.targets.iter().find(|target| target.verdict == Verdict::Matters);
    match best {
        _ if open > 0 || analysis.targets.is_empty() => Next {
            command: format!("cargo andweorc run --duration {}", duration(2.0 * spent(runs))),
            why: "with the services and the load of this run (--with, --listen, --load, ..)".into(),
        },
        Some(best) => Next {
            command: "cargo andweorc diff BEFORE AFTER".into(),
            why: format!(
                "of two folders, once {} is faster and all services were profiled again",
                shortened(&label(best), NAME)
            ),
        },
        None => Next {
            command: "cargo andweorc view".into(),
            why: "nothing that was tested matters; the curves and all experiments".into(),
        },
    }
}

/// The targets that are undecided, in the order of the ranking, and the waits that nobody tested,
/// as `--targets` takes them; as many as fit a line and a run. Second, how long that takes, s.
fn open_questions(runs: &[Run], analysis: &Analysis) -> Option<(String, f64)> {
    let targets = &analysis.targets;
    let typical = match targets.len() {
        0 => TYPICAL,
        n => targets.iter().map(|target| target.seconds).sum::<f64>() / n as f64,
    };
    let needs = |target: &TargetSummary| match target.verdict {
        Verdict::Inconclusive { more_seconds } => {
            Some(more_seconds.map_or(2.0 * target.seconds.max(typical), |it| it + target.seconds))
        }
        _ => None,
    };
    let undecided = targets.iter().filter_map(|it| Some((selector(it)?, needs(it)?)));
    // By default a run tests the longest ones that may matter.
    let has_waits = targets.iter().any(|target| target.kind == TargetKind::Wait);
    let waits = untested_waits(runs, analysis).into_iter().filter(|_| !has_waits);
    let waits = waits.filter_map(|wait| Some((of_wait(wait.summary)?, typical.max(TYPICAL))));
    let (mut names, mut seconds) = (Vec::<String>::new(), BEFORE);
    let mut width = 0;
    for (name, more) in undecided.chain(waits) {
        let fits = seconds + more <= LONGEST && width + name.len() < LIST;
        if names.is_empty() || fits {
            width += name.len() + 1;
            seconds += more;
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| (quoted(&names.join(",")), seconds))
}

/// How `--targets` names a target; `None` where it can't.
fn selector(target: &TargetSummary) -> Option<String> {
    let all_of_a_kind = ["lines", "functions", "functions-self"].contains(&&*target.name);
    let bare = target.kind == TargetKind::Span && !all_of_a_kind && !target.name.contains(':');
    let kind = if bare { String::new() } else { format!("{}:", target.kind) };
    can_be_named(&target.name).then(|| kind + &target.name)
}

fn of_wait(wait: &WaitSummary) -> Option<String> {
    can_be_named(&wait.name).then(|| format!("wait:{}", wait.name))
}

fn can_be_named(name: &str) -> bool {
    plain::is_plain(name)
        && plain::cut_name(name) == name
        && !name.contains(',')
        && name.trim() == name
        && !name.is_empty()
}

/// A word as a shell wants it.
fn quoted(word: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if word.chars().all(bare) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// How long the runs took, s.
fn spent(runs: &[Run]) -> f64 {
    runs.iter().map(real_ns).sum::<u64>() as f64 / 1e9
}

/// A time as `--duration` takes it, rounded up: `75s`, `12m`.
fn duration(seconds: f64) -> String {
    let seconds = (seconds.max(SHORTEST) / 5.0).ceil() * 5.0;
    if seconds > 120.0 { format!("{}m", (seconds / 60.0).ceil()) } else { format!("{seconds}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::tests::{measured, push, run};
    use crate::estimate::{Ranking, analyse};
    use crate::{NoteRecord, Record};
    use std::slice;

    fn of(runs: &[Run], change: impl FnOnce(&mut Analysis)) -> Next {
        let mut analysis = analyse(runs);
        change(&mut analysis);
        next(runs, &analysis)
    }

    #[test]
    fn undecided_targets_and_waits_are_tested_next() {
        let run = measured(4);
        let undecided = |analysis: &mut Analysis| {
            let more = Verdict::Inconclusive { more_seconds: Some(30.0) };
            analysis.targets[0].verdict = more;
            for (i, name) in ["it's", "a,b", "pay"].into_iter().enumerate() {
                analysis.waits.push(WaitSummary {
                    name: name.into(),
                    file: None,
                    line: Some(i as u32),
                    count: 1,
                    total_ns: 1_000,
                    by: Default::default(),
                });
            }
        };
        let next = of(&[run], undecided);
        // 18 s that it has and 30 s more; 18 s for each wait; 5 s before.
        assert_eq!(
            next.command,
            r"cargo andweorc run --targets 'hot,wait:it'\''s,wait:pay' --duration 95s"
        );
    }

    #[test]
    fn target_that_needs_too_long_is_left_for_a_later_run() {
        let next = of(&[measured(4)], |analysis| {
            for (target, more) in analysis.targets.iter_mut().zip([500.0, 2_000.0]) {
                target.verdict = Verdict::Inconclusive { more_seconds: Some(more) };
            }
        });
        assert_eq!(next.command, "cargo andweorc run --targets hot --duration 9m");
    }

    #[test]
    fn when_all_is_settled_the_fix_is_compared() {
        let next = of(&[measured(4)], |_| {});
        assert_eq!(next.command, "cargo andweorc run --compare HEAD");
        assert!(next.why.contains("once hot is faster"), "{next:?}");
    }

    #[test]
    fn without_a_point_or_a_load_that_tells_that_comes_first() {
        let mut empty = run();
        empty.points.clear();
        assert!(of(slice::from_ref(&empty), |_| {}).command.contains("--load"));
        empty.push(Record::Note(NoteRecord { at_ns: 0, text: "a filter".into() }));
        assert_eq!(of(&[empty], |_| {}).command, "cargo andweorc doctor");
        let open = of(&[measured(4)], |analysis| analysis.load = Some(Load::Open));
        assert!(open.why.contains("clients that wait"), "{open:?}");
        let mut unknown = run();
        push(&mut unknown, None, 0.0, 1_000, 1);
        push(&mut unknown, Some(1), 0.5, 1_000, 2);
        let next = of(&[unknown], |analysis| analysis.ranked_by = Ranking::default());
        assert_eq!(next.command, "cargo andweorc run --duration 20s");
    }
}
