//! Where wall time went, of all runs of a profile together: a tree of stacks by name.

use crate::report::html::shown_place;
use andweorc_profile::{ExampleState, Run, TargetKind, TargetRecord, WallRecord, WallStack, plain};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;

/// Name of the stack of all requests that are not told apart.
pub(crate) const OTHER: &str = "other requests";

/// One stack, without those inside of it.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    /// Index of the stack around it, which is less than its own.
    pub(crate) parent: Option<usize>,
    /// `None` of what could not be told apart.
    pub(crate) target: Option<&'a TargetRecord>,
    /// Spans or waits that ended.
    pub(crate) count: u64,
    /// Its own time by state, ns, in the order of [`ExampleState::ALL`]. What ended its waits for
    /// other tasks is in `wakers`.
    pub(crate) states: [u64; ExampleState::ALL.len()],
    /// Time of waits for other tasks by who ended them, where that is known; the longest first.
    pub(crate) wakers: Vec<(Option<&'a TargetRecord>, u64)>,
}

/// A stack as a page names it.
#[derive(Debug, Serialize)]
pub(crate) struct StackLabel<'a> {
    /// Index of the stack around it, which is less than its own.
    parent: Option<usize>,
    /// `None` of what could not be told apart.
    kind: Option<TargetKind>,
    name: Cow<'a, str>,
    place: Option<String>,
}

impl<'a> StackLabel<'a> {
    /// The label of a stack of this target, or of what could not be told apart.
    pub(crate) fn of(parent: Option<usize>, target: Option<&'a TargetRecord>) -> StackLabel<'a> {
        StackLabel {
            parent,
            kind: target.map(|target| target.kind),
            name: target.map_or(OTHER.into(), |target| plain::name(&target.name)),
            place: target.and_then(|it| shown_place(&it.name, it.file.as_deref(), it.line)),
        }
    }
}

/// The stacks of all runs.
#[derive(Debug, Default)]
pub(crate) struct Flame<'a> {
    pub(crate) frames: Vec<Frame<'a>>,
    /// Length of the stretches that were recorded, ns.
    pub(crate) real_ns: u64,
    /// Spans that are counted as the stack around them.
    pub(crate) merged: u64,
    /// Requests of which nothing is known.
    pub(crate) unseen: u64,
}

/// Identity by which two targets of different runs are the same.
pub(crate) type Identity<'a> = Option<(TargetKind, &'a str, Option<&'a str>, Option<u32>)>;

/// The identity of a target; `None` of none.
pub(crate) fn identity<'a>(target: Option<&'a TargetRecord>) -> Identity<'a> {
    let target = target?;
    Some((target.kind, target.name.as_str(), target.file.as_deref(), target.line))
}

/// The stacks of these runs. Empty where nothing was recorded, as by older versions.
pub(crate) fn flame(runs: &[Run]) -> Flame<'_> {
    let (mut flame, mut known) = (Flame::default(), HashMap::new());
    for run in runs {
        let targets: HashMap<u32, &TargetRecord> =
            run.targets.iter().map(|target| (target.id, target)).collect();
        for record in &run.wall {
            flame.add(record, &targets, &mut known);
        }
    }
    for frame in &mut flame.frames {
        frame.wakers.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    }
    flame
}

impl<'a> Flame<'a> {
    /// Sentences on what was not recorded, or not told apart.
    pub(crate) fn losses(&self) -> Vec<String> {
        let merged = "spans could not be told apart and are counted as the stack around them.";
        let unseen = "requests were not recorded, since too many were open.";
        let losses = [(self.merged, merged), (self.unseen, unseen)];
        let lost = losses.into_iter().filter(|(count, _)| *count > 0);
        lost.map(|(count, what)| format!("{count} {what}")).collect()
    }

    fn add(
        &mut self,
        record: &'a WallRecord,
        targets: &HashMap<u32, &'a TargetRecord>,
        known: &mut HashMap<(Option<usize>, Identity<'a>), usize>,
    ) {
        // A profile may say anything.
        self.real_ns = self.real_ns.saturating_add(record.real_ns);
        self.merged = self.merged.saturating_add(record.merged);
        self.unseen = self.unseen.saturating_add(record.unseen);
        let target = |id: Option<u32>| id.and_then(|id| targets.get(&id).copied());
        let mut places: Vec<usize> = Vec::with_capacity(record.stacks.len());
        for stack in &record.stacks {
            let parent = stack.parent.map(|parent| places[parent as usize]);
            let of = target(stack.target);
            let place = *known.entry((parent, identity(of))).or_insert_with(|| {
                let (states, wakers) = Default::default();
                self.frames.push(Frame { parent, target: of, count: 0, states, wakers });
                self.frames.len() - 1
            });
            places.push(place);
            self.frames[place].add(stack, target);
        }
    }
}

impl<'a> Frame<'a> {
    fn add(&mut self, stack: &WallStack, target: impl Fn(Option<u32>) -> Option<&'a TargetRecord>) {
        self.count = self.count.saturating_add(stack.count);
        for (sum, state) in self.states.iter_mut().zip(ExampleState::ALL) {
            let more = match state {
                ExampleState::Running => stack.running_ns,
                ExampleState::Queue => stack.queue_ns,
                ExampleState::Outside => stack.outside_ns,
                ExampleState::Timer => stack.timer_ns,
                ExampleState::Task => stack.task_ns(),
                ExampleState::Unknown => stack.unknown_ns,
            };
            *sum = sum.saturating_add(more);
        }
        for waker in &stack.tasks {
            let by = target(waker.by);
            match self.wakers.iter_mut().find(|(known, _)| identity(*known) == identity(by)) {
                Some((_, ns)) => *ns = ns.saturating_add(waker.ns),
                None => self.wakers.push((by, waker.ns)),
            }
        }
    }
}
