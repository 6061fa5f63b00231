//! Tokio's spans and events about its tasks, with `--cfg tokio_unstable` and its feature `tracing`:
//! a span for each task, `runtime.spawn`, entered to poll it and to drop its future; and an event
//! for each use of a task's waker, which names that span. None of them is for the user: they go to
//! whoever takes part in the polls ([`unwrapped`]), and none of these spans is a point or a target.
//!
//! tokio's other spans, of locks and timers, cost ten times as much and tell nothing more: they
//! stay off.

use crate::span_table::Table;
use andweorc_core::hooks::unwrapped::{self, How, Spawned, Task};
use std::fmt::{self, Write};
use std::num::NonZeroU64;
use std::sync::Arc;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id};
use tracing_core::{Event, Metadata};

/// A call site of tokio's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The spans of tasks.
    Task,
    /// The events of wakers.
    Waker,
    /// Others, for tools that look at the runtime itself.
    Other,
}

impl Part {
    /// Part of tokio's reports that `metadata` is of. `None`: it is of none of them.
    pub(crate) fn of(metadata: &Metadata<'_>) -> Option<Part> {
        let target = metadata.target();
        if target == "tokio::task::waker" {
            return Some(Part::Waker);
        }
        let of_tokio = target == "tokio" || target.starts_with("tokio::");
        if metadata.is_span() && of_tokio && metadata.name().starts_with("runtime.") {
            let task = metadata.name() == "runtime.spawn";
            return Some(if task { Part::Task } else { Part::Other });
        }
        (target.starts_with("runtime::resource")).then_some(Part::Other)
    }

    /// Whether somebody takes part in polls, and so wants it.
    pub(crate) fn is_wanted(self) -> bool {
        self != Part::Other && unwrapped::installed().is_some()
    }
}

/// Whether the task that the calling thread spawns now is wrapped.
pub(crate) fn is_wrapped() -> bool {
    unwrapped::installed().is_some_and(|tasks| tasks.is_wrapped())
}

/// Outcome of the use of a waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    /// The waker was woken, or cloned.
    Told,
    /// The waker was dropped, which nobody wants to know.
    Kept,
}

/// The tasks of one subscriber that are reported, by their spans.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Table<Arc<dyn Task>>);

impl Tasks {
    pub(crate) fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id) {
        let Some(tasks) = unwrapped::installed() else { return };
        let mut fields = Spawn::default();
        attributes.record(&mut fields);
        let how = match fields.kind.as_str() {
            "blocking" => How::Blocking,
            "block_on" => How::Root,
            _ => How::Worker,
        };
        let (Some(id_in_tokio), Some(line)) = (fields.id, fields.line) else { return };
        let Spawn { name, file, .. } = &fields;
        let spawned = Spawned { id: id_in_tokio, how, name, file, line };
        if let Some(task) = tasks.spawned(spawned) {
            self.0.insert(id, task);
        }
    }

    pub(crate) fn on_enter(&self, id: &Id) {
        if let Some(task) = self.0.with(id, |task| Arc::clone(task)) {
            task.enter();
        }
    }

    pub(crate) fn on_exit(&self, id: &Id) {
        if let Some(task) = self.0.with(id, |task| Arc::clone(task)) {
            task.exit();
        }
    }

    pub(crate) fn on_close(&self, id: &Id) {
        // Dropped outside of the table's lock.
        let task = self.0.remove(id);
        drop(task);
    }

    /// A waker was used.
    pub(crate) fn on_event(&self, event: &Event<'_>) -> Used {
        let mut fields = Use::default();
        event.record(&mut fields);
        match fields.op {
            Op::Other => return Used::Kept,
            Op::Clone => {
                if let Some(tasks) = unwrapped::installed() {
                    tasks.waker_cloned();
                }
                return Used::Told;
            }
            Op::Wake => {}
        }
        if let Some(task) = fields.task.and_then(|id| self.0.with(&id, |task| Arc::clone(task))) {
            task.wake();
        }
        Used::Told
    }
}

/// The fields of a task's span.
#[derive(Default)]
struct Spawn {
    /// tokio's number for the task.
    id: Option<u64>,
    kind: String,
    name: String,
    file: String,
    line: Option<u32>,
}

impl Visit for Spawn {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "task.id" => self.id = Some(value),
            "loc.line" => self.line = u32::try_from(value).ok(),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "loc.file" {
            self.file.push_str(value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = match field.name() {
            "kind" => &mut self.kind,
            "task.name" => &mut self.name,
            _ => return,
        };
        write!(text, "{value:?}").ok();
    }
}

/// Operation that is done with a waker.
#[derive(Clone, Copy, Default)]
enum Op {
    Wake,
    Clone,
    #[default]
    Other,
}

/// The fields of a waker's event.
#[derive(Default)]
struct Use {
    op: Op,
    task: Option<Id>,
}

impl Visit for Use {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "task.id" {
            self.task = NonZeroU64::new(value).map(Id::from_non_zero_u64);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "op" {
            self.op = match value {
                "waker.wake" | "waker.wake_by_ref" => Op::Wake,
                "waker.clone" => Op::Clone,
                _ => Op::Other,
            };
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
