//! Events of the processor by target, of all runs.

use crate::{EventsRecord, Run, TargetEvents, TargetKind, TargetRecord};
use serde::Serialize;
use std::cmp::Reverse;

/// With fewer overflows an event of a target is not told: it would be off by a quarter and more.
const MIN_OVERFLOWS: u64 = 16;

/// Events of all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EventSummary {
    /// The events, in the order in which they were asked for.
    pub events: Vec<EventRate>,
    /// The targets, the most of the first event first. Those of which no event is told are left
    /// out.
    pub targets: Vec<TargetEventSummary>,
    /// How long events were counted, s.
    pub seconds: f64,
    /// Threads of which nothing was counted.
    pub threads_left_out: u64,
}

/// An event of the whole program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EventRate {
    /// Its name, that of perf(1).
    pub name: String,
    /// How often it happens a second, in user space.
    pub per_s: f64,
    /// Overflows that were seen: each stands for as many events as all others of its time.
    pub overflows: u64,
    /// Overflows that were not seen.
    pub lost: u64,
    /// Part of the time for which the processor counted the event, 0 to 1: it counts only some at a
    /// time. The rest is taken to be like it.
    pub counted: f64,
}

/// Events of one target: of a span or a kind of task while it was the innermost one, of a function
/// while it was the innermost one in scope.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TargetEventSummary {
    /// Its kind; `None` for what happened outside of all spans and tasks.
    pub kind: Option<TargetKind>,
    /// Its name; `outside` for what happened outside of all spans and tasks.
    pub name: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line, where known.
    pub line: Option<u32>,
    /// Instructions for each cycle, where both are told.
    pub ipc: Option<f64>,
    /// Its part of each event, in the order of [`EventSummary::events`].
    pub events: Vec<TargetEvent>,
}

/// One event of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TargetEvent {
    /// How often it happens a second; `None` with too few overflows.
    pub per_s: Option<f64>,
    /// Part of all that the program has of it, 0 to 1; `None` as above.
    pub share: Option<f64>,
    /// Overflows that tell this.
    pub overflows: u64,
}

/// Sums of one event over all runs.
#[derive(Clone, Debug, Default)]
struct Sum {
    name: String,
    /// Events with those of the time for which the processor did not count.
    events: f64,
    overflows: u64,
    lost: u64,
    enabled_ns: u64,
    running_ns: u64,
}

/// By event: overflows, and the events that these stand for, with those of the time for which the
/// processor did not count, and those of overflows that were not seen.
type Counts = Vec<(u64, f64)>;

/// The events of all runs; `None` where none were counted.
pub(super) fn events(runs: &[Run]) -> Option<EventSummary> {
    let mut sums: Vec<Sum> = Vec::new();
    let mut targets: Vec<(Option<&TargetRecord>, Counts)> = Vec::new();
    let (mut real_ns, mut threads_left_out) = (0, 0);
    for (run, record) in runs.iter().flat_map(|run| run.events.iter().map(move |it| (run, it))) {
        real_ns += record.real_ns;
        threads_left_out += record.threads_left_out;
        let places = places(&mut sums, record);
        for of in &record.targets {
            let known = of.target.and_then(|id| run.targets.iter().find(|it| it.id == id));
            let is_same = |other: &Option<&TargetRecord>| {
                other.map(TargetRecord::identity) == known.map(TargetRecord::identity)
            };
            let at = targets.iter().position(|(other, _)| is_same(other)).unwrap_or_else(|| {
                targets.push((known, Counts::new()));
                targets.len() - 1
            });
            add(&mut targets[at].1, of, record, &places);
        }
    }
    if sums.is_empty() {
        return None;
    }
    let seconds = real_ns.max(1) as f64 / 1e9;
    let mut all: Vec<TargetEventSummary> = targets
        .into_iter()
        .map(|(target, counts)| summary(target, counts, &sums, seconds))
        .filter(|target| target.events.iter().any(|event| event.per_s.is_some()))
        .collect();
    let overflows = |target: &TargetEventSummary| {
        target.events.iter().map(|it| it.overflows).collect::<Vec<_>>()
    };
    all.sort_by_key(|target| Reverse(overflows(target)));
    let events = sums.into_iter().map(|sum| sum.rate(seconds)).collect();
    Some(EventSummary { events, targets: all, seconds, threads_left_out })
}

/// Adds the events of a record. Returns the place of each among all of them.
fn places(sums: &mut Vec<Sum>, record: &EventsRecord) -> Vec<usize> {
    let place = |event: &crate::EventTotal| {
        let at = sums.iter().position(|sum| sum.name == event.name).unwrap_or_else(|| {
            sums.push(Sum { name: event.name.clone(), ..Sum::default() });
            sums.len() - 1
        });
        let sum = &mut sums[at];
        sum.events += event.count as f64 * uncounted(event);
        sum.overflows = sum.overflows.saturating_add(event.overflows);
        sum.lost = sum.lost.saturating_add(event.lost);
        sum.enabled_ns = sum.enabled_ns.saturating_add(event.enabled_ns);
        sum.running_ns = sum.running_ns.saturating_add(event.running_ns);
        at
    };
    record.events.iter().map(place).collect()
}

/// By how much more often an event happened than it was counted.
fn uncounted(event: &crate::EventTotal) -> f64 {
    if event.running_ns == 0 { 1.0 } else { event.enabled_ns as f64 / event.running_ns as f64 }
}

/// Adds the events of one target in one record.
fn add(counts: &mut Counts, of: &TargetEvents, record: &EventsRecord, places: &[usize]) {
    for (number, (event, &place)) in record.events.iter().zip(places).enumerate() {
        if counts.len() <= place {
            counts.resize(place + 1, (0, 0.0));
        }
        let seen = event.overflows as f64 / (event.overflows + event.lost).max(1) as f64;
        let count = of.counts.get(number).copied().unwrap_or(0) as f64;
        let (overflows, events) = &mut counts[place];
        *overflows += of.overflows.get(number).copied().unwrap_or(0);
        *events += count * uncounted(event) / if seen > 0.0 { seen } else { 1.0 };
    }
}

fn summary(
    target: Option<&TargetRecord>,
    mut counts: Counts,
    sums: &[Sum],
    seconds: f64,
) -> TargetEventSummary {
    counts.resize(sums.len(), (0, 0.0));
    let event = |(&(overflows, events), sum): (&(u64, f64), &Sum)| {
        let is_told = overflows >= MIN_OVERFLOWS;
        TargetEvent {
            per_s: is_told.then_some(events / seconds),
            share: is_told.then_some((events / sum.events.max(1.0)).min(1.0)),
            overflows,
        }
    };
    let events: Vec<TargetEvent> = counts.iter().zip(sums).map(event).collect();
    let per_s = |name: &str| events[sums.iter().position(|sum| sum.name == name)?].per_s;
    let ipc = per_s("instructions").zip(per_s("cycles")).map(|(all, cycles)| all / cycles);
    TargetEventSummary {
        kind: target.map(|it| it.kind),
        name: target.map_or_else(|| "outside".to_owned(), |it| it.name.clone()),
        file: target.and_then(|it| it.file.clone()),
        line: target.and_then(|it| it.line),
        ipc,
        events,
    }
}

impl Sum {
    fn rate(self, seconds: f64) -> EventRate {
        let counted = self.running_ns as f64 / self.enabled_ns.max(1) as f64;
        EventRate {
            name: self.name,
            per_s: self.events / seconds,
            overflows: self.overflows,
            lost: self.lost,
            counted: counted.min(1.0),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::EventTotal;
    use crate::estimate::tests::run;

    fn total(name: &str, count: u64, [overflows, lost]: [u64; 2], running_ns: u64) -> EventTotal {
        EventTotal { name: name.into(), count, overflows, lost, enabled_ns: 400, running_ns }
    }

    fn of(target: Option<u32>, overflows: [u64; 2], counts: [u64; 2]) -> TargetEvents {
        TargetEvents { target, overflows: overflows.into(), counts: counts.into() }
    }

    /// A run with half a second of counting: cycles, of which a fifth of the overflows was lost,
    /// and instructions, which were counted for half of the time. Its span has this id.
    pub(crate) fn counting(id: u32) -> Run {
        let mut run = run();
        run.targets = vec![TargetRecord::new(id, TargetKind::Span, "stock")];
        run.events = vec![EventsRecord {
            real_ns: 500_000_000,
            cpu_ns: 1,
            events: vec![
                total("cycles", 1_000_000, [80, 20], 400),
                total("instructions", 1_000_000, [100, 0], 200),
            ],
            targets: vec![
                of(None, [16, 10], [160_000, 100_000]),
                of(Some(id), [64, 90], [640_000, 900_000]),
            ],
            threads_left_out: 1,
        }];
        run
    }

    #[test]
    fn what_was_lost_or_not_counted_is_taken_to_be_like_the_rest() {
        let all = events(&[counting(3)]).unwrap();
        let [cycles, instructions] = &all.events[..] else { panic!("{all:?}") };
        assert_eq!((cycles.per_s, cycles.lost, cycles.counted), (2e6, 20, 1.0));
        assert_eq!((instructions.per_s, instructions.counted), (4e6, 0.5));
        let [stock, outside] = &all.targets[..] else { panic!("{all:?}") };
        assert_eq!((&*stock.name, &*outside.name, outside.kind), ("stock", "outside", None));
        assert_eq!(stock.events[0].share, Some(0.8));
        assert_eq!(stock.events[1].per_s, Some(3.6e6));
        assert_eq!(stock.ipc, Some(2.25));
        let told = (outside.events[0].share, outside.events[1].per_s, outside.ipc);
        assert_eq!(told, (Some(0.2), None, None), "10 overflows tell nothing");
        assert_eq!((all.seconds, all.threads_left_out), (0.5, 1));
    }

    #[test]
    fn runs_are_taken_together_by_name_whatever_the_ids_and_the_order() {
        let mut other = counting(8);
        other.events[0].events.reverse();
        for of in &mut other.events[0].targets {
            of.overflows.reverse();
            of.counts.reverse();
        }
        let [one, both] =
            [events(&[counting(3)]), events(&[counting(3), other])].map(Option::unwrap);
        assert_eq!((both.seconds, both.threads_left_out), (1.0, 2));
        assert_eq!(both.targets.len(), 2);
        assert_eq!(both.targets[0].ipc, one.targets[0].ipc);
        assert_eq!(both.targets[0].events[0].overflows, 128);
        assert_eq!(both.targets[1].events[1].overflows, 20, "enough by now");
        assert_eq!(events(&[run()]), None);
    }
}
