//! How several programs are profiled as one: the messages between a coordinator and the programs
//! that take part, and the part of a participant as a state machine without I/O.
//!
//! A target of one program is tested in all programs at once, since the delays that it makes are
//! handed on with messages. So one coordinator says what is tested, and each participant begins
//! and ends the same experiment, which has the same number everywhere.
//!
//! 1. A participant connects and says [`Hello`](ToCoordinator::Hello), with the version of this
//!    protocol, the token and the name of its service. The answer is
//!    [`Welcome`](ToParticipant::Welcome) or [`Refused`](ToParticipant::Refused).
//! 2. It watches its program, and says which targets and points it knows
//!    ([`Ready`](ToCoordinator::Ready)).
//! 3. The coordinator begins an experiment in all who are ready ([`Begin`]), and ends it
//!    ([`End`](ToParticipant::End)). Each answers with its [`Outcome`]. A participant whose own
//!    guard ends the experiment answers sooner.
//! 4. When all have answered, or were lost, the coordinator says whether the experiment can be used
//!    ([`Settle`](ToParticipant::Settle)), and each writes it to its own profile.
//!
//! Both say that they are [alive](ToParticipant::Alive) every [`ALIVE_EVERY`]. An experiment has a
//! **lease**: a participant that has heard nothing for so long ends it by itself, so that no
//! program stays delayed when the coordinator is lost. A message is a line of JSON of at most
//! [`LONGEST_MESSAGE`] bytes.
//!
//! There is no encryption: the token, which keeps strangers out by mistake, is sent as it is. The
//! coordinator listens on loopback unless it is told otherwise, and other addresses are for
//! networks in which everybody is trusted.
//!
//! **Bump [`PROTOCOL`] whenever a message changes its meaning**; a new optional field needs no
//! bump.

mod lines;
mod message;
mod participant;
#[cfg(test)]
mod tests;

pub(crate) use message::name_elsewhere;

pub use lines::{Lines, MessageError, to_line};
pub use message::{
    Begin, KnownPoint, KnownTarget, Message, Outcome, Tested, ToCoordinator, ToParticipant,
};
pub use participant::{Participant, Verdict};

use crate::time::Nanos;

/// Version of the protocol. Both sides refuse any other.
pub const PROTOCOL: u32 = 1;

/// The longest message, in bytes, its newline not counted.
pub const LONGEST_MESSAGE: usize = 256 << 10;

/// So many targets, and as many points, one participant may name.
pub const MOST_NAMED: usize = 32;

/// The longest name or reason in a message, in bytes.
pub const LONGEST_TEXT: usize = 2048;

/// How often each side says that it is there.
pub const ALIVE_EVERY: Nanos = Nanos::from_millis(200);

/// The longest lease of an experiment that a participant takes.
pub const LONGEST_LEASE: Nanos = Nanos::from_millis(60_000);

/// The longest experiment: a participant ends it then, whatever the coordinator says.
pub const LONGEST_EXPERIMENT: Nanos = Nanos::from_millis(120_000);

/// A side that says nothing for so long, while no experiment is held, is taken for lost.
pub const LONGEST_SILENCE: Nanos = Nanos::from_millis(10_000);
