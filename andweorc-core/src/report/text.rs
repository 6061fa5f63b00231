//! The report for people.

use crate::estimate::{Analysis, Effect, Load, Metric, Probes, TargetSummary, Verdict};
use crate::plain;
use crate::profile::Run;
use crate::report::{between_runs, waits};
use std::fmt::Write;

/// `write!` to a `String`, which can't fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => { write!($out, $($text)*).expect("memory to write to") };
}

/// The same with a line's end.
macro_rules! line {
    ($out:expr, $($text:tt)*) => { writeln!($out, $($text)*).expect("memory to write to") };
}

/// From this share of the CPU on, a target that changes nothing is worth a line of its own.
const BURNS: f64 = 0.1;

/// The ranking in plain words, with what would change nothing, what is not known yet, and what was lost.
pub fn text(runs: &[Run], analysis: &Analysis) -> String {
    let mut out = String::new();
    head(&mut out, runs, analysis);
    let Some(point) = analysis.ranking_point() else {
        line!(out, "\n{}", why_nothing(runs));
        foot(&mut out, runs);
        return out;
    };
    let by = |verdict: fn(&Verdict) -> bool| {
        analysis.targets.iter().filter(move |target| verdict(&target.verdict))
    };
    if let Some(warning) = load_warning(analysis) {
        line!(out, "\n{warning}");
    }
    let (point, metric) = (&point.name, analysis.ranked_by.metric);
    let mut ranked = by(|v| matches!(v, Verdict::Matters)).enumerate().peekable();
    if ranked.peek().is_some() {
        line!(out, "\nWhat would make {} faster:", plain::name(point));
        for (i, target) in ranked {
            line!(out, "\n{:>3}. {}", i + 1, title(target));
            if_faster(&mut out, target, point, metric);
        }
    } else if !analysis.targets.is_empty() {
        line!(out, "\nNothing that was tested is known to make {} faster.", plain::name(point));
    } else {
        line!(out, "\nNo target was tested.");
    }
    section(
        &mut out,
        "What would make it slower (contention, most often):",
        by(|v| matches!(v, Verdict::Hurts)),
        |out, target| {
            line!(out, "   - {}", title(target));
            if_faster(out, target, point, metric);
        },
    );
    section(
        &mut out,
        "What would change nothing:",
        by(|v| matches!(v, Verdict::Nothing)),
        |out, target| {
            let burns = target.share.is_some_and(|share| share >= BURNS);
            let although = if burns { ", although it burns CPU" } else { "" };
            line!(out, "   - {}{although}: {}", title(target), best_effect(target, point, metric));
        },
    );
    let is_judged = analysis.load == Some(Load::Closed) || metric.less_is_better();
    section(
        &mut out,
        "Not known yet:",
        by(|v| matches!(v, Verdict::Inconclusive { .. })),
        |out, target| {
            let longer = match target.verdict {
                Verdict::Inconclusive { more_seconds: Some(more) } => {
                    format!("about {} more would tell", seconds(more.max(1.0)))
                }
                _ if target.ranking_effect().is_some_and(|effect| effect.runs > 1) => {
                    "more runs would tell".to_owned()
                }
                _ if is_judged => "run longer: how much longer can't be told yet".to_owned(),
                // One experiment makes no verdict; of more, the load is what is not known.
                _ if target.ranking_effect().is_some_and(|effect| effect.n > 1) => {
                    "not judged under this load".to_owned()
                }
                _ => "too few experiments; run longer".to_owned(),
            };
            line!(out, "   - {}: {}; {longer}", title(target), best_effect(target, point, metric));
        },
    );
    let between = between_runs(runs.len(), analysis);
    if !between.is_empty() {
        line!(out, "\nBetween the runs:");
        between.iter().for_each(|one| line!(out, "   - {one}"));
    }
    waits::write(&mut out, runs, analysis);
    foot(&mut out, runs);
    out
}

/// The warning for a load that is not known to wait for the program: its throughput does not tell
/// then. `None` where it waits.
pub fn load_warning(analysis: &Analysis) -> Option<String> {
    let of_delay = |probes: &Probes| {
        let share = |share: f64| (share * 100.0).round() + 0.0;
        let interval = match (probes.ci_low, probes.ci_high) {
            (Some(low), Some(high)) => format!(" [{}, {}]", share(low), share(high)),
            _ => String::new(),
        };
        format!("{} %{interval}", share(probes.share))
    };
    let by_latency = analysis.ranked_by.metric.less_is_better();
    let what = match (analysis.load, analysis.probes) {
        (Some(Load::Closed), _) => return None,
        (Some(Load::Open), _) => {
            let what = "The load comes at its own pace: delayed as a whole, the program still did all of it. Its throughput can't rise";
            return Some(if by_latency {
                format!("{what}, so targets are ranked\nby what they do to the mean latency.")
            } else {
                format!(
                    "{what}, and what is said of it\nbelow means nothing; give it a latency point (a span per request), or put a load on it that waits for answers."
                )
            });
        }
        (Some(Load::Mixed), Some(probes)) => format!(
            "Part of the load waits for the program and part does not, or the program only just keeps up: delayed as a whole, it made up for\n{} of \
             the delay.",
            of_delay(&probes)
        ),
        (_, None) if analysis.targets.is_empty() => return None,
        (_, None) => {
            "Whether the load waits for the program is not known: it was not probed.".to_owned()
        }
        (_, Some(probes)) if probes.n < 2 => {
            "Whether the load waits for the program is not known: only one probe could be used."
                .to_owned()
        }
        (_, Some(probes)) if !probes.agree => format!(
            "Whether the load waits for the program is not known: its {} probes differ by more than chance, as under a load that changes.",
            probes.n
        ),
        (_, Some(probes)) if !probes.are_possible() => format!(
            "Delayed as a whole in {} probes, the program made up for {} of the delay, which no load does (0 where it waits, 100\n\
             at its own pace): part of the program is delayed twice, or not at all, as it may be where it has sockets to itself in tasks that nobody wrapped.",
            probes.n,
            of_delay(&probes)
        ),
        (_, Some(probes)) => format!(
            "Whether the load waits for the program is not known: delayed as a whole in {} probes, it made up for\n{} of the delay; a load that \
             waits makes it 0, one at its own pace 100.",
            probes.n,
            of_delay(&probes)
        ),
    };
    Some(if by_latency {
        format!(
            "{what} So targets are ranked\nby what they do to the mean latency, which means the same under any load."
        )
    } else {
        format!(
            "{what} So nothing\nis said of what would raise its throughput; run longer, or give it a latency point (a span per request)."
        )
    })
}

/// What to say when no point was measured.
pub fn why_nothing(runs: &[Run]) -> &'static str {
    if runs.iter().any(|run| !run.notes.is_empty()) {
        "Nothing could be measured; the notes say why."
    } else {
        "No progress point was hit, so there is nothing to rank by. Mark a unit of work with `andweorc::progress!(\"name\")`, or\n\
         give requests a tracing span, with `andweorc::subscriber()`, or `andweorc::layer()` added to the program's own; then put load on the program."
    }
}

fn head(out: &mut String, runs: &[Run], analysis: &Analysis) {
    let Some(run) = runs.first() else {
        out.push_str("andweorc: no run\n");
        return;
    };
    let real: u64 = runs.iter().map(real_ns).sum();
    put!(
        out,
        "andweorc: {} on {} ({}{}), {} and {} in {}",
        plain::name(&run.header.program),
        plain::name(&run.header.host),
        counted(run.header.cores, "core"),
        run.header.build_of_tokio().map(|build| format!(", {build}")).unwrap_or_default(),
        counted(analysis.experiments, "experiment"),
        counted(analysis.baselines, "baseline"),
        seconds(real as f64 / 1e9)
    );
    if runs.len() > 1 {
        put!(out, ", {} runs", runs.len());
    }
    out.push('\n');
    if analysis.spoiled > 0 {
        line!(
            out,
            "{} of them were spoiled (other work on the machine, a stop, or a limit) and are left out.",
            analysis.spoiled
        );
    }
}

/// `1 experiment`, `2 experiments`
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// How long a run was in real ns, as far as its profile tells.
pub fn real_ns(run: &Run) -> u64 {
    let last = || run.experiments.last().map_or(0, |e| e.start_ns.saturating_add(e.real_ns));
    run.end.as_ref().map_or_else(last, |end| end.real_ns)
}

/// What the user should know: the notes of the runs, and what was lost.
pub fn notes(runs: &[Run]) -> Vec<String> {
    let mut notes = Vec::new();
    for run in runs {
        notes.extend(run.notes.iter().map(|note| note.text.clone()));
        if run.torn {
            notes.push(
                "the last line of the profile was torn off: the program was killed".to_owned(),
            );
        } else if run.end.is_none() {
            notes.push("the profile has no end: the program was killed, or still runs".to_owned());
        }
        if let Some(end) = &run.end {
            if end.lost_records > 0 {
                notes.push(format!("{} records could not be written", end.lost_records));
            }
            if end.lost_samples > 0 {
                notes.push(format!("{} samples were lost", end.lost_samples));
            }
        }
    }
    notes.dedup();
    notes
}

fn foot(out: &mut String, runs: &[Run]) {
    let notes = notes(runs);
    if !notes.is_empty() {
        out.push_str("\nNotes:\n");
        for note in notes {
            line!(out, "   - {}", plain::sentence(&note));
        }
    }
    out.push_str("\n[low, high] are 95 % intervals, and verdicts are by those at the largest speedup: nothing is within +-1 point, faster is above 0 and by more\nthan 1 point in the middle, of at least two experiments. Percentages of CPU overlap where spans nest.\n");
}

fn section<'a>(
    out: &mut String,
    heading: &str,
    targets: impl Iterator<Item = &'a TargetSummary>,
    mut line: impl FnMut(&mut String, &TargetSummary),
) {
    let mut targets = targets.peekable();
    if targets.peek().is_some() {
        line!(out, "\n{heading}");
        for target in targets {
            line(out, target);
        }
    }
}

/// `span stock (src/shop.rs:12), 27 % of CPU`
fn title(target: &TargetSummary) -> String {
    let mut title = format!("{} {}", target.kind, plain::name(&target.name));
    if let (Some(file), Some(line)) = (&target.file, target.line) {
        let place = format!("{}:{line}", plain::name(file));
        if !target.name.ends_with(&place) {
            put!(title, " ({place})");
        }
    }
    if let Some(share) = target.share {
        put!(title, ", {:.0} % of CPU", share * 100.0);
    }
    title
}

/// A line for each speedup: `if stock were 25 % faster: checkout throughput +15.1 % [14.0, 16.2], p99 -12.0 % [..]`
fn if_faster(out: &mut String, target: &TargetSummary, point: &str, metric: Metric) {
    for effect in target.effects_on(point, metric) {
        put!(
            out,
            "     if {} were {:.0} % faster: {} {} {}",
            plain::name(&target.name),
            effect.speedup * 100.0,
            plain::name(point),
            metric_name(metric),
            change(effect)
        );
        for (metric, name) in [(Metric::P50, "p50"), (Metric::P99, "p99")] {
            let same = |e: &&Effect| e.speedup == effect.speedup;
            if let Some(latency) = target.effects_on(point, metric).find(same) {
                put!(out, ", {name} {}", change(latency));
            }
        }
        out.push('\n');
    }
}

/// What a metric is called: `mean` alone would say nothing.
pub fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::Mean => "mean latency",
        Metric::P50 => "p50 latency",
        Metric::P90 => "p90 latency",
        Metric::P99 => "p99 latency",
    }
}

/// The effect at the largest speedup: `50 % faster: throughput +0.1 % [-0.4, 0.6]`
fn best_effect(target: &TargetSummary, point: &str, metric: Metric) -> String {
    target.effects_on(point, metric).next_back().map_or(String::new(), |effect| {
        let name = metric_name(metric);
        format!("{:.0} % faster, {name} {}", effect.speedup * 100.0, change(effect))
    })
}

/// An effect in words: `+15.1 % [14.0, 16.2]`, or `not known` where the interval says nothing.
pub fn change(effect: &Effect) -> String {
    match (effect.ci_low, effect.ci_high) {
        _ if effect.says_nothing() => "not known".to_owned(),
        (Some(low), Some(high)) => {
            format!("{:+.1} % [{:.1}, {:.1}]", tenths(effect.effect_pct), tenths(low), tenths(high))
        }
        _ => format!("{:+.1} % [one experiment]", tenths(effect.effect_pct)),
    }
}

/// Rounded to tenths, so that nothing is printed as `-0.0`.
pub fn tenths(x: f64) -> f64 {
    (x * 10.0).round() / 10.0 + 0.0
}

fn seconds(s: f64) -> String {
    if s >= 120.0 { format!("{:.0} min", s / 60.0) } else { format!("{s:.0} s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::analyse;
    use crate::estimate::tests::{measured, push, run};
    use crate::profile::{NoteRecord, Record, TargetKind};

    fn report(run: Run) -> String {
        let runs = [run];
        text(&runs, &analyse(&runs))
    }

    #[test]
    fn says_what_matters_and_what_changes_nothing_although_it_burns_cpu() {
        let report = report(measured(4));
        let lines = [
            "andweorc: shop on here (2 cores), 16 experiments and 19 baselines in 1 s",
            "  1. span hot (src/shop.rs:10), 20 % of CPU",
            "     if hot were 25 % faster: request throughput +10.0 % [9.",
            "p99 -9.1 % [-9.1, -9.1]",
            "   - span cold (src/shop.rs:20), 70 % of CPU, although it burns CPU: 50 % faster, throughput ",
            "the profile has no end",
        ];
        for line in lines {
            assert!(report.contains(line), "{line}\nis not in\n{report}");
        }
    }

    #[test]
    fn says_which_build_of_tokio_it_was_where_that_is_known() {
        let head = |tokio: Option<&str>, unstable| {
            let mut run = measured(1);
            (run.header.tokio, run.header.tokio_unstable) = (tokio.map(str::to_owned), unstable);
            let report = report(run);
            let (_, rest) = report.split_once("shop on here (").unwrap();
            rest.split_once(')').unwrap().0.to_owned()
        };
        assert_eq!(head(Some("1.54.1"), Some(true)), "2 cores, tokio_unstable");
        assert_eq!(head(Some("1.54.1"), Some(false)), "2 cores, stable tokio");
        assert_eq!(head(Some("1.54.1"), None), "2 cores");
        assert_eq!(head(None, Some(true)), "2 cores");
    }

    #[test]
    fn warns_of_a_load_that_does_not_wait() {
        let run = measured(2);
        let mut analysis = analyse(std::slice::from_ref(&run));
        let warning = "The load comes at its own pace";
        assert!(!text(std::slice::from_ref(&run), &analysis).contains(warning));
        analysis.load = Some(Load::Open);
        assert!(text(&[run], &analysis).contains(warning));
    }

    #[test]
    fn functions_and_lines_are_named_once() {
        let mut run = measured(3);
        run.targets[0].kind = TargetKind::Function;
        run.targets[0].name = "shop::stock::update".into();
        (run.targets[0].file, run.targets[0].line) = (None, None);
        run.targets[1].kind = TargetKind::Line;
        run.targets[1].name = "src/shop.rs:20".into();
        let report = report(run);
        assert!(report.contains("  1. function shop::stock::update, 20 % of CPU\n"), "{report}");
        assert!(report.contains("if shop::stock::update were 25 % faster"), "{report}");
        assert!(report.contains("- line src/shop.rs:20, 70 % of CPU"), "{report}");
    }

    #[test]
    fn says_how_to_add_a_point_when_there_is_none() {
        let mut empty = run();
        empty.points.clear();
        let report = report(empty);
        assert!(report.contains("progress!") && report.contains("andweorc::layer()"), "{report}");
    }

    #[test]
    fn nothing_has_no_minus_sign() {
        let shown = [-0.04, 0.04, -0.06, 1.25].map(|x| format!("{:+.1}", tenths(x)));
        assert_eq!(shown, ["+0.0", "+0.0", "-0.1", "+1.3"]);
    }

    #[test]
    fn says_what_is_not_known_yet() {
        let mut run = run();
        push(&mut run, None, 0.0, 1_000, 1);
        push(&mut run, Some(1), 0.5, 1_000, 2);
        let report = report(run);
        assert!(
            report.contains("waits for the program is not known: it was not probed"),
            "{report}"
        );
        assert!(report.contains("Not known yet:\n   - span hot"), "{report}");
        assert!(report.contains("+100.0 % [one experiment]"), "{report}");
    }

    #[test]
    fn escapes_what_could_rule_the_terminal() {
        let mut run = measured(3);
        run.targets[0].name = "a\u{1b}[2Jb\n".into();
        run.push(Record::Note(NoteRecord { at_ns: 0, text: "x\u{7}".into() }));
        let report = report(run);
        assert!(!report.contains(['\u{1b}', '\u{7}']), "{report}");
    }
}
