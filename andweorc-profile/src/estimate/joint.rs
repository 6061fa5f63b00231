//! Services that were profiled together, as a report of all tells of them.

use serde::Serialize;

/// The services of one or more joint runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JointSummary {
    /// The service by whose points targets are ranked.
    pub entry: String,
    /// Ids of the joint runs.
    pub runs: Vec<String>,
    /// The entry, and then the others by name.
    pub services: Vec<ServiceSummary>,
    /// Where the latency of the entry's point goes.
    pub split: Split,
}

/// One service.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServiceSummary {
    /// Its name.
    pub service: String,
    /// File name of its program; `None` of a service that took part and whose profile is not there.
    pub program: Option<String>,
    /// Name of its host.
    pub host: Option<String>,
    /// Number of processors that it may use.
    pub cores: Option<usize>,
    /// How many of them it used before the first experiment, where that was measured.
    pub cores_used: Option<f64>,
    /// Its runs in the joint runs.
    pub runs: usize,
    /// Stretches that it held: experiments, baselines and probes.
    pub stretches: usize,
    /// Stretches that others held and of which its profile has nothing.
    pub absent: usize,
    /// Stretches that it wrote down as discarded, by reason, the most frequent first.
    pub discarded: Vec<Discarded>,
    /// Notes on its runs; none of the entry, whose notes are those of the report.
    pub notes: Vec<String>,
    /// Its targets that were tested, as indices of the analysis' targets.
    pub targets: Vec<usize>,
}

impl ServiceSummary {
    /// Stretches that it discarded.
    pub fn discarded_ones(&self) -> usize {
        self.discarded.iter().map(|one| one.count).sum()
    }
}

/// A reason for which stretches were discarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Discarded {
    /// The reason, as the profile has it.
    pub reason: String,
    /// How many had it.
    pub count: usize,
}

impl Discarded {
    /// A reason that `count` stretches had.
    pub(crate) fn new(reason: impl Into<String>, count: usize) -> Discarded {
        Discarded { reason: reason.into(), count }
    }
}

/// Where the latency of the entry's point goes, as far as the profiles tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Split {
    /// The records tell.
    Told(LatencySplit),
    /// The records do not tell.
    Untold {
        /// Why: a sentence.
        why: String,
    },
}

/// Where the latency of a point of the entry goes, before the first experiment, for each of its
/// requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LatencySplit {
    /// Name of the point.
    pub point: String,
    /// Requests that it is known from.
    pub requests: u64,
    /// Mean latency, ns.
    pub latency_ns: f64,
    /// Time of the entry itself. Its waits are what the other services and the network take.
    pub entry: TimeParts,
    /// The other services.
    pub services: Vec<ServicePart>,
    /// Least and most time that the entry waits while no other service is known to be at work, ns:
    /// the network, queues before the services, and all else that it waits for.
    pub between_ns: [f64; 2],
    /// Parts that could not be told, and why: a sentence each.
    pub caveats: Vec<String>,
}

/// Time that one service takes for a request of the entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServicePart {
    /// The service.
    pub service: String,
    /// How many requests of it there are for one of the entry.
    pub calls: f64,
    /// Its time in them.
    #[serde(flatten)]
    pub parts: TimeParts,
}

/// Time of requests by state, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TimeParts {
    /// Running.
    pub work_ns: f64,
    /// Ready, but not yet polled.
    pub queue_ns: f64,
    /// Waiting for a timer.
    pub timer_ns: f64,
    /// Waiting for the world outside, for other tasks, and for what nobody saw.
    pub wait_ns: f64,
}

impl TimeParts {
    /// All of it, ns.
    pub fn total_ns(&self) -> f64 {
        self.work_ns + self.queue_ns + self.timer_ns + self.wait_ns
    }

    /// So many times as much.
    pub(crate) fn times(self, many: f64) -> TimeParts {
        TimeParts {
            work_ns: self.work_ns * many,
            queue_ns: self.queue_ns * many,
            timer_ns: self.timer_ns * many,
            wait_ns: self.wait_ns * many,
        }
    }

    /// Both.
    pub(crate) fn plus(self, other: TimeParts) -> TimeParts {
        TimeParts {
            work_ns: self.work_ns + other.work_ns,
            queue_ns: self.queue_ns + other.queue_ns,
            timer_ns: self.timer_ns + other.timer_ns,
            wait_ns: self.wait_ns + other.wait_ns,
        }
    }
}
