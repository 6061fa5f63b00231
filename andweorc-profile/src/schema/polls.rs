//! Records of polls: how long they and the waits for them are, and the long ones with their places.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// How long the polls of each kind of task were, over the stretch that the record of wall time has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PollsRecord {
    /// Length of the stretch in real ns.
    pub real_ns: u64,
    /// Each kind of task that was polled.
    pub kinds: Vec<KindPolls>,
    /// Polls of kinds that could not be told apart, since there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub merged: u64,
}

/// Polls of one kind of task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindPolls {
    /// Id of its target.
    pub target: u32,
    /// How long the polls were.
    pub polls: TimeHistogram,
    /// For how long the task had been ready before, where it is known when it was woken.
    pub delays: TimeHistogram,
}

/// How long something was, each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeHistogram {
    /// All together, ns.
    pub sum_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Lengths in ns with how many there were, in rising order. A length is the middle of a bin,
    /// within 0.8 % of each in it.
    pub bins: Vec<(u64, u64)>,
}

impl TimeHistogram {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.bins.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The shortest length, ns, that this part of all is no longer than; `None` of none.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let rank = (part * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        let at = self.bins.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        // The middle of the last bin may be longer than all in it.
        at.map(|(ns, _)| (*ns).min(self.max_ns))
    }

    /// Adds another one.
    pub fn add(&mut self, other: &TimeHistogram) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (ns, count) in &other.bins {
            match self.bins.binary_search_by_key(ns, |(ns, _)| *ns) {
                Ok(at) => self.bins[at].1 = self.bins[at].1.saturating_add(*count),
                Err(at) => self.bins.insert(at, (*ns, *count)),
            }
        }
    }
}

/// Polls that were long, while the program was observed and in baselines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LongPollsRecord {
    /// A poll is long from this on, ns.
    pub threshold_ns: u64,
    /// For how long polls were watched, ns.
    pub watched_ns: u64,
    /// The long polls by kind of task and place.
    pub polls: Vec<LongPoll>,
    /// Long polls of which no place is told, since there were too many places.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub merged: u64,
    /// Long polls of tasks that had handed their worker over (`block_in_place`), and are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handed_over: u64,
}

/// Long polls of one kind of task at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LongPoll {
    /// Id of the kind of task.
    pub target: u32,
    /// How many there were.
    pub count: u64,
    /// Of these, how many were asleep when they were looked at: in a system call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub asleep: u64,
    /// Their time in all, ns, without what they waited for a processor.
    pub total_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// The innermost function in scope; `None` where none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its source file, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, 1-based, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The function out of scope that this one had called; the innermost of all where none in scope
    /// was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The system call that it slept in, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
}
