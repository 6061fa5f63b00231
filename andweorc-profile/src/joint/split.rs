//! Where the latency of the entry's point goes, by service, as far as the records tell.
//!
//! The entry's wall time says for how long a request of it runs, stands in the run queue and waits.
//! The wall time of another service says the same of each request of that one, and the baselines,
//! which all services hold at the same time, how many of these there are for one of the entry. What
//! the entry waits beyond that is the network, queues before the services, and all else that it
//! waits for.
//!
//! No record says for whom a request waits, nor who calls whom. So requests of a service count as
//! the entry's, and what overlaps is not known: what is between the services has two bounds. It is
//! least where the requests of all services follow one another, and most where they all overlap.

use super::{Services, is_together};
use crate::estimate::{
    Analysis, LatencySplit, PointSummary, ServicePart, ServiceSummary, Split, TimeParts,
};
use crate::{PointKind, PointRecord, Run, TargetKind, TargetRecord, WallStack};
use std::collections::{BTreeMap, HashMap};

/// So many requests for one of the entry are one at most: the counts are of stretches that end
/// within a request.
const ONE: f64 = 1.05;

/// Name, file and line: a span that is a target, and its point.
type Place<'a> = (&'a str, Option<&'a str>, Option<u32>);

/// Requests of one span.
#[derive(Clone, Copy, Default)]
struct Requests {
    count: u64,
    /// Time of all of them.
    parts: TimeParts,
}

impl Requests {
    /// The time of one.
    fn mean(&self) -> TimeParts {
        self.parts.times(1.0 / self.count as f64)
    }
}

/// Where the latency of the first point of the analysis goes whose requests are recorded.
pub(super) fn split(
    runs: &[Run],
    others: &Services,
    services: &[ServiceSummary],
    analysis: &Analysis,
) -> Split {
    let ranked_by = analysis.ranked_by.point_index;
    let first = analysis.points.get(ranked_by).into_iter();
    let mut points = first.chain(&analysis.points).filter(|it| it.kind == PointKind::Latency);
    let found = points.find_map(|point| Some((point, requests_of(runs, place_of(point))?)));
    let Some((point, requests)) = found else {
        return untold(
            "no wall time of a point with latencies is recorded, in which a request is a span",
        );
    };
    let entry = requests.mean();
    let mut caveats = Vec::new();
    let mut parts = Vec::new();
    let mut most_at_once: f64 = 0.0;
    for ServiceSummary { service, .. } in services.iter().skip(1) {
        let of_service = others.get(service).map(Vec::as_slice).unwrap_or_default();
        match service_part(runs, of_service, point) {
            Ok((calls, time)) => {
                parts.push(ServicePart { service: service.clone(), calls, parts: time });
                // Some of several may overlap.
                let is_one = calls <= ONE;
                most_at_once = most_at_once.max(if is_one { time.total_ns() } else { 0.0 });
                if !is_one {
                    caveats.push(format!(
                        "a request makes {calls:.1} of `{service}`, and whether they overlap is not recorded"
                    ));
                }
            }
            Err(why) => caveats.push(format!("the time of `{service}` is not told apart: {why}")),
        }
    }
    let sum: f64 = parts.iter().map(|part| part.parts.total_ns()).sum();
    let between = |used: f64| (entry.wait_ns - used).max(0.0);
    if sum > entry.wait_ns {
        caveats.push(
            "the other services take longer than the entry waits: their requests overlap, or others call them too".to_owned(),
        );
    } else if parts.len() > 1 {
        caveats.push("whether requests of different services overlap is not recorded".to_owned());
    }
    Split::Told(LatencySplit {
        point: point.name.clone(),
        requests: requests.count,
        latency_ns: entry.total_ns(),
        entry,
        between_ns: [between(sum), between(most_at_once)],
        services: parts,
        caveats,
    })
}

fn untold(why: &str) -> Split {
    Split::Untold { why: why.to_owned() }
}

/// How many requests of a service there are for one of the entry's point, and their time; or why
/// that can't be told.
fn service_part(
    entry: &[Run],
    runs: &[Run],
    point: &PointSummary,
) -> Result<(f64, TimeParts), &'static str> {
    if runs.is_empty() {
        return Err("its profile is not among these");
    }
    let recorded = outermost(runs);
    if recorded.is_empty() {
        return Err("it recorded no wall time of requests");
    }
    let (of_entry, of_service) = counts(entry, runs, point);
    if of_entry == 0 {
        return Err("no baseline tells how often it is called");
    }
    let (mut calls, mut time) = (0.0, TimeParts::default());
    for (place, requests) in recorded {
        let Some(&count) = of_service.get(&place) else { continue };
        let many = count as f64 / of_entry as f64;
        calls += many;
        time = time.plus(requests.mean().times(many));
    }
    if calls > 0.0 { Ok((calls, time)) } else { Err("none of its requests is a point of its own") }
}

/// Hits of the entry's point, and of the points of a service, in the baselines that both held.
fn counts<'a>(
    entry: &[Run],
    runs: &'a [Run],
    point: &PointSummary,
) -> (u64, HashMap<Place<'a>, u64>) {
    let (mut of_entry, mut of_service) = (0, HashMap::new());
    for own in entry {
        let Some(id) = own.points.iter().find(|record| point.is(record)).map(|it| it.id) else {
            continue;
        };
        for run in runs.iter().filter(|run| is_together(own, run)) {
            let held = run.experiments.iter().filter_map(|one| Some((one.joint?, one)));
            let held: BTreeMap<u32, _> = held.collect();
            let points: HashMap<u32, &PointRecord> =
                run.points.iter().map(|record| (record.id, record)).collect();
            let is_kept = |target: Option<u32>, discarded: &Option<String>| {
                target.is_none() && discarded.is_none()
            };
            for one in own.experiments.iter().filter(|one| is_kept(one.target, &one.discarded)) {
                let Some(same) = one.joint.and_then(|number| held.get(&number)) else { continue };
                if !is_kept(same.target, &same.discarded) {
                    continue;
                }
                let hits = one.points.iter().filter(|count| count.point == id);
                of_entry += hits.map(|count| count.count).sum::<u64>();
                for count in &same.points {
                    let Some(record) = points.get(&count.point) else { continue };
                    if record.kind == PointKind::Latency {
                        let at = (&*record.name, record.file.as_deref(), record.line);
                        *of_service.entry(at).or_default() += count.count;
                    }
                }
            }
        }
    }
    (of_entry, of_service)
}

/// The requests of spans of this place, in all stacks that are not inside of another such span.
fn requests_of(runs: &[Run], wanted: Place<'_>) -> Option<Requests> {
    let mut all = Requests::default();
    for run in runs {
        let spans = spans(run);
        let is_wanted = |stack: &WallStack| {
            stack.target.and_then(|id| spans.get(&id)).is_some_and(|it| of_record(it) == wanted)
        };
        for (owner, stack) in owned(run, is_wanted) {
            all.add(stack, owner);
        }
    }
    (all.count > 0).then_some(all)
}

/// The requests of each span that no other is around.
fn outermost(runs: &[Run]) -> HashMap<Place<'_>, Requests> {
    let mut all: HashMap<Place<'_>, Requests> = HashMap::new();
    for run in runs {
        let spans = spans(run);
        let is_request = |stack: &WallStack| {
            stack.parent.is_none() && stack.target.is_some_and(|id| spans.contains_key(&id))
        };
        for (owner, stack) in owned(run, is_request) {
            if let Some(record) = owner.target.and_then(|id| spans.get(&id)) {
                all.entry(of_record(record)).or_default().add(stack, owner);
            }
        }
    }
    all.retain(|_, requests| requests.count > 0);
    all
}

impl Requests {
    /// Adds the time of a stack that is, or is inside of, the stack `of`.
    fn add(&mut self, stack: &WallStack, of: &WallStack) {
        if std::ptr::eq(stack, of) {
            self.count += stack.count;
        }
        let waits = [stack.outside_ns, stack.task_ns(), stack.unknown_ns];
        self.parts = self.parts.plus(TimeParts {
            work_ns: stack.running_ns as f64,
            queue_ns: stack.queue_ns as f64,
            timer_ns: stack.timer_ns as f64,
            wait_ns: waits.into_iter().fold(0, u64::saturating_add) as f64,
        });
    }
}

/// The stacks of a run that are wanted or are inside of one, each with the outermost that is.
fn owned(run: &Run, is_wanted: impl Fn(&WallStack) -> bool) -> Vec<(&WallStack, &WallStack)> {
    let mut found = Vec::new();
    for record in &run.wall {
        // Each comes after the one around it.
        let mut owners: Vec<Option<&WallStack>> = Vec::with_capacity(record.stacks.len());
        for stack in &record.stacks {
            let around = stack.parent.and_then(|parent| owners.get(parent as usize).copied());
            let owner = around.flatten().or_else(|| is_wanted(stack).then_some(stack));
            owners.push(owner);
            found.extend(owner.map(|owner| (owner, stack)));
        }
    }
    found
}

fn spans(run: &Run) -> HashMap<u32, &TargetRecord> {
    let spans = run.targets.iter().filter(|record| record.kind == TargetKind::Span);
    spans.map(|record| (record.id, record)).collect()
}

fn of_record(record: &TargetRecord) -> Place<'_> {
    (&record.name, record.file.as_deref(), record.line)
}

fn place_of(point: &PointSummary) -> Place<'_> {
    (&point.name, point.file.as_deref(), point.line)
}
