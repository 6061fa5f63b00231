//! The targets, one line each, by what they come to.

use super::table::{Cell, Row};
use super::{Page, Tone};
use crate::TargetKind;
use crate::estimate::{Analysis, Effect, Metric, TargetSummary, Verdict};
use crate::plain;
use crate::report::sections::{Section, cpu_share, fills_time, label, needs, place, sections};
use crate::report::words::{shortened, tenths, value, values, wide};

/// Columns that a name in a sentence has at most.
const NAME: usize = 40;

pub(super) fn write(page: &mut Page, analysis: &Analysis) {
    page.line("");
    let best = analysis.targets.iter().find(|target| target.verdict == Verdict::Matters);
    match best.map(lead) {
        Some(lead) => page.prose(Tone::Good, "", &lead),
        None if analysis.targets.is_empty() => page.line("No target was tested."),
        None => page.line("Nothing that was tested is known to make it faster."),
    }
    for section in sections(analysis) {
        page.line("");
        let shown = &section.targets[..section.targets.len().min(page.looks.top)];
        let rows = match section.verdict {
            Verdict::Matters | Verdict::Hurts => effects(analysis, &section, shown),
            Verdict::Nothing | Verdict::Inconclusive { .. } => shares(analysis, &section, shown),
        };
        page.table(&rows, section.targets.len() - shown.len());
    }
    for sentence in analysis.targets.iter().filter_map(fills_time) {
        page.line("");
        page.prose(Tone::Doubt, "", &format!("{sentence}."));
    }
}

/// `If stock (39 % of CPU) took half as long: 865/s, p50 9.10 ms, p99 12.0 ms`
fn lead(target: &TargetSummary) -> String {
    let Some(judged) = target.ranking_effect() else { return String::new() };
    let then = values(&[target.ranked_by, Metric::P50, Metric::P99], |metric| {
        target.effect_at(judged.point_index, metric, judged.speedup)?.value
    });
    let faster = if judged.speedup == 0.5 {
        "half as long".to_owned()
    } else {
        format!("{:.0} % less time", judged.speedup * 100.0)
    };
    let share = target.share.map(|share| format!(" ({} of CPU)", percent(share)));
    let share = share.unwrap_or_default();
    let then = if then.is_empty() { change(judged, 0) } else { then };
    format!("If {}{share} took {faster}: {then}", shortened(&label(target), NAME))
}

/// Rows with what a target would bring: rates, and the p99.
fn effects(analysis: &Analysis, section: &Section<'_>, shown: &[&TargetSummary]) -> Vec<Row> {
    let tone = if section.verdict == Verdict::Matters { Tone::Good } else { Tone::Bad };
    let (least, most) = speedups(analysis);
    let lesser = least < most;
    let has_p99 = shown.iter().any(|target| p99(target).is_some());
    let mut heading = vec![judged_heading(analysis, most), Cell::right("then".to_owned())];
    if lesser {
        heading.insert(0, Cell::right(format!("at {}", percent(least))));
    }
    if has_p99 {
        heading.push(Cell::left(format!("p99 at {}", percent(most))));
    }
    let row = |target: &&TargetSummary| {
        let judged = target.ranking_effect();
        let mut cells = Vec::new();
        if lesser {
            let effect = judged.and_then(|it| target.effect_at(it.point_index, it.metric, least));
            cells.push(Cell::right(effect.map_or(String::new(), point_estimate)));
        }
        cells.push(Cell::left(judged_cell(analysis, target, most)).in_tone(tone));
        let then = judged.and_then(|effect| Some(value(effect.metric, effect.value?)));
        cells.push(Cell::right(then.unwrap_or_default()));
        if has_p99 {
            cells.push(Cell::left(p99(target).map_or(String::new(), |effect| change(effect, 0))));
        }
        titled(target, cells)
    };
    [Row::heading(section.heading, heading)].into_iter().chain(shown.iter().map(row)).collect()
}

/// Rows with what is or may be nothing: the share of the CPU, and what would decide.
fn shares(analysis: &Analysis, section: &Section<'_>, shown: &[&TargetSummary]) -> Vec<Row> {
    let (_, most) = speedups(analysis);
    let undecided = matches!(section.verdict, Verdict::Inconclusive { .. });
    let mut heading = vec![Cell::right("CPU".to_owned()), judged_heading(analysis, most)];
    if undecided {
        heading.push(Cell::left("would tell".to_owned()));
    }
    let row = |target: &&TargetSummary| {
        let share = cpu_share(target).map_or(String::new(), percent);
        let mut cells = vec![Cell::right(share), Cell::left(judged_cell(analysis, target, most))];
        if undecided {
            cells.push(Cell::left(needs(analysis, target)).in_tone(Tone::Doubt));
        }
        titled(target, cells)
    };
    let name =
        if undecided { section.heading.to_owned() } else { format!("{} (<1 %)", section.heading) };
    [Row::heading(&name, heading)].into_iter().chain(shown.iter().map(row)).collect()
}

/// The row of a target.
fn titled(target: &TargetSummary, cells: Vec<Cell>) -> Row {
    let place = place(&target.name, target.file.as_deref(), target.line);
    // In a narrow column, as it is typed.
    let name = match target.kind {
        TargetKind::Wait => format!("wait:{}", plain::name(&target.name)),
        _ => label(target),
    };
    Row { name, place, is_heading: false, cells }
}

/// The least and the largest speedup that targets are judged and shown at.
fn speedups(analysis: &Analysis) -> (f64, f64) {
    let by = analysis.ranked_by;
    let effects = analysis.targets.iter().flat_map(|target| &target.effects);
    let speedups = effects.filter(|effect| effect.metric == by.metric).map(|it| it.speedup);
    speedups.fold((1.0, 0.0), |(least, most), it| (f64::min(least, it), f64::max(most, it)))
}

/// `rate at 50 % faster`
fn judged_heading(analysis: &Analysis, speedup: f64) -> Cell {
    let what = match analysis.ranked_by.metric {
        Metric::Throughput => "rate".to_owned(),
        metric => metric.to_string(),
    };
    Cell::left(format!("{what} at {} faster", percent(speedup)))
}

/// The effect that a target is judged by; where that is at another speedup than in the heading, or
/// on another point than others are, with these.
fn judged_cell(analysis: &Analysis, target: &TargetSummary, speedup: f64) -> String {
    let Some(effect) = target.ranking_effect() else { return "not measured".to_owned() };
    let mut cell = change(effect, 1);
    if effect.speedup != speedup {
        cell += &format!(" at {}", percent(effect.speedup));
    }
    if effect.point_index != analysis.ranked_by.point_index {
        cell += &format!(" on {}", shortened(&plain::name(&effect.point), 12));
    }
    cell
}

/// The p99 beside the effect that a target is judged by.
fn p99(target: &TargetSummary) -> Option<&Effect> {
    let judged = target.ranking_effect()?;
    target.effect_at(judged.point_index, Metric::P99, judged.speedup)
}

/// `+12.5 %`
fn point_estimate(effect: &Effect) -> String {
    if effect.says_nothing() {
        return "?".to_owned();
    }
    format!("{:+.1} %", tenths(effect.effect_pct))
}

/// `+32.2 % [30.5,33.9]`, with so many digits behind the point.
fn change(effect: &Effect, digits: usize) -> String {
    // Adding zero makes of a negative zero a positive one.
    let to = |x: f64| if digits == 0 { x.round() + 0.0 } else { tenths(x) };
    let pct = to(effect.effect_pct);
    match (effect.ci_low, effect.ci_high) {
        _ if effect.says_nothing() => wide(effect),
        (Some(low), Some(high)) => {
            format!("{pct:+.digits$} % [{:.digits$},{:.digits$}]", to(low), to(high))
        }
        _ => format!("{pct:+.digits$} % (once)"),
    }
}

/// `50 %`
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
