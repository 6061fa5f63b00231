//! The messages, and the bounds that each keeps.

use super::{LONGEST_LEASE, LONGEST_TEXT, MOST_NAMED, MessageError};
use crate::TargetKind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A message of either direction.
pub trait Message: Serialize + DeserializeOwned {
    /// Checks that a message that was received keeps the bounds of the protocol.
    ///
    /// # Errors
    ///
    /// When a text is too long, a list has too many entries, or a number makes no sense.
    fn check(&self) -> Result<(), MessageError>;
}

/// A message of a participant.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToCoordinator {
    /// The first message.
    Hello {
        /// [`PROTOCOL`](super::PROTOCOL) of the participant.
        version: u32,
        /// Secret that the participant was given.
        token: String,
        /// Name of the service, one of its own in a run.
        service: String,
    },
    /// The participant knows its program, and can hold experiments from now on.
    Ready {
        /// Targets that it would test.
        targets: Vec<KnownTarget>,
        /// Points that it measures, the most important one first.
        points: Vec<KnownPoint>,
    },
    /// The participant is there.
    Alive,
    /// An experiment has ended in this participant.
    Result {
        /// Number of the experiment.
        experiment: u32,
        /// How it went.
        outcome: Outcome,
    },
    /// The participant ends its session in order.
    Leave {
        /// Why.
        reason: String,
    },
}

impl fmt::Debug for ToCoordinator {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToCoordinator::Hello { version, service, .. } => f
                .debug_struct("Hello")
                .field("version", version)
                .field("service", service)
                .finish_non_exhaustive(),
            ToCoordinator::Ready { targets, points } => {
                f.debug_struct("Ready").field("targets", targets).field("points", points).finish()
            }
            ToCoordinator::Alive => f.write_str("Alive"),
            ToCoordinator::Result { experiment, outcome } => f
                .debug_struct("Result")
                .field("experiment", experiment)
                .field("outcome", outcome)
                .finish(),
            ToCoordinator::Leave { reason } => {
                f.debug_struct("Leave").field("reason", reason).finish()
            }
        }
    }
}

/// A message of the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToParticipant {
    /// The participant takes part.
    Welcome {
        /// [`PROTOCOL`](super::PROTOCOL) of the coordinator.
        version: u32,
        /// Id of the run, which all participants write into their profiles.
        run: String,
        /// Name of the service that the coordinator built and started itself. They write it too.
        #[serde(default)]
        entry: Option<String>,
    },
    /// The participant does not take part.
    Refused {
        /// Why.
        reason: String,
    },
    /// An experiment begins.
    Begin(Begin),
    /// The coordinator is there.
    Alive,
    /// The experiment ends.
    End {
        /// Number of the experiment.
        experiment: u32,
    },
    /// Whether the experiment that has ended can be used.
    Settle {
        /// Number of the experiment.
        experiment: u32,
        /// Why it can't be used, if so.
        discarded: Option<String>,
    },
    /// The run is over.
    Finish {
        /// Why.
        reason: String,
    },
}

/// An experiment that all participants are to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Begin {
    /// Number of the experiment in the whole run, above all before it.
    pub experiment: u32,
    /// Target that is tested; `None` in a baseline.
    pub target: Option<Tested>,
    /// The speedup in millionths; 0 in a baseline.
    pub speedup_ppm: u32,
    /// How long queues settle before the experiment is measured, ms.
    pub warmup_ms: u32,
    /// A participant that hears nothing for so long ends the experiment, ms.
    pub lease_ms: u32,
}

impl Begin {
    /// A baseline that is measured at once.
    pub fn baseline(experiment: u32, lease_ms: u32) -> Begin {
        Begin { experiment, target: None, speedup_ppm: 0, warmup_ms: 0, lease_ms }
    }
}

/// Target of an experiment, with the service that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// Name of the service.
    pub service: String,
    /// The target, as the service made it known.
    pub target: KnownTarget,
}

impl Tested {
    /// No part of any service: all are delayed alike, to see whether the load waits for them.
    pub fn probe() -> Tested {
        let (kind, name) = (TargetKind::Probe, "everything".to_owned());
        let target = KnownTarget { id: 0, kind, name, file: None, line: None };
        Tested { service: String::new(), target }
    }

    /// How the profiles of other services call the target: `inventory/lookup`.
    pub fn name(&self) -> String {
        name_elsewhere(&self.service, self.target.kind, &self.target.name)
    }
}

/// How profiles of other services call a target of this kind and name: `inventory/lookup`.
pub(crate) fn name_elsewhere(service: &str, kind: TargetKind, name: &str) -> String {
    match kind {
        TargetKind::Span | TargetKind::Task | TargetKind::Function => format!("{service}/{name}"),
        kind => format!("{service}/{kind}:{name}"),
    }
}

/// A target that a participant has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownTarget {
    /// Id of the target in its service.
    pub id: u32,
    /// Its kind.
    pub kind: TargetKind,
    /// Its name.
    pub name: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line in `file`, 1-based, where known.
    pub line: Option<u32>,
}

/// A point that a participant has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPoint {
    /// Id of the point in its service.
    pub id: u32,
    /// Its name.
    pub name: String,
}

/// How an experiment went in one participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Outcome {
    /// The experiment was measured.
    Measured,
    /// The experiment can't be used, this time.
    Discarded {
        /// Why.
        reason: String,
    },
    /// The experiment did the program no good, and is not to be tried again.
    Refused {
        /// Why.
        reason: String,
    },
}

fn check_text(text: &str) -> Result<(), MessageError> {
    if text.len() > LONGEST_TEXT { Err(MessageError::LongText) } else { Ok(()) }
}

fn check_count(many: usize) -> Result<(), MessageError> {
    if many > MOST_NAMED { Err(MessageError::TooMany) } else { Ok(()) }
}

impl KnownTarget {
    fn check(&self) -> Result<(), MessageError> {
        check_text(&self.name)?;
        self.file.as_deref().map_or(Ok(()), check_text)
    }
}

impl Message for ToCoordinator {
    fn check(&self) -> Result<(), MessageError> {
        match self {
            ToCoordinator::Hello { token, service, .. } => {
                if service.is_empty() {
                    return Err(MessageError::Malformed("the service has no name".into()));
                }
                check_text(token).and_then(|()| check_text(service))
            }
            ToCoordinator::Ready { targets, points } => {
                check_count(targets.len())?;
                check_count(points.len())?;
                targets.iter().try_for_each(KnownTarget::check)?;
                points.iter().try_for_each(|point| check_text(&point.name))
            }
            ToCoordinator::Result { outcome: Outcome::Measured, .. } | ToCoordinator::Alive => {
                Ok(())
            }
            ToCoordinator::Result {
                outcome: Outcome::Discarded { reason } | Outcome::Refused { reason },
                ..
            }
            | ToCoordinator::Leave { reason } => check_text(reason),
        }
    }
}

impl Message for ToParticipant {
    fn check(&self) -> Result<(), MessageError> {
        match self {
            ToParticipant::Welcome { run, entry, .. } => {
                check_text(run)?;
                entry.as_deref().map_or(Ok(()), check_text)
            }
            ToParticipant::Refused { reason: text }
            | ToParticipant::Finish { reason: text }
            | ToParticipant::Settle { discarded: Some(text), .. } => check_text(text),
            ToParticipant::Settle { discarded: None, .. }
            | ToParticipant::Alive
            | ToParticipant::End { .. } => Ok(()),
            ToParticipant::Begin(begin) => begin.check(),
        }
    }
}

impl Begin {
    fn check(&self) -> Result<(), MessageError> {
        let longest = LONGEST_LEASE.to_duration().as_millis();
        let malformed = |what: &str| Err(MessageError::Malformed(what.into()));
        if self.speedup_ppm > 1_000_000 {
            return malformed("a speedup above the whole");
        }
        if self.lease_ms == 0 || u128::from(self.lease_ms) > longest {
            return malformed("a lease that is none, or too long");
        }
        if u128::from(self.warmup_ms) > longest {
            return malformed("too long a warm-up");
        }
        let Some(tested) = &self.target else {
            return if self.speedup_ppm == 0 { Ok(()) } else { malformed("a speedup of nothing") };
        };
        check_text(&tested.service)?;
        tested.target.check()
    }
}
