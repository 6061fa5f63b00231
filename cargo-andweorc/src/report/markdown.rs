//! The report as Markdown (GitHub's), for a pull request, an issue or a wiki.

use crate::report::place;
use andweorc_core::estimate::{self, Analysis, Effect, Metric, TargetSummary};
use andweorc_core::plain;
use andweorc_core::profile::Run;
use andweorc_core::report::{
    between_runs, counted, load_warning, metric_name, notes, real_ns, tenths, why_nothing,
};

/// The ranking as a table, then the notes.
pub(super) fn markdown(runs: &[Run]) -> String {
    let analysis = estimate::analyse(runs);
    let mut out = String::new();
    if let Some(run) = runs.first() {
        let seconds = runs.iter().map(real_ns).sum::<u64>() as f64 / 1e9;
        out += &format!(
            "## andweorc: {}\n\n{} and {} in {seconds:.0} s on {} ({}).",
            code(&run.header.program),
            counted(analysis.experiments, "experiment"),
            counted(analysis.baselines, "baseline"),
            code(&run.header.host),
            counted(run.header.cores, "core")
        );
        if analysis.spoiled > 0 {
            out += &format!(
                " Left out because other work on the machine spoiled them: {}.",
                analysis.spoiled
            );
        }
        out += "\n\n";
    }
    if let Some(warning) = load_warning(&analysis) {
        out += &format!("{}\n\n", text(&warning.replace('\n', " ")));
    }
    match analysis.ranking_point() {
        None => out += &format!("{}\n", why_nothing(runs)),
        Some(point) => table(&mut out, &analysis, &point.name),
    }
    let between = between_runs(runs.len(), &analysis);
    if !between.is_empty() {
        out += "\n### Between the runs\n\n";
        between.iter().for_each(|one| out += &format!("- {}\n", text(one)));
    }
    let notes = notes(runs);
    if !notes.is_empty() {
        out += "\n### Notes\n\n";
        for note in notes {
            out += &format!("- {}\n", text(&note));
        }
    }
    out
}

/// A row for each target, in the order of the ranking.
fn table(out: &mut String, analysis: &Analysis, point: &str) {
    if analysis.targets.is_empty() {
        *out += "No target was tested.\n";
        return;
    }
    let metric = analysis.ranked_by.metric;
    let mut speedups: Vec<f64> = analysis
        .targets
        .iter()
        .flat_map(|target| target.effects_on(point, metric).map(|e| e.speedup))
        .collect();
    speedups.sort_by(f64::total_cmp);
    speedups.dedup();
    let latency = analysis
        .targets
        .iter()
        .any(|target| target.effects_on(point, Metric::P99).next().is_some());

    *out += &format!("What changes for {}, [95 % interval]:\n\n", code(point));
    *out += "| # | target | of CPU | verdict |";
    for speedup in &speedups {
        *out += &format!(" {:.0} % faster: {} |", speedup * 100.0, metric_name(metric));
        if latency {
            *out += " p99 |";
        }
    }
    *out += "\n|--:|---|--:|---|";
    *out += &"--:|".repeat(speedups.len() * if latency { 2 } else { 1 });
    *out += "\n";
    for (i, target) in analysis.targets.iter().enumerate() {
        let share = target.share.map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default();
        *out += &format!("| {} | {} | {share} | {} |", i + 1, title(target), target.verdict);
        for &speedup in &speedups {
            *out += &format!(" {} |", change(target, point, metric, speedup));
            if latency {
                *out += &format!(" {} |", change(target, point, Metric::P99, speedup));
            }
        }
        *out += "\n";
    }
    let order = if metric.less_is_better() { "surest fall" } else { "lower end of the interval" };
    *out += &format!("\nTargets are ranked by the {order}.");
    *out += " *nothing*: within one point of zero, surely. *hurts*: faster, \
             it would make the service slower. *inconclusive*: not known yet, run longer.\n";
}

/// `` span `stock` (`src/shop.rs:12`) ``
fn title(target: &TargetSummary) -> String {
    let title = format!("{} {}", target.kind, cell(&target.name));
    match place(&target.name, target.file.as_deref(), target.line) {
        Some(place) => format!("{title} ({})", cell(&place)),
        None => title,
    }
}

/// `+15.1 % [14.0, 16.2]`, or nothing where there was no experiment.
fn change(target: &TargetSummary, point: &str, metric: Metric, speedup: f64) -> String {
    let effect = target.effects_on(point, metric).find(|effect| effect.speedup == speedup);
    effect.map_or(String::new(), |effect| {
        let &Effect { effect_pct, ci_low, ci_high, .. } = effect;
        match (ci_low, ci_high) {
            _ if effect.says_nothing() => "not known".to_owned(),
            (Some(low), Some(high)) => format!(
                "**{:+.1} %** [{:.1}, {:.1}]",
                tenths(effect_pct),
                tenths(low),
                tenths(high)
            ),
            _ => format!("{:+.1} % (one experiment)", tenths(effect_pct)),
        }
    })
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

/// The same in a table, where a bar would end the cell.
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
