//! The first lines: what ran where and how, what it does now, and how far that can be trusted.

use super::{Page, Tone, WIDTH};
use crate::Run;
use crate::estimate::Analysis;
use crate::plain;
use crate::report::words::{seconds, shortened};
use crate::report::{MAIN_METRICS, caveats, counted, date, load_name, real_ns, values};
use textwrap::core::display_width;

/// Columns that a host's name has at least.
const HOST: usize = 12;

pub(super) fn write(page: &mut Page, runs: &[Run], analysis: &Analysis) {
    let line = first_line(runs, analysis);
    let line = page.looks.paint(Tone::Heading, &line);
    page.line(&line);
    let busy = caveats::busy(analysis);
    if let Some(busy) = &busy {
        page.prose(Tone::Bad, "", busy);
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
    let (discarded, stretches) = (analysis.discarded, analysis.stretches);
    if discarded > 0 && busy.is_none() {
        held += &format!(", {discarded} of {stretches} stretches left out");
    }
    if let Some(build) = runs[0].header.build_of_tokio() {
        held += &format!(", {build}");
    }
    if runs[0].header.sampling == Some(false) {
        held += ", built without sampling";
    }
    if let Some(others) = caveats::others(analysis) {
        held += &format!(", {others}");
    }
    page.prose(Tone::Aside, "", &held);
}

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
