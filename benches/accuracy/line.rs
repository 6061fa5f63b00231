//! Lines to the world outside: services that answer after a time, and take next to no processor
//! time from the program.
//!
//! An answer is a byte on a socket, written by a thread of the line that goes before the program's:
//! where it waited for those to sleep, their timing decided how long the answer took.

use crate::machine;
use crate::outside::Vary;
use andweorc_core::clock;
use andweorc_core::time::Nanos;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::future;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Name of the threads that answer.
pub(crate) const OUTSIDE: &str = "outside";

/// A line to the world outside: one question at a time.
#[derive(Debug)]
pub(crate) struct Line {
    answers: tokio::net::UnixStream,
    /// Goes off when the answer is due.
    due: Arc<TimerFd>,
    vary: Vary,
}

impl Line {
    /// Opens one, inside the runtime's context.
    pub(crate) fn open() -> io::Result<Line> {
        let (answers, line) = UnixStream::pair()?;
        answers.set_nonblocking(true)?;
        let due = Arc::new(TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?);
        let asked = due.clone();
        outside(move || answer(&asked, line))?;
        Ok(Line { answers: tokio::net::UnixStream::from_std(answers)?, due, vary: Vary::new() })
    }

    /// Asks something whose answer takes `us` microseconds, [more or less](Vary). It never comes
    /// where a service has ended with an error, and the report would say so: nothing more gets
    /// done.
    pub(crate) async fn ask(&mut self, us: u32) {
        let takes = self.vary.next(Duration::from_micros(us.into()));
        let at = clock::now() + Nanos::from(takes);
        let at = Expiration::OneShot(TimeSpec::nanoseconds(at.0));
        let asked = self.due.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        if asked.is_err() || self.answers.read_u8().await.is_err() {
            future::pending().await
        }
    }
}

/// Runs `peer` on a thread of the world outside, which goes before the program's and ends with the
/// first error.
pub(crate) fn outside(peer: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    let named = thread::Builder::new().name(OUTSIDE.to_owned());
    named.spawn(move || {
        goes_first();
        peer()
    })?;
    Ok(())
}

fn goes_first() {
    if let Err(error) = machine::go_first() {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            eprintln!(
                "the world outside waits for processors like everybody ({error}): run this as root"
            );
        });
    }
}

/// Answers whenever it is due, until nobody listens any more.
fn answer(due: &TimerFd, mut line: UnixStream) -> io::Result<()> {
    loop {
        due.wait()?;
        line.write_all(&[1])?;
    }
}
