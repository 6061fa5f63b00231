//! Events of the processor, or of the kernel, by target.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// Events of threads in user space by target, over a stretch of the run without any delay. Only
/// runs that are asked to count events have one.
///
/// After every so many events, its *period*, a thread's counter overflows and interrupts the
/// thread. All of these events are counted as those of the target that it is in then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsRecord {
    /// Length of the stretch in real ns.
    pub real_ns: u64,
    /// CPU time of the whole program in it, ns.
    pub cpu_ns: u64,
    /// The events.
    pub events: Vec<EventTotal>,
    /// Events of each target. Targets without any are left out.
    pub targets: Vec<TargetEvents>,
    /// Threads whose events are not counted, since they block the signal, or andweorc may open no
    /// more files, and those that came and went too soon to be seen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads_left_out: u64,
}

/// One event of the whole program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventTotal {
    /// Its name, that of perf(1).
    pub name: String,
    /// How often it happened, as the counters say.
    pub count: u64,
    /// Overflows that were seen.
    pub overflows: u64,
    /// Overflows that were not seen: the thread had not handled the one before, was in andweorc,
    /// or there was no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Time for which threads ran and the event was asked for, ns.
    pub enabled_ns: u64,
    /// Of that, the time for which the processor counted it: it counts only some at a time.
    pub running_ns: u64,
}

/// Events of one target: of a span or a kind of task while it was the innermost one that a thread
/// was in, of a function while it was the innermost one in scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetEvents {
    /// Id of the target; `None` for what happened outside of all spans and tasks.
    pub target: Option<u32>,
    /// Overflows in it, of each event in the order of [`EventsRecord::events`].
    pub overflows: Vec<u64>,
    /// Events that these stand for: the sums of their periods.
    pub counts: Vec<u64>,
}
