//! A timeline by kinds of tasks: each poll, and the spans that it visited, beside the thread it was
//! on.

use andweorc_profile::{TargetKind, TargetRecord, TimelineEvent, TimelineThread};
use std::cmp::Reverse;
use std::collections::HashMap;

/// So many kinds of tasks have a track, those that were polled for longest; the rest share one.
const MAX_TRACKS: usize = 20;

/// A poll or a visit of a span, on a thread.
#[derive(Debug)]
pub(super) struct TaskEvent<'a> {
    pub(super) event: TimelineEvent,
    pub(super) target: &'a TargetRecord,
    pub(super) thread: &'a TimelineThread,
}

/// The track of one kind of task, or of several.
#[derive(Debug)]
pub(super) struct TaskTrack<'a> {
    /// Kinds of tasks in it; one but for the last track.
    pub(super) kinds: Vec<&'a TargetRecord>,
    /// Events in the order of their begin.
    pub(super) events: Vec<TaskEvent<'a>>,
    polled_ns: u64,
}

impl<'a> TaskTrack<'a> {
    fn new(kind: &'a TargetRecord) -> TaskTrack<'a> {
        TaskTrack { kinds: vec![kind], events: Vec::new(), polled_ns: 0 }
    }

    fn merge(mut self, other: TaskTrack<'a>) -> TaskTrack<'a> {
        self.kinds.extend(other.kinds);
        self.events.extend(other.events);
        self
    }
}

/// The tracks of these threads, the kind of task first that was polled for longest. What is outside
/// of all polls is in none of them.
pub(super) fn task_tracks<'a>(
    threads: impl Iterator<Item = &'a TimelineThread>,
    targets: &HashMap<u32, &'a TargetRecord>,
) -> Vec<TaskTrack<'a>> {
    let mut tracks: HashMap<u32, TaskTrack<'a>> = HashMap::new();
    for thread in threads {
        // The polls that the thread is in, each with its end.
        let mut polls: Vec<(u64, &TargetRecord)> = Vec::new();
        for &event in &thread.events {
            let Some(&target) = targets.get(&event.target) else { continue };
            let end = event.begin_ns.saturating_add(event.length_ns);
            while polls.pop_if(|(until, _)| *until <= event.begin_ns).is_some() {}
            let is_poll = target.kind == TargetKind::Task;
            if is_poll {
                polls.push((end, target));
            }
            let Some(&(_, kind)) = polls.last() else { continue };
            let track = tracks.entry(kind.id).or_insert_with(|| TaskTrack::new(kind));
            if is_poll {
                track.polled_ns = track.polled_ns.saturating_add(event.length_ns);
            }
            track.events.push(TaskEvent { event, target, thread });
        }
    }
    let mut tracks: Vec<TaskTrack<'a>> = tracks.into_values().collect();
    tracks.sort_by_key(|track| (Reverse(track.polled_ns), track.kinds[0].id));
    let others = tracks.split_off(MAX_TRACKS.min(tracks.len()));
    tracks.extend(others.into_iter().reduce(TaskTrack::merge));
    for track in &mut tracks {
        track.events.sort_by_key(|it| (it.event.begin_ns, Reverse(it.event.length_ns)));
    }
    tracks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(id: u32, kind: TargetKind) -> TargetRecord {
        TargetRecord::new(id, kind, format!("target {id}"))
    }

    fn thread(name: &str, events: &[(u32, u64, u64)]) -> TimelineThread {
        let event = |&(target, begin_ns, length_ns)| TimelineEvent { target, begin_ns, length_ns };
        TimelineThread { name: name.into(), events: events.iter().map(event).collect() }
    }

    /// The target and the begin of each event.
    fn places(track: &TaskTrack<'_>) -> Vec<(u32, u64)> {
        track.events.iter().map(|it| (it.event.target, it.event.begin_ns)).collect()
    }

    #[test]
    fn spans_are_in_the_track_of_the_poll_around_them_on_whichever_thread() {
        let of = [target(1, TargetKind::Task), target(2, TargetKind::Task)];
        let spans = [target(3, TargetKind::Span)];
        let targets = of.iter().chain(&spans).map(|it| (it.id, it)).collect();
        let threads = [
            // A span outside of polls, a poll with a span, and a poll in which another one is.
            thread(
                "a",
                &[(3, 0, 10), (1, 10, 10), (3, 12, 5), (1, 30, 20), (2, 35, 5), (3, 42, 1)],
            ),
            thread("b", &[(1, 11, 4), (3, 20, 5), (9, 22, 1)]),
        ];
        let tracks = task_tracks(threads.iter(), &targets);
        let [first, second] = &tracks[..] else { panic!("{tracks:?}") };
        assert_eq!(places(first), [(1, 10), (1, 11), (3, 12), (1, 30), (3, 42)]);
        assert_eq!(places(second), [(2, 35)]);
        assert_eq!((first.kinds[0].id, &*first.events[1].thread.name), (1, "b"));
    }

    #[test]
    fn kinds_that_were_polled_for_the_shortest_time_share_a_track() {
        let many = MAX_TRACKS as u32 + 3;
        let of: Vec<_> = (0..many).map(|id| target(id, TargetKind::Task)).collect();
        let targets = of.iter().map(|it| (it.id, it)).collect();
        let polls: Vec<_> =
            (0..many).map(|id| (id, 1_000 * u64::from(id), u64::from(id))).collect();
        let threads = [thread("a", &polls)];
        let tracks = task_tracks(threads.iter(), &targets);
        assert_eq!(tracks.len(), MAX_TRACKS + 1);
        assert_eq!((tracks[0].kinds[0].id, tracks[0].kinds.len()), (many - 1, 1));
        let last = tracks.last().unwrap();
        assert_eq!((last.kinds.len(), places(last)), (3, vec![(0, 0), (1, 1_000), (2, 2_000)]));
    }
}
