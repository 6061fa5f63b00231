//! Services that were profiled together: what each could bring, what was lost in it, and where the
//! latency of the entry's point goes.

use super::table::{Cell, Row};
use super::{Page, Tone};
use crate::TargetKind;
use crate::estimate::{
    Analysis, JointSummary, LatencySplit, ServiceSummary, Split, TargetSummary, TimeParts,
};
use crate::plain;
use crate::report::sections::label;
use crate::report::words::{digits, shortened, time};
use crate::report::{change, counted};

/// Columns that the name of a target has at most.
const TARGET: usize = 20;

/// Columns that the name of a point has at most in a heading.
const POINT: usize = 12;

/// So many states of a service's time are told.
const STATES: usize = 2;

/// So many reasons are told why stretches of a service were left out.
const REASONS: usize = 3;

pub(super) fn write(page: &mut Page, analysis: &Analysis) {
    let Some(joint) = &analysis.joint else { return };
    page.line("");
    let point = analysis.ranking_point().map_or("nothing".into(), |it| plain::name(&it.name));
    let heading = [Cell::left(format!("best for {}", shortened(&point, TARGET)))];
    let counts = ["cores", "held", "left out"].map(|it| Cell::right(it.to_owned()));
    let mut rows = vec![Row::heading("SERVICES", heading.into_iter().chain(counts))];
    rows.extend(joint.services.iter().map(|service| row(analysis, service)));
    page.table(&rows, 0);
    for service in &joint.services {
        for sentence in losses(service) {
            page.prose(Tone::Aside, "  ", &sentence);
        }
    }
    let entry = plain::name(&joint.entry);
    let whose = format!("Ranked by the points of {entry}; targets without a service are its own.");
    page.prose(Tone::Aside, "  ", &whose);
    page.line("");
    match &joint.split {
        Split::Told(split) => parts(page, joint, split),
        Split::Untold { why } => {
            let sentence = format!("Where its latency goes by service can't be told: {why}.");
            page.prose(Tone::Aside, "", &sentence);
        }
    }
}

fn row(analysis: &Analysis, service: &ServiceSummary) -> Row {
    let best = service.targets.first().map(|&at| best(&analysis.targets[at]));
    let cores = service.cores.map(|cores| match service.cores_used {
        Some(used) => format!("{used:.1} of {cores}"),
        None => cores.to_string(),
    });
    let is_there = service.program.is_some();
    let counts = [service.stretches, service.discarded_ones()];
    let counts = counts.map(|count| if is_there { count.to_string() } else { String::new() });
    let cells = [cores.unwrap_or_else(|| "no profile".to_owned())].into_iter().chain(counts);
    let best = Cell::left(best.unwrap_or_else(|| "nothing was tested".to_owned()));
    Row {
        name: plain::name(&service.service).into_owned(),
        place: None,
        is_heading: false,
        cells: [best].into_iter().chain(cells.map(Cell::right)).collect(),
    }
}

/// The first target of a service, and what it would bring: `lookup -12.0 % [-13.1, -10.9]`.
fn best(target: &TargetSummary) -> String {
    let name = label(target);
    let own = match target.kind {
        TargetKind::Remote => name.split_once('/').map_or(&*name, |(_, own)| own),
        _ => &*name,
    };
    let effect = target.ranking_effect().map_or("not measured".to_owned(), change);
    format!("{} {effect}", shortened(own, TARGET))
}

/// Sentences on what was lost in a service.
fn losses(service: &ServiceSummary) -> Vec<String> {
    let name = plain::name(&service.service);
    if service.program.is_none() {
        let sentence = format!(
            "{name} took part, and its profile is not among these: name it too, to see its share, \
             its time and what was lost in it."
        );
        return vec![sentence];
    }
    let mut all = Vec::new();
    if service.absent > 0 {
        all.push(format!(
            "{name} has no record of {} that others held: it came later, or was lost.",
            counted(service.absent, "experiment")
        ));
    }
    if !service.discarded.is_empty() {
        let told = service.discarded.iter().take(REASONS);
        let told: Vec<String> =
            told.map(|it| format!("{} ({})", plain::sentence(&it.reason), it.count)).collect();
        let more = service.discarded.len().saturating_sub(REASONS);
        let more = if more > 0 { format!(", and {more} more reasons") } else { String::new() };
        all.push(format!("Left out in {name}: {}{more}.", told.join("; ")));
    }
    all
}

/// Where the latency of a point goes.
fn parts(page: &mut Page, joint: &JointSummary, split: &LatencySplit) {
    let share = |ns: f64| format!("{:.0} %", 100.0 * ns / split.latency_ns);
    let point = shortened(&plain::name(&split.point), POINT);
    let heading = format!("A REQUEST OF {point}");
    let mut rows = vec![Row::heading(&heading, [Cell::right(time(split.latency_ns))])];
    let mut add = |name: String, ns: String, share: String, words: String| {
        let cells = vec![Cell::right(ns), Cell::right(share), Cell::left(words)];
        rows.push(Row { name, place: None, is_heading: false, cells });
    };
    // Its waits are the time of the others, and what lies between.
    let own = TimeParts { wait_ns: 0.0, ..split.entry };
    let entry = plain::name(&joint.entry).into_owned();
    add(entry, time(own.total_ns()), share(own.total_ns()), states(own));
    for part in &split.services {
        let name = plain::name(&part.service);
        let total = part.parts.total_ns();
        let calls = format!("{name} x{}", digits(part.calls));
        add(calls, time(total), share(total), states(part.parts));
    }
    let [least, most] = split.between_ns;
    let (ns, of_all) = match time(least) == time(most) {
        true => (time(least), share(least)),
        false => {
            (format!("{}-{}", time(least), time(most)), format!("{}-{}", share(least), share(most)))
        }
    };
    add("between them".to_owned(), ns, of_all, "network, queues, other waits".to_owned());
    page.table(&rows, 0);
    for caveat in &split.caveats {
        page.prose(Tone::Aside, "  - ", &plain::sentence(caveat));
    }
}

/// The states that most of some time is of, the longest first: `work 1.20 ms, waits 0.40 ms`.
fn states(parts: TimeParts) -> String {
    let mut all = [
        ("work", parts.work_ns),
        ("queue", parts.queue_ns),
        ("timers", parts.timer_ns),
        ("waits", parts.wait_ns),
    ];
    all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let told = all.into_iter().filter(|(_, ns)| *ns > 0.0).take(STATES);
    told.map(|(name, ns)| format!("{name} {}", time(ns))).collect::<Vec<_>>().join(", ")
}
