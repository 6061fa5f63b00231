//! Lines to the world outside: services that answer after a time, which takes no processor from the program.
//!
//! An answer is a byte on a socket. Who writes it must not wait for the program's threads to sleep, or their timing decides how long the answer takes; nor may it get in their way:
//! a thread with a higher priority takes the processor on which it ran last, from whom it finds there, though another one be idle. (That thread went on there, 45 us later, in 21 to
//! 62 of 100 rounds of `semaphore`, by what was made faster and how: all of an error of 4 points.) So whoever [keeps a processor awake](crate::machine::keep_awake)
//! writes the answers that are due: it runs where nobody else does. A thread of each line does so where all processors are busy, or none is kept awake.

use crate::machine;
use crate::outside::Vary;
use andweorc_core::clock;
use andweorc_core::time::{Nanos, Real};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::future;
use std::hint;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Name of the threads that answer where nobody else does.
pub(crate) const OUTSIDE: &str = "outside";

/// Nothing is asked.
const NOTHING: i64 = Real::NEVER.0;

/// For so long whoever keeps a processor awake has the time to answer, before the thread of the line does.
const GRACE: Nanos = Nanos::from_micros(20);

/// All lines of this process.
static LINES: Mutex<Vec<Arc<Service>>> = Mutex::new(Vec::new());

/// How many they are.
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// Somebody keeps processors awake.
static AWAKE: AtomicBool = AtomicBool::new(false);

/// A line to the world outside: one question at a time.
#[derive(Debug)]
pub(crate) struct Line {
    answers: tokio::net::UnixStream,
    service: Arc<Service>,
    vary: Vary,
}

/// Its other end.
#[derive(Debug)]
struct Service {
    /// When the answer is due, real ns.
    due: AtomicI64,
    /// Goes off when the line's own thread is to look.
    timer: TimerFd,
    line: UnixStream,
}

impl Line {
    /// Opens one, inside the runtime's context.
    pub(crate) fn open() -> io::Result<Line> {
        let (answers, line) = UnixStream::pair()?;
        answers.set_nonblocking(true)?;
        let service = Arc::new(Service {
            due: AtomicI64::new(NOTHING),
            timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?,
            line,
        });
        let own = service.clone();
        thread::Builder::new().name(OUTSIDE.to_owned()).spawn(move || own.answer_late())?;
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(service.clone());
        OPENED.store(lines.len(), SeqCst);
        drop(lines);
        let answers = tokio::net::UnixStream::from_std(answers)?;
        Ok(Line { answers, service, vary: Vary::new() })
    }

    /// Asks something whose answer takes `us` microseconds, [more or less](Vary). It never comes where a service has ended with an error, and the report would say so: nothing more gets done.
    pub(crate) async fn ask(&mut self, us: u32) {
        let takes = self.vary.next(Duration::from_micros(us.into()));
        if self.service.ask(takes).is_err() || self.answers.read_u8().await.is_err() {
            future::pending().await
        }
    }
}

impl Service {
    fn ask(&self, takes: Duration) -> io::Result<()> {
        let due = clock::now() + Nanos::from(takes);
        self.due.store(due.0, SeqCst);
        let grace = if AWAKE.load(SeqCst) { GRACE } else { Nanos::ZERO };
        let at = Expiration::OneShot(TimeSpec::nanoseconds((due + grace).0));
        Ok(self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }

    /// Whether an answer is due.
    fn is_due(&self) -> bool {
        self.due.load(SeqCst) <= clock::now().0
    }

    /// Takes the answer if it is due: the calling thread has to write it then.
    fn take(&self) -> bool {
        let due = self.due.load(SeqCst);
        due <= clock::now().0 && self.due.compare_exchange(due, NOTHING, SeqCst, SeqCst).is_ok()
    }

    fn answer(&self) -> io::Result<()> {
        (&self.line).write_all(&[1])
    }

    /// Answers what nobody else did in time, until there is an error.
    fn answer_late(&self) -> io::Result<()> {
        if let Err(error) = machine::go_first() {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                eprintln!(
                    "the world outside waits for processors like everybody ({error}): run this as root"
                );
            });
        }
        loop {
            self.timer.wait()?;
            // The two clocks may differ by some ns.
            while (0..GRACE.0).contains(&(self.due.load(SeqCst) - clock::now().0)) {
                hint::spin_loop();
            }
            if self.take() {
                self.answer()?;
            }
        }
    }
}

/// Of a thread that keeps a processor awake.
#[derive(Debug, Default)]
pub(crate) struct Answering {
    lines: Vec<Arc<Service>>,
}

impl Answering {
    pub(crate) fn begin() -> Answering {
        AWAKE.store(true, SeqCst);
        Answering::default()
    }

    /// Writes the answers that are due.
    pub(crate) fn answer(&mut self) {
        if self.lines.len() != OPENED.load(SeqCst) {
            self.lines.clone_from(&LINES.lock().unwrap_or_else(PoisonError::into_inner));
        }
        for line in self.lines.iter().filter(|line| line.is_due()) {
            // Whom the answer wakes may take this processor, so first. It fails for what is no timer, only.
            line.timer.unset().ok();
            // As late as possible: who loses the processor with an answer in hand is late with it. Where it fails nobody waits for it any more.
            if line.take() {
                line.answer().ok();
            }
        }
    }
}
