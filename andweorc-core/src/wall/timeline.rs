//! Timeline: the last polls and spans of each thread, as long as wall time is recorded.

use crate::time::Real;
use andweorc_profile::{TimelineEvent, TimelineRecord, TimelineThread};
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::mem;

/// So many events are kept of the threads of one ring, the latest; 24 bytes each, and about as many
/// in the profile.
const MAX_EVENTS: usize = 2048;

/// So many threads are told, those that were busy for longest.
const MAX_THREADS: usize = 20;

/// A poll, or a visit of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// Number of the thread.
    pub(super) thread: u32,
    /// Id of the target.
    pub(super) target: u32,
    pub(super) from: Real,
    pub(super) until: Real,
}

/// The last events of some threads.
#[derive(Debug, Default)]
pub(super) struct Ring {
    events: VecDeque<Event>,
    dropped: u64,
}

impl Ring {
    /// Adds an event, in the place of the oldest if there are too many.
    pub(super) fn push(&mut self, event: Event) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(event);
    }
}

/// Takes the events of all rings. Threads are called by their numbers in `names`; times are since
/// `start`.
pub(super) fn take(
    rings: impl Iterator<Item = impl std::ops::DerefMut<Target = Ring>>,
    names: &[String],
    start: Real,
) -> TimelineRecord {
    let mut record = TimelineRecord::default();
    let mut threads: HashMap<u32, (u64, Vec<Event>)> = HashMap::new();
    for mut ring in rings {
        let Ring { events, dropped } = mem::take(&mut *ring);
        record.dropped += dropped;
        for event in events {
            let (busy, events) = threads.entry(event.thread).or_default();
            *busy += u64::try_from((event.until - event.from).0).unwrap_or(0);
            events.push(event);
        }
    }
    let ns = |at: Real| u64::try_from((at - start).0).unwrap_or(0);
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|&(number, (busy, _))| (Reverse(busy), number));
    for (number, (_, mut events)) in threads {
        if record.threads.len() >= MAX_THREADS {
            record.left_out += 1;
            record.dropped += events.len() as u64;
            continue;
        }
        events.sort_by_key(|event| (event.from, Reverse(event.until)));
        let event = |it: &Event| TimelineEvent {
            target: it.target,
            begin_ns: ns(it.from),
            length_ns: ns(it.until).saturating_sub(ns(it.from)),
        };
        let name = names.get(number as usize).map_or("", |name| name);
        let (name, events) = (name.to_owned(), events.iter().map(event).collect());
        record.threads.push(TimelineThread { name, events });
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(thread: u32, target: u32, from: i64, until: i64) -> Event {
        Event { thread, target, from: Real(from), until: Real(until) }
    }

    fn taken(rings: &mut [Ring]) -> TimelineRecord {
        let names = ["main", "worker"].map(str::to_owned);
        take(rings.iter_mut(), &names, Real(1_000))
    }

    #[test]
    fn oldest_events_are_dropped_and_counted() {
        let mut ring = Ring::default();
        for at in 0..MAX_EVENTS as i64 + 3 {
            ring.push(event(1, 7, 1_000 + at, 1_001 + at));
        }
        let record = taken(&mut [ring]);
        assert_eq!((record.dropped, record.left_out), (3, 0));
        let [worker] = &record.threads[..] else { panic!("{record:?}") };
        assert_eq!((&*worker.name, worker.events.len()), ("worker", MAX_EVENTS));
        assert_eq!(worker.events[0], TimelineEvent { target: 7, begin_ns: 3, length_ns: 1 });
    }

    #[test]
    fn threads_that_were_busy_for_longest_are_told_in_the_order_of_their_events() {
        let mut rings = [Ring::default(), Ring::default()];
        // A span ends before the poll around it.
        rings[0].push(event(0, 5, 1_010, 1_020));
        rings[0].push(event(0, 4, 1_010, 1_500));
        for thread in 1..=MAX_THREADS as u32 {
            rings[1].push(event(thread, 4, 1_000, 1_000 + 100 - i64::from(thread)));
        }
        let record = taken(&mut rings);
        assert_eq!((record.threads.len(), record.left_out, record.dropped), (MAX_THREADS, 1, 1));
        let main = &record.threads[0];
        let targets: Vec<_> = main.events.iter().map(|event| event.target).collect();
        assert_eq!((&*main.name, &targets[..]), ("main", &[4, 5][..]));
        assert!(rings.iter().all(|ring| ring.events.is_empty()));
    }
}
