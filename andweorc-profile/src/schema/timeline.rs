//! Timeline of polls and spans.

use super::is_zero;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The last polls and spans of each thread before the first experiment. Older profiles have none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// The threads, the one that was busy for longest first.
    pub threads: Vec<TimelineThread>,
    /// Events that are not told: there were later ones in their place, or their thread is left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Threads beyond the busiest 20.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineThread {
    /// Its name; empty where it has none.
    pub name: String,
    /// Its polls and spans in the order of their begin, each after those that it is inside of.
    pub events: Vec<TimelineEvent>,
}

/// A poll of a kind of task, or a visit of a span; in the profile `[target, begin_ns, length_ns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// Id of the target.
    pub target: u32,
    /// Its begin, ns since the start of the run.
    pub begin_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
}

impl Serialize for TimelineEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.target, self.begin_ns, self.length_ns).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TimelineEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimelineEvent, D::Error> {
        let (target, begin_ns, length_ns) = Deserialize::deserialize(deserializer)?;
        Ok(TimelineEvent { target, begin_ns, length_ns })
    }
}
