//! The report as Markdown (GitHub's), for a pull request, an issue or a wiki.

use crate::report::place;
use andweorc_profile::estimate::{self, Analysis, Effect, Metric, TargetSummary, Verdict};
use andweorc_profile::plain;
use andweorc_profile::report::{
    MAIN_METRICS, Section, advice, between_runs, change, counted, cpu_share, date, fills_time,
    load_name, load_warning, metric_name, needs, next, notes, real_ns, sections, tenths,
    untested_waits, value, values, why_nothing,
};
use andweorc_profile::{Run, TargetKind};

/// The program's figures now, a table of the targets by verdict with at most `top` of each, the
/// waits that nobody tested, the notes, and what to do next.
pub(super) fn markdown(runs: &[Run], top: usize) -> String {
    let analysis = estimate::analyse(runs);
    let mut out = String::new();
    if let Some(run) = runs.first() {
        out += &format!("## andweorc: {}\n\n", code(&run.header.program));
        out += &head(runs, run, &analysis);
    }
    if let Some(warning) = load_warning(&analysis) {
        out += &format!("> {}\n\n", text(&warning));
    }
    match analysis.ranking_point() {
        None => out += &format!("{}\n", why_nothing(runs)),
        Some(_) if analysis.targets.is_empty() => out += "No target was tested.\n",
        Some(point) => table(&mut out, &analysis, &point.name, top),
    }
    let waits = untested_waits(runs, &analysis);
    if !waits.is_empty() {
        out += "\nWaits that were not tested:\n\n";
    }
    for wait in waits.iter().take(top) {
        let it = wait.summary;
        let place = place(&it.name, it.file.as_deref(), it.line);
        let place = place.map_or(String::new(), |place| format!(" ({})", code(&place)));
        out += &format!("- {}{place}: {}\n", code(&it.name), wait.words);
    }
    let between = between_runs(runs.len(), &analysis);
    if !between.is_empty() {
        out += "\n### Between the runs\n\n";
        between.iter().for_each(|one| out += &format!("- {}\n", text(one)));
    }
    let advice = advice(runs, &analysis);
    if !advice.is_empty() {
        out += "\n### Advice\n\n";
        advice
            .iter()
            .for_each(|one| out += &format!("- {}: {}\n", code(&one.target), text(&one.text)));
    }
    let notes = notes(runs);
    if !notes.is_empty() {
        out += "\n### Notes\n\n";
        for note in notes {
            out += &format!("- {}\n", text(&note));
        }
    }
    let next = next(runs, &analysis);
    out += &format!("\nNext: {}, {}\n", code(&next.command), text(&next.why));
    out
}

/// The figures of the point that is ranked by, and how and where it was measured.
fn head(runs: &[Run], run: &Run, analysis: &Analysis) -> String {
    let mut out = String::new();
    if let Some(point) = analysis.ranking_point() {
        let now = values(&MAIN_METRICS, |metric| point.now.get(metric));
        out += &format!("{} now: **{now}**. ", code(&point.name));
    }
    let header = &run.header;
    out += &format!("On {}", code(&header.host));
    out += &date(header.start_unix_ms).map_or(String::new(), |date| format!(", {date} UTC"));
    let used = analysis.cores_used.map_or(String::new(), |used| format!("{used:.1} of "));
    let cores = counted(header.cores, "core");
    out += &format!(", {}, {used}{cores}.", load_name(analysis.load));
    let seconds = runs.iter().map(real_ns).sum::<u64>() as f64 / 1e9;
    out += &format!(
        " {} and {} in {seconds:.0} s",
        counted(analysis.experiments, "experiment"),
        counted(analysis.baselines, "baseline")
    );
    if analysis.discarded > 0 {
        out += &format!(
            ", {} of {} stretches left out (other work on the machine, a stop, or a limit)",
            analysis.discarded, analysis.stretches
        );
    }
    out + ".\n\n"
}

/// A row for each target, by verdict and in the order of the ranking.
fn table(out: &mut String, analysis: &Analysis, point: &str, top: usize) {
    let metric = analysis.ranked_by.metric;
    let all = || analysis.targets.iter().flat_map(|target| &target.effects);
    let mut speedups: Vec<f64> =
        all().filter(|effect| effect.metric == metric).map(|effect| effect.speedup).collect();
    speedups.sort_by(f64::total_cmp);
    speedups.dedup();
    let Some((&largest, lesser)) = speedups.split_last() else { return };
    let latencies: &[Metric] = match all().any(|effect| effect.metric == Metric::P99) {
        true => &[Metric::P50, Metric::P99],
        false => &[],
    };
    let percent = |speedup: f64| format!("{:.0} %", speedup * 100.0);

    *out += &format!(
        "What changes for {}: {}, [95 % interval]\n\n| verdict | target | of CPU |",
        code(point),
        metric_name(metric)
    );
    for &speedup in lesser {
        *out += &format!(" {} faster |", percent(speedup));
    }
    *out += &format!(" {} faster | then |", percent(largest));
    for latency in latencies {
        *out += &format!(" {latency} then |");
    }
    *out += "\n|---|---|--:|";
    *out += &"--:|".repeat(speedups.len() + 1 + latencies.len());
    *out += "\n";
    let mut left_out = 0;
    for section in sections(analysis) {
        left_out = left_out.max(section.targets.len().saturating_sub(top));
        for target in section.targets.iter().take(top) {
            let share = cpu_share(target).map_or(String::new(), percent);
            *out += &format!(
                "| {} | {} | {share} |",
                verdict(analysis, &section, target),
                title(target)
            );
            let judged = target.ranking_effect();
            for &speedup in lesser {
                let effect =
                    judged.and_then(|it| target.effect_at(it.point_index, metric, speedup));
                *out += &format!(" {} |", effect.map_or(String::new(), point_estimate));
            }
            *out += &judged.map_or(" not measured | |".to_owned(), |effect| {
                let at = match effect.speedup == largest {
                    true => String::new(),
                    false => format!(" at {}", percent(effect.speedup)),
                };
                let then = effect.value.map_or(String::new(), |then| value(metric, then));
                format!(" {}{at} | {then} |", change(effect))
            });
            for &latency in latencies {
                let effect =
                    judged.and_then(|it| target.effect_at(it.point_index, latency, it.speedup));
                *out += &format!(" {} |", effect.map_or(String::new(), with_value));
            }
            *out += "\n";
        }
    }
    for sentence in analysis.targets.iter().filter_map(fills_time) {
        *out += &format!("\n{}.\n", text(&sentence));
    }
    if left_out > 0 {
        *out += &format!("\nThere is more: `cargo andweorc report --top {}`.\n", top + left_out);
    }
}

/// The advice on a target: `**make faster**`, `undecided, 45 s more`.
fn verdict(analysis: &Analysis, section: &Section<'_>, target: &TargetSummary) -> String {
    let words = section.heading.to_lowercase();
    match section.verdict {
        Verdict::Matters | Verdict::Hurts => format!("**{words}**"),
        Verdict::Inconclusive { .. } => format!("{words}, {}", needs(analysis, target)),
        _ => words,
    }
}

/// `+12.5 %`
fn point_estimate(effect: &Effect) -> String {
    if effect.says_nothing() {
        return "not known".to_owned();
    }
    format!("{:+.1} %", tenths(effect.effect_pct))
}

/// `12.0 ms, -19.0 % [-27.0, -11.0]`
fn with_value(effect: &Effect) -> String {
    let then = effect.value.map_or(String::new(), |then| value(effect.metric, then) + ", ");
    then + &change(effect)
}

/// `` span `stock` (`src/shop.rs:12`) ``
fn title(target: &TargetSummary) -> String {
    let name = cell(&target.name);
    let title = match target.kind {
        TargetKind::Wait => format!("what {name} waits for"),
        kind => format!("{kind} {name}"),
    };
    match place(&target.name, target.file.as_deref(), target.line) {
        Some(place) => format!("{title} ({})", cell(&place)),
        None => title,
    }
}

/// A name as code, in which nothing has a meaning: no mark-up, no HTML, no `@mention`.
fn code(name: &str) -> String {
    let name = plain::name(name);
    let longest = name.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // What begins or ends with a backtick needs a space, and one is taken off again.
    let space =
        if name.starts_with('`') || name.ends_with('`') || name.is_empty() { " " } else { "" };
    format!("{fence}{space}{name}{space}{fence}")
}

/// A name as code in a table, where a bar would end the cell.
fn cell(name: &str) -> String {
    code(name).replace('|', r"\|")
}

/// A sentence; code in backticks stays code.
fn text(sentence: &str) -> String {
    let mut out = String::new();
    for (i, part) in plain::sentence(sentence).split('`').enumerate() {
        if i % 2 == 1 {
            out += &code(part);
            continue;
        }
        for c in part.chars() {
            if r"\*_{}[]<>#|~&@".contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}
