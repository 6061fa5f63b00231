//! The timeline before the first experiment, and the experiments after it, as the Firefox
//! Profiler reads them.

mod task_tracks;

use andweorc_profile::report::named;
use andweorc_profile::{
    ExperimentRecord, Run, TargetKind, TargetRecord, TimelineEvent, TimelineRecord, TimelineThread,
    plain,
};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;
use task_tracks::{TaskTrack, task_tracks};

/// Time between two samples of a thread, ns.
const SAMPLE_NS: u64 = 1_000_000;

/// So many samples a thread has at most: where the timeline is longer, they are farther apart.
const MAX_SAMPLES: u64 = 20_000;

/// The document of these runs.
///
/// # Errors
///
/// When none of them has a timeline.
pub(super) fn firefox(runs: &[Run]) -> Result<String, Box<dyn Error>> {
    if runs.iter().all(|run| run.timeline.is_empty()) {
        return Err("no timeline was recorded in this profile: an older version wrote it, or the \
                    program had no load while it was observed"
            .into());
    }
    let header = &runs[0].header;
    let start = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::from_millis(
        header.start_unix_ms,
    ));
    let interval = SamplingInterval::from_nanos(SAMPLE_NS);
    let mut profile = Profile::new(&plain::name(&header.program), start, interval);
    let categories = Categories::of(&mut profile);
    for (number, run) in runs.iter().enumerate() {
        // Runs lie beside each other, each from its own start.
        let pid = number as u32 + 1;
        let name = plain::name(&run.header.program);
        let process = profile.add_process(&name, pid, at(0));
        Document { profile: &mut profile, categories, process, tid: pid }.add(run);
    }
    Ok(serde_json::to_string(&profile)? + "\n")
}

/// The kinds of things that are told.
#[derive(Clone, Copy)]
struct Categories {
    poll: CategoryHandle,
    span: CategoryHandle,
    experiment: CategoryHandle,
    baseline: CategoryHandle,
}

impl Categories {
    fn of(profile: &mut Profile) -> Categories {
        Categories {
            poll: profile.add_category("Polls", CategoryColor::Blue),
            span: profile.add_category("Spans", CategoryColor::Green),
            experiment: profile.add_category("Experiments", CategoryColor::Orange),
            baseline: profile.add_category("Baselines", CategoryColor::Gray),
        }
    }
}

/// A stretch of time with a name.
struct Band {
    name: StringHandle,
    category: CategoryHandle,
    details: StringHandle,
}

impl StaticSchemaMarker for Band {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "andweorc";
    const CHART_LABEL: Option<&'static str> = Some("{marker.name} {marker.data.details}");
    const TOOLTIP_LABEL: Option<&'static str> = Some("{marker.name} {marker.data.details}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name} {marker.data.details}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "details",
        label: "Details",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.details
    }

    fn number_field_value(&self, _: u32) -> f64 {
        unreachable!("its only field is a string")
    }
}

/// A moment, ns since the start of the run.
fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}

/// The name of a thread, whether or not it has one.
fn thread_name(thread: &TimelineThread) -> &str {
    if thread.name.is_empty() { "thread" } else { &thread.name }
}

/// One run, as it is added to the document.
struct Document<'a> {
    profile: &'a mut Profile,
    categories: Categories,
    process: ProcessHandle,
    /// Number of the thread that is added next; the document makes it one of its own.
    tid: u32,
}

impl Document<'_> {
    fn add(&mut self, run: &Run) {
        let targets: HashMap<u32, &TargetRecord> =
            run.targets.iter().map(|target| (target.id, target)).collect();
        let experiments = self.thread("experiments");
        for experiment in &run.experiments {
            self.experiment(experiments, experiment, &targets);
        }
        for record in &run.timeline {
            self.losses(experiments, record);
        }
        for thread in run.timeline.iter().flat_map(|record| &record.threads) {
            let handle = self.thread(thread_name(thread));
            let named = |event: &TimelineEvent| Some((*event, *targets.get(&event.target)?));
            let events: Vec<_> = thread.events.iter().filter_map(named).collect();
            self.markers(handle, &events);
            self.samples(handle, &events);
        }
        let threads = run.timeline.iter().flat_map(|record| &record.threads);
        for track in task_tracks(threads, &targets) {
            self.task_track(&track);
        }
    }

    /// The polls of one kind of task, or of all that have no track of their own, and where each
    /// was. Tasks of a kind are polled beside each other, so that there are no samples.
    fn task_track(&mut self, track: &TaskTrack<'_>) {
        let name = match &track.kinds[..] {
            [kind] => named(kind.kind, &kind.name),
            kinds => format!("{} other kinds of tasks", kinds.len()),
        };
        let handle = self.thread(&name);
        for it in &track.events {
            let when = (it.event.begin_ns, it.event.length_ns);
            let details = format!("{} on {}", it.target.kind, thread_name(it.thread));
            let category = self.category(it.target);
            self.band(handle, when, (&it.target.name, &details), category);
        }
    }

    /// A track. None is the main thread, whose name would be that of the program.
    fn thread(&mut self, name: &str) -> ThreadHandle {
        let thread = self.profile.add_thread(self.process, self.tid, at(0), false);
        self.tid += 1;
        self.profile.set_thread_name(thread, &plain::name(name));
        self.profile.set_thread_show_markers_in_timeline(thread, true);
        self.profile.add_initial_visible_thread(thread);
        thread
    }

    fn band(
        &mut self,
        thread: ThreadHandle,
        (begin_ns, length_ns): (u64, u64),
        (name, details): (&str, &str),
        category: CategoryHandle,
    ) {
        let name = self.profile.intern_string(&plain::name(name));
        let details = self.profile.intern_string(&plain::sentence(details));
        let timing = MarkerTiming::Interval(at(begin_ns), at(begin_ns.saturating_add(length_ns)));
        self.profile.add_marker(thread, timing, Band { name, category, details });
    }

    /// Says what the timeline lacks.
    fn losses(&mut self, thread: ThreadHandle, record: &TimelineRecord) {
        if record.dropped > 0 {
            let details = format!(
                "{} earlier polls and spans, and {} threads that were less busy",
                record.dropped, record.left_out
            );
            let when = (0, 0);
            self.band(thread, when, ("not in the timeline:", &details), self.categories.baseline);
        }
    }

    fn experiment(
        &mut self,
        thread: ThreadHandle,
        experiment: &ExperimentRecord,
        targets: &HashMap<u32, &TargetRecord>,
    ) {
        let (name, category) = match experiment.target {
            None => ("baseline", self.categories.baseline),
            Some(id) => {
                let name = targets.get(&id).map_or("not known", |target| &*target.name);
                (name, self.categories.experiment)
            }
        };
        let faster = match experiment.target {
            None => String::new(),
            Some(_) => format!("{:.0} % faster", 100.0 * experiment.speedup),
        };
        let left_out = experiment.discarded.as_ref().map(|why| format!("left out: {why}"));
        let details = [Some(faster), left_out].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let when = (experiment.start_ns, experiment.real_ns);
        self.band(thread, when, (name, details.trim()), category);
    }

    /// Polls and spans, each as a marker.
    fn markers(&mut self, thread: ThreadHandle, events: &[(TimelineEvent, &TargetRecord)]) {
        for (event, target) in events {
            let kind = target.kind.to_string();
            let category = self.category(target);
            let when = (event.begin_ns, event.length_ns);
            self.band(thread, when, (&target.name, &kind), category);
        }
    }

    fn category(&self, target: &TargetRecord) -> CategoryHandle {
        if target.kind == TargetKind::Task { self.categories.poll } else { self.categories.span }
    }

    /// The polls and spans that the thread was in at even steps, from which the front end makes its
    /// call tree and the graph of the thread.
    fn samples(&mut self, thread: ThreadHandle, events: &[(TimelineEvent, &TargetRecord)]) {
        let end = |event: &TimelineEvent| event.begin_ns.saturating_add(event.length_ns);
        let Some(first) = events.iter().map(|(event, _)| event.begin_ns).min() else { return };
        let last = events.iter().map(|(event, _)| end(event)).max().unwrap_or(first);
        let step = SAMPLE_NS.max((last - first) / MAX_SAMPLES);
        let mut later = events.iter().peekable();
        let mut open: Vec<&(TimelineEvent, &TargetRecord)> = Vec::new();
        let mut now = first;
        while now <= last {
            while let Some(next) = later.next_if(|(event, _)| event.begin_ns <= now) {
                open.push(next);
            }
            open.retain(|(event, _)| end(event) > now);
            let frames: Vec<FrameInfo> = open
                .iter()
                .map(|(_, target)| FrameInfo {
                    frame: Frame::Label(self.profile.intern_string(&plain::name(&target.name))),
                    category_pair: self.category(target).into(),
                    flags: FrameFlags::empty(),
                })
                .collect();
            let busy = if frames.is_empty() { 0 } else { step };
            let stack = self.profile.intern_stack_frames(thread, frames.into_iter());
            self.profile.add_sample(thread, at(now), stack, CpuDelta::from_nanos(busy), 1);
            let Some(next) = now.checked_add(step) else { break };
            now = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andweorc_profile::{Header, Record};

    #[test]
    fn document_of_the_longest_timeline_stays_small() {
        let mut run = Run::new(Header::new("shop"));
        for id in 0..200 {
            let name = format!("shop::orders::handlers::checkout::{id}");
            let kind = if id % 2 == 0 { TargetKind::Task } else { TargetKind::Span };
            run.push(Record::Target(TargetRecord::new(id, kind, name)));
        }
        // Sixteen rings of as many events as the recording keeps.
        let event = |at: u64| TimelineEvent {
            target: at as u32 % 200,
            begin_ns: at * 2_000_000,
            length_ns: 1_999_999,
        };
        let thread = |number: u32| TimelineThread {
            name: format!("tokio-runtime-worker {number}"),
            events: (0..2048).map(event).collect(),
        };
        let threads = (0..16).map(thread).collect();
        run.push(Record::Timeline(TimelineRecord { threads, dropped: 0, left_out: 0 }));
        let document = firefox(&[run]).unwrap();
        assert!(document.len() < 50 << 20, "{} bytes", document.len());
    }
}
