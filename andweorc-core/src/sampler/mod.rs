//! Sampling where threads spend their CPU time, for line targets.
//!
//! Each registered thread has a perf event of its own ([`register`]) that writes its call chain into a ring at every period. One
//! thread drains all rings every 200 us while a [`Sampling`] lives, resolves what it finds to lines, counts it, and credits the ledger when the line is
//! the target of the running experiment. Threads of andweorc are never registered, so they are never sampled.

mod perf;
mod ring;

pub use perf::PerfError;

use crate::fork::forked;
use crate::ledger::Account;
use crate::profile::TargetKind;
use crate::symbols::{Place, Symbols};
use crate::target::{Target, target};
use crate::thread::{self, LEDGER};
use crate::time::Nanos;
use perf_event::Counter;
use ring::{Record, Ring};
use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// CPU time between two samples of a thread. Finer than the usual 1 ms: what is credited a sample is the lump by which predictions are off.
pub const PERIOD: Nanos = Nanos::from_micros(250);

/// How often the rings are drained.
const DRAIN: Duration = Duration::from_micros(200);

/// Whether the kernel gives this process perf events.
///
/// # Errors
///
/// When it does not, with what to do about it.
pub fn probe() -> Result<(), PerfError> {
    perf::open(PERIOD).map(drop)
}

/// A thread that is sampled.
struct Sampled {
    account: &'static Account,
    ring: Ring,
    /// Closed before the ring is unmapped or after: the kernel counts both.
    _event: Counter,
}

static THREADS: Mutex<Vec<(u64, Sampled)>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

fn threads() -> MutexGuard<'static, Vec<(u64, Sampled)>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Unregisters the thread when it ends.
struct Registered(u64);

impl Drop for Registered {
    fn drop(&mut self) {
        // In a child of fork there are no rings, and the lock may be held for ever.
        if !forked() {
            threads().retain(|(id, _)| *id != self.0);
        }
    }
}

thread_local! {
    static REGISTERED: std::cell::OnceCell<Registered> = const { std::cell::OnceCell::new() };
}

/// Registers the calling thread: it is an entity of the ledger and is sampled, until it ends. Once is enough.
///
/// # Errors
///
/// When the kernel gives no perf events. The thread is an entity all the same.
pub fn register() -> Result<(), PerfError> {
    let account = thread::register();
    REGISTERED.with(|registered| {
        if registered.get().is_some() {
            return Ok(());
        }
        let Some(account) = account else { return Ok(()) };
        let event = perf::open(PERIOD)?;
        let ring = Ring::map(event.as_raw_fd()).map_err(PerfError::new)?;
        // Relaxed: only uniqueness matters.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        threads().push((id, Sampled { account, ring, _event: event }));
        registered.get_or_init(|| Registered(id));
        Ok(())
    })
}

/// What was sampled since the sampling began.
#[derive(Debug, Default)]
pub struct Found {
    /// Samples of each line in scope.
    pub lines: HashMap<Place, u64>,
    /// Samples in all.
    pub samples: u64,
    /// Samples that the rings lost, or that the kernel held back.
    pub lost: u64,
}

/// The thread that drains the rings, until dropped.
#[derive(Debug)]
pub struct Sampling {
    found: Arc<Mutex<Found>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampling {
    /// Starts to drain the rings.
    pub fn start(mut symbols: Symbols) -> Sampling {
        let found = Arc::new(Mutex::new(Found::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (counts, stopped) = (Arc::clone(&found), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("andweorc-sample".into()).spawn(move || {
            let mut lines = Lines::default();
            while !stopped.load(Ordering::SeqCst) {
                std::thread::sleep(DRAIN);
                let mut found = counts.lock().unwrap_or_else(PoisonError::into_inner);
                for (_, thread) in threads().iter_mut() {
                    drain(thread, &mut symbols, &mut lines, &mut found);
                }
            }
        });
        Sampling { found, stop, thread: thread.ok() }
    }

    /// Takes what was found since the last call.
    pub fn take(&self) -> Found {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take().filter(|_| !forked()) {
            // A panic of it was printed; there is nothing else to do for it.
            drop(thread.join());
        }
    }
}

/// The target of each line that was seen.
type Lines = HashMap<Place, &'static Target>;

fn drain(thread: &mut Sampled, symbols: &mut Symbols, lines: &mut Lines, found: &mut Found) {
    let account = thread.account;
    thread.ring.read(|record| match record {
        Record::Sample(chain) => {
            found.samples += 1;
            let Some(place) = symbols.charged(&chain) else { return };
            let target = *lines.entry(place.clone()).or_insert_with(|| line_target(&place));
            if thread::is_target(target) {
                LEDGER.credit(account, PERIOD);
            }
            target.record(PERIOD, PERIOD);
            *found.lines.entry(place).or_insert(0) += 1;
        }
        Record::Lost(n) => found.lost += n,
        Record::Throttled => found.lost += 1,
    });
}

/// The target of a line.
pub(crate) fn line_target(place: &Place) -> &'static Target {
    let name = format!("{}:{}", place.file, place.line);
    target(TargetKind::Line, &name, Some(&place.file), Some(place.line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_registered_thread_that_works_is_sampled() {
        let sampling = Sampling::start(Symbols::of_this_program().unwrap());
        let worker = std::thread::spawn(|| {
            if let Err(error) = register() {
                println!("skipped: {error}");
                return false;
            }
            register().expect("once is enough");
            let begun = clock::thread_cpu();
            while clock::thread_cpu() - begun < Nanos::from_millis(100) {}
            // The rings are drained while the thread lives.
            std::thread::sleep(Duration::from_millis(100));
            true
        });
        let samples = sampling.take().samples;
        if worker.join().unwrap() {
            let samples = samples + sampling.take().samples;
            assert!(samples > 0, "100 ms of work and not one sample");
            assert!(threads().is_empty(), "the thread is unregistered when it ends");
        }
    }
}
