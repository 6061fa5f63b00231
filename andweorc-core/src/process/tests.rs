//! Processes that tests have for themselves.

use super::Process;
use crate::sampler::contexts::Contexts;
use crate::thread::processors::Processors;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;
use tests_support::kept;

/// A process of a test's own, for the threads that [enter](Own::enter) it. It is there as long as
/// the tests run, as the real one is.
#[derive(Clone, Copy)]
pub(crate) struct Own {
    pub(super) process: &'static Process,
    pub(super) processors: &'static Processors,
    /// Made when they are needed first: they are large.
    contexts: &'static OnceLock<Contexts>,
}

thread_local! {
    static OWN: Cell<Option<Own>> = const { Cell::new(None) };
}

impl Own {
    /// A process in which nothing has happened.
    pub(crate) fn new() -> Own {
        Own {
            process: kept(Process::new()),
            processors: kept(Processors::new()),
            contexts: kept(OnceLock::new()),
        }
    }

    /// Runs `test` on a new thread, in a process in which nothing has happened.
    pub(crate) fn run<T: Send>(test: impl FnOnce(Own) -> T + Send) -> T {
        let own = Own::new();
        let run = || {
            own.enter();
            test(own)
        };
        thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The calling thread, a new one, is in this process from now on.
    pub(crate) fn enter(self) {
        OWN.set(Some(self));
    }

    /// Has a new thread that is to run `run` enter the process that the calling thread has entered,
    /// if that is a test's own.
    pub(crate) fn hand_on<T>(run: impl FnOnce() -> T) -> impl FnOnce() -> T {
        let own = Own::get();
        move || {
            if let Some(own) = own {
                own.enter();
            }
            run()
        }
    }

    pub(super) fn contexts(self) -> Contexts {
        *self.contexts.get_or_init(Contexts::new)
    }

    /// The process that the calling thread has entered, if that is a test's own.
    #[inline(always)]
    pub(super) fn get() -> Option<Own> {
        OWN.get()
    }
}
