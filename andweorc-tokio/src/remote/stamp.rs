//! The stamp of a message, and how a task takes one in.

use super::hold::Hold;
use andweorc_core::hooks::thread::ledger;
use andweorc_core::hooks::time::{Nanos, Virtual};
use andweorc_core::hooks::{clock, enabled, remote};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The delay that the sender of a message had taken, in an experiment. See [`stamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    experiment: u32,
    /// Never below zero.
    delay: Nanos,
}

impl Stamp {
    /// Of the experiment of this number, and of a delay in nanoseconds. `None` of a delay of more
    /// than `i64::MAX`.
    pub fn new(experiment: u32, delay_ns: u64) -> Option<Stamp> {
        let delay = Nanos(i64::try_from(delay_ns).ok()?);
        Some(Stamp { experiment, delay })
    }

    /// The number of the experiment.
    pub fn experiment(self) -> u32 {
        self.experiment
    }

    /// The delay that the sender had taken since the experiment began, in nanoseconds.
    pub fn delay_ns(self) -> u64 {
        self.delay.0 as u64
    }

    /// Whether it is of the experiment that is under way.
    pub(super) fn is_current(self) -> bool {
        remote::current_experiment() == Some(self.experiment)
    }

    /// The delay that its sender has taken, as its own ledger has it, while the experiment lasts.
    pub(super) fn taken(self) -> Nanos {
        ledger().forgiven_delay() + self.delay
    }

    /// The stamp for a binary protocol: number and delay, both with the least byte first.
    pub fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.experiment.to_le_bytes());
        bytes[4..].copy_from_slice(&self.delay_ns().to_le_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Stamp::to_bytes) wrote. `None` of what it would never write.
    pub fn from_bytes(bytes: [u8; 12]) -> Option<Stamp> {
        let (experiment, delay) = bytes.split_first_chunk()?;
        let delay = u64::from_le_bytes(delay.try_into().ok()?);
        Stamp::new(u32::from_le_bytes(*experiment), delay)
    }
}

/// The stamp of a message that the calling task, or thread, is about to send. `None` while no
/// experiment is under way, and most often while one is that concerns this process alone.
///
/// For protocols of one's own: send it with the message to another service that is profiled with
/// this one, whose [`received`] takes it in. HTTP and gRPC have [layers](super).
#[inline]
pub fn stamp() -> Option<Stamp> {
    if !enabled() {
        return None;
    }
    let remote::Stamp { experiment, taken } = remote::stamp()?;
    Some(Stamp { experiment, delay: taken.max(Nanos::ZERO) })
}

/// Takes in a message of another service that is profiled with this one, and its [`stamp`], if it
/// has one. The calling task goes on when the message is due in virtual time.
///
/// The wait for the message must be marked as [in this
/// process](crate::Profile::in_process): else the task has been held already as for a message of
/// the world outside.
///
/// ```
/// use andweorc_tokio::{Profile, remote};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::TcpStream;
///
/// /// Where there is no stamp, the number that no stamp is.
/// const NONE: [u8; 12] = [u8::MAX; 12];
///
/// async fn ask(stream: &mut TcpStream, question: u32) -> std::io::Result<u32> {
///     stream.write_all(&remote::stamp().map_or(NONE, remote::Stamp::to_bytes)).await?;
///     stream.write_u32(question).await?;
///     let mut stamp = NONE;
///     stream.read_exact(&mut stamp).in_process().await?;
///     let answer = stream.read_u32().in_process().await?;
///     remote::received(remote::Stamp::from_bytes(stamp)).await;
///     Ok(answer)
/// }
/// # drop(ask);
/// # assert_eq!(remote::Stamp::from_bytes(NONE), None);
/// ```
pub fn received(stamp: Option<Stamp>) -> Received {
    Received { stage: Stage::Came(stamp), hold: Hold::default() }
}

/// Takes in what came now from the world outside, and should have been held as it came: who waited
/// for it had `taken` this delay.
pub(super) fn received_outside(taken: Nanos) -> Received {
    let taken = taken.max(ledger().forgiven_delay());
    Received { stage: Stage::Held(clock::now().less(taken)), hold: Hold::default() }
}

/// Future of a task that takes a message in. See [`received`].
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Received {
    stage: Stage,
    hold: Hold,
}

/// How far a message has been taken in.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Came(Option<Stamp>),
    Held(Virtual),
    Done,
}

impl Future for Received {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Received { stage, hold } = &mut *self;
        if let Stage::Came(stamp) = *stage {
            let stamp =
                stamp.map(|Stamp { experiment, delay: taken }| remote::Stamp { experiment, taken });
            let due = if enabled() { remote::received(stamp, clock::now()) } else { None };
            *stage = due.map_or(Stage::Done, Stage::Held);
        }
        if let Stage::Held(due) = *stage {
            ready!(hold.poll(due, cx));
            *stage = Stage::Done;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_were_written() {
        for (experiment, delay) in [(0, 0), (1, 2), (u32::MAX, i64::MAX as u64)] {
            let stamp = Stamp::new(experiment, delay).unwrap();
            assert_eq!(Stamp::from_bytes(stamp.to_bytes()), Some(stamp));
        }
        assert_eq!(Stamp::new(0, 1 << 63), None);
        assert_eq!(Stamp::from_bytes([u8::MAX; 12]), None);
    }
}
