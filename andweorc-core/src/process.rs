//! The state of the process that is profiled, all in one place.
//!
//! A [`Process`] is made of its parts. Each part is a plain struct of the module that it belongs
//! to, knows nothing of the others, and is handed what it needs of them. Whoever acts for the
//! process gets at a part by [`process`], at a constant address.
//!
//! Tests of this crate that would disturb each other [make](tests::Own) a process of their own.

pub(crate) mod asked;
mod machine;
#[cfg(test)]
pub(crate) mod tests;

use crate::cache_padded::CachePadded;
use crate::defer::deferral::Deferral;
use crate::late_events::{DriverPolls, ReadinessLog};
use crate::ledger::Ledger;
use crate::point::Points;
use crate::program_clock::state::ProgramClock;
use crate::sampler::contexts::Contexts;
use crate::session::sessions::Sessions;
use crate::sync::{Mutex, const_fn};
use crate::target::Targets;
use crate::thread::processors::Processors;
use crate::thread::shared::Shared;
use crate::unwrapped::Tasks;
use asked::Asked;
use machine::Machine;
use std::sync::OnceLock;

/// Says why something is not seen, if it knows.
///
/// A run calls it at its end, on the profiler's thread, while andweorc is on.
pub(crate) type Hint = fn() -> Option<String>;

/// State that all threads of a process share.
pub(crate) struct Process {
    /// The delays that are owed.
    pub(crate) ledger: Ledger,
    /// Whether andweorc is on, and what the running experiment asks of threads.
    pub(crate) asked: CachePadded<Asked>,
    /// State that threads share beside the ledger.
    pub(crate) threads: Shared,
    /// Wakes that are held back.
    pub(crate) deferral: Deferral,
    /// When workers looked for input.
    pub(crate) driver_polls: DriverPolls,
    /// When input came.
    pub(crate) readiness: ReadinessLog,
    /// How the clock goes that the program reads.
    pub(crate) program_clock: ProgramClock,
    /// All that is counted.
    pub(crate) points: Points,
    /// All that can be sped up.
    pub(crate) targets: Targets,
    /// Facts about the machine.
    pub(crate) machine: Machine,
    /// The one session at a time.
    pub(crate) sessions: Sessions,
    /// Takes part in the polls of tasks that nobody wrapped.
    pub(crate) tasks: OnceLock<&'static dyn Tasks>,
    /// Functions that may know why nothing was seen.
    pub(crate) hints: Mutex<Vec<Hint>>,
}

impl Process {
    const_fn! {
    /// A process in which andweorc has not been on yet.
    pub(crate) fn new() -> Process {
        Process {
            ledger: Ledger::new(),
            asked: CachePadded::new(Asked::new()),
            threads: Shared::new(),
            deferral: Deferral::new(),
            driver_polls: DriverPolls::new(),
            readiness: ReadinessLog::new(),
            program_clock: ProgramClock::new(),
            points: Points::new(),
            targets: Targets::new(),
            machine: Machine::new(),
            sessions: Sessions::new(),
            tasks: OnceLock::new(),
            hints: Mutex::new(Vec::new()),
        }
    }
    }
}

#[cfg(not(loom))]
static PROCESS: Process = Process::new();

#[cfg(loom)]
loom::lazy_static! {
    /// The process of this run of the model.
    static ref PROCESS: Process = Process::new();
}

/// Tables with a row for each processor. They are apart from the rest since they are zeroes of the
/// binary, in which the pages of processors that the machine does not have are never there.
static PROCESSORS: Processors = Processors::new();

/// The state of this process.
#[inline(always)]
pub(crate) fn process() -> &'static Process {
    #[cfg(test)]
    if let Some(own) = tests::Own::get() {
        return own.process;
    }
    &PROCESS
}

/// Tables of this process with a row for each processor.
#[inline(always)]
pub(crate) fn processors() -> &'static Processors {
    #[cfg(test)]
    if let Some(own) = tests::Own::get() {
        return own.processors;
    }
    &PROCESSORS
}

/// Tables of this process with a row for each context. They are apart from the rest for the same
/// reason.
#[inline(always)]
pub(crate) fn contexts() -> Contexts {
    #[cfg(test)]
    if let Some(own) = tests::Own::get() {
        return own.contexts();
    }
    Contexts::REAL
}

/// The ledger of this process.
#[inline(always)]
pub fn ledger() -> &'static Ledger {
    &process().ledger
}
