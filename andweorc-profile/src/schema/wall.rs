//! Records of where wall time went.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// Where wall time went over a stretch of the run without any delay, by stacks of spans. Older
/// profiles have none.
///
/// A request is a span that no other open span is around. Each moment of it is that of the spans
/// in it that run at that moment, in equal parts; while none runs, that of the innermost open
/// ones. So the times of a stack and of those inside of it are the wall time of its requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WallRecord {
    /// Length of the stretch in real ns.
    pub real_ns: u64,
    /// The stacks, each after the one around it.
    pub stacks: Vec<WallStack>,
    /// Spans that could not be told apart, since there were too many stacks or too many open
    /// spans: their time is that of the stack around them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub merged: u64,
    /// Requests of which nothing is known, since too many were open.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// Where tasks waited for each other, by samples. Older profiles have none.
    #[serde(default, skip_serializing_if = "WaitSites::is_empty")]
    pub wait_sites: WaitSites,
}

/// Where tasks waited for other tasks: at which lock or channel, and at which line. A part of the
/// waits is sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSites {
    /// The sites, those with the most time first.
    pub sites: Vec<WaitSite>,
    /// Samples of sites that could not be told apart, since there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub merged: u64,
    /// Waits that began and were not sampled, whatever ended them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsampled: u64,
}

impl WaitSites {
    /// Whether nothing was seen to wait.
    pub(super) fn is_empty(&self) -> bool {
        *self == WaitSites::default()
    }
}

/// Waits of one target for another at one place. Those of which the place is not known have neither
/// `call` nor `function`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WaitSite {
    /// Id of the innermost target that was open where the wait began; `None` where it is not known.
    pub waiter: Option<u32>,
    /// Id of the innermost target that was open where the wake came from; `None` where that is not
    /// known.
    pub by: Option<u32>,
    /// Time of the waits that the samples stand for, ns.
    pub ns: u64,
    /// The samples.
    pub samples: u64,
    /// The function of the primitive that the innermost function in scope called:
    /// `tokio::sync::mutex::Mutex::lock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The innermost function in scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its source file, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, 1-based, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Time of one stack of spans, without the stacks inside of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WallStack {
    /// Index of the stack around it; `None` of a request, and of a task outside of all spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Id of its innermost target: a span, or a kind of task. `None` of the one stack of all
    /// requests beyond those that are told apart.
    pub target: Option<u32>,
    /// Spans of it that ended; of a task the waits that did.
    pub count: u64,
    /// Being polled, or running on a plain thread, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub running_ns: u64,
    /// Ready, but not yet polled, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queue_ns: u64,
    /// Waiting for the world outside, ns; for timers too, where they can't be told from it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outside_ns: u64,
    /// Waiting for a timer, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timer_ns: u64,
    /// Waiting for another task or thread of the program, by who ended the wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<WallWaker>,
    /// Waiting, and nobody saw for what: the task is not profiled, or the wait had not ended, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_ns: u64,
    /// How often its span was entered in a poll and not left as the poll ended: a guard was held
    /// over an await.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held: u64,
}

impl WallStack {
    /// Time of the waits for other tasks, ns.
    pub fn task_ns(&self) -> u64 {
        self.tasks.iter().fold(0, |sum, waker| sum.saturating_add(waker.ns))
    }

    /// All of its time, ns.
    pub fn total_ns(&self) -> u64 {
        let waits = [self.queue_ns, self.outside_ns, self.timer_ns, self.unknown_ns];
        let others = [self.running_ns, self.task_ns()];
        waits.into_iter().chain(others).fold(0, u64::saturating_add)
    }
}

/// Time of waits that one kind of task, or one span, has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallWaker {
    /// Id of the innermost target that was open where the wake came from; `None` where that is not
    /// known.
    pub by: Option<u32>,
    /// The time, ns.
    pub ns: u64,
}
