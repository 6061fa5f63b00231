//! The first lines: what ran where and how, what it does now, and how far that can be trusted.

use super::{Page, Tone, WIDTH};
use crate::Run;
use crate::estimate::Analysis;
use crate::plain;
use crate::report::words::{seconds, shortened};
use crate::report::{MAIN_METRICS, counted, date, load_name, real_ns, values};
use textwrap::core::display_width;

/// From this share of the stretches on, what was left out is told first.
const NOISY: f64 = 0.1;

/// Columns that a host's name has at least.
const HOST: usize = 12;

pub(super) fn write(page: &mut Page, runs: &[Run], analysis: &Analysis) {
    let line = first_line(runs, analysis);
    let line = page.looks.paint(Tone::Heading, &line);
    page.line(&line);
    let (spoiled, stretches) = (analysis.spoiled, analysis.stretches);
    let share = spoiled as f64 / stretches.max(1) as f64;
    if share >= NOISY {
        let text = format!(
            "The machine was busy with something else, stood still, or met a limit: {:.0} % of \
             stretches ({spoiled} of {stretches}) left out.",
            share * 100.0
        );
        page.prose(Tone::Bad, "", &text);
    }
    if let Some(now) = now(analysis) {
        page.line(&now);
    }
    let real: u64 = runs.iter().map(real_ns).sum();
    let mut held = format!(
        "{} and {} in {}",
        counted(analysis.experiments, "experiment"),
        counted(analysis.baselines, "baseline"),
        seconds(real as f64 / 1e9)
    );
    if runs.len() > 1 {
        held += &format!(", {}", counted(runs.len(), "run"));
    }
    if spoiled > 0 && share < NOISY {
        held += &format!(", {spoiled} of {stretches} stretches left out");
    }
    if let Some(build) = runs[0].header.build_of_tokio() {
        held += &format!(", {build}");
    }
    if let Some(others) = analysis.cores_used_by_others.filter(|&others| others >= OTHERS) {
        held += &format!(", other processes used {others:.1} cores");
    }
    page.prose(Tone::Aside, "", &held);
}

/// Other processes are told of from so many cores on that they use.
const OTHERS: f64 = 0.1;

/// `andweorc: shop on here, 2026-11-21 07:57 UTC, closed load, 1.2 of 2 cores`
fn first_line(runs: &[Run], analysis: &Analysis) -> String {
    let header = &runs[0].header;
    let date = date(header.start_unix_ms).map_or(String::new(), |date| format!(", {date} UTC"));
    let cores = analysis.cores_used.map_or_else(
        || counted(header.cores, "core"),
        |used| format!("{used:.1} of {}", counted(header.cores, "core")),
    );
    let rest = format!("{date}, {}, {cores}", load_name(analysis.load));
    let (program, host) = (plain::name(&header.program), plain::name(&header.host));
    let room = WIDTH.saturating_sub(display_width("andweorc:  on ") + display_width(&rest));
    let program = shortened(&program, room.saturating_sub(display_width(&host).min(HOST)));
    let host = shortened(&host, room.saturating_sub(display_width(&program)));
    format!("andweorc: {program} on {host}{rest}")
}

/// `checkout now: 654/s, mean 12.3 ms, p50 12.1 ms, p99 14.8 ms`; `None` where nothing is known.
fn now(analysis: &Analysis) -> Option<String> {
    let point = analysis.ranking_point()?;
    let now = values(&MAIN_METRICS, |metric| point.now.get(metric));
    let room = WIDTH.saturating_sub(display_width(" now: ") + display_width(&now));
    (!now.is_empty()).then(|| format!("{} now: {now}", shortened(&plain::name(&point.name), room)))
}
