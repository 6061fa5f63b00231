//! The atomics and locks of the ledger and of deferral: std's, or under `--cfg loom` those of loom,
//! which tries out every order in which threads may see each other's accesses. The models run the
//! code that ships.

#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};
#[cfg(loom)]
pub(crate) use modelled::Condvar;

/// A `const fn` without arguments. Not const under loom, whose atomics are registered with the
/// running model.
macro_rules! const_fn {
    ($(#[$attribute:meta])* $visible:vis fn $name:ident() -> $ret:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$attribute])*
        $visible const fn $name() -> $ret $body

        #[cfg(loom)]
        $(#[$attribute])*
        $visible fn $name() -> $ret $body
    };
}

pub(crate) use const_fn;

#[cfg(loom)]
mod modelled {
    use crate::clock;
    use loom::sync::MutexGuard;
    use std::sync::LockResult;
    use std::time::Duration;

    /// loom knows no time: a wait with a timeout always times out, and the model's clock moves on
    /// by as much.
    #[derive(Debug)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Condvar {
            Condvar(loom::sync::Condvar::new())
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn wait<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
        ) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        pub(crate) fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            timeout: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, TimedOut)> {
            clock::advance(timeout.into());
            loom::thread::yield_now();
            Ok((guard, TimedOut))
        }
    }

    /// Stand-in for `std::sync::WaitTimeoutResult`, which can't be made.
    #[derive(Debug)]
    pub(crate) struct TimedOut;

    impl TimedOut {
        pub(crate) fn timed_out(&self) -> bool {
            true
        }
    }
}
