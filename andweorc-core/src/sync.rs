//! The atomics and locks of andweorc: std's, or under `--cfg loom` those of loom, which tries out
//! every order in which threads may see each other's accesses. The models run the code that ships.
//!
//! A lock here never fails. std poisons one whose holder panicked, so that nobody relies on what it
//! left half done. Nothing here is ever left so: each holder changes what is locked in one step, or
//! calls code of the program, which may panic, after that. And a profiler whose lock failed would
//! have a program panic that has long dealt with its own.

#[cfg(loom)]
use loom::sync as plain;
#[cfg(not(loom))]
use std::sync as plain;

use std::sync::{LockResult, PoisonError, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

pub(crate) use plain::{MutexGuard, atomic};

#[cfg(not(loom))]
use plain::Condvar as PlainCondvar;

#[cfg(loom)]
use modelled::Condvar as PlainCondvar;

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

/// Returns what a lock guards, whether or not a holder panicked.
fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// A lock that never fails.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(plain::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock that nobody holds.
    #[cfg(not(loom))]
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(plain::Mutex::new(value))
    }

    /// A lock that nobody holds, of the model that runs.
    #[cfg(loom)]
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(plain::Mutex::new(value))
    }

    /// Waits until the lock is free, and takes it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        unpoisoned(self.0.lock())
    }
}

/// A lock that never fails, and that many may hold who only read.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock that nobody holds.
    pub(crate) const fn new(value: T) -> RwLock<T> {
        RwLock(std::sync::RwLock::new(value))
    }

    /// Waits until nobody writes, and takes it to read.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        unpoisoned(self.0.read())
    }

    /// Waits until the lock is free, and takes it to write.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        unpoisoned(self.0.write())
    }
}

/// Wakes threads that wait for what a [`Mutex`] guards to change.
#[derive(Debug, Default)]
pub(crate) struct Condvar(PlainCondvar);

impl Condvar {
    const_fn! {
    /// Nobody waits.
    pub(crate) fn new() -> Condvar {
        Condvar(PlainCondvar::new())
    }
    }

    /// Wakes one of those that wait.
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits until it is woken, or by chance earlier.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        unpoisoned(self.0.wait(guard))
    }

    /// Waits while the condition holds.
    pub(crate) fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// Waits for as long as `timeout` at most. Says whether that was over.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, timeout) = unpoisoned(self.0.wait_timeout(guard, timeout));
        (guard, timeout.timed_out())
    }

    /// Waits while the condition holds, for as long as `timeout` at most.
    #[cfg(not(loom))]
    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        unpoisoned(self.0.wait_timeout_while(guard, timeout, condition)).0
    }

    /// Waits while the condition holds, for as long as `timeout` at most.
    #[cfg(loom)]
    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let mut waited = (guard, false);
        while !waited.1 && condition(&mut waited.0) {
            waited = self.wait_timeout(waited.0, timeout);
        }
        waited.0
    }
}

#[cfg(loom)]
mod modelled {
    use crate::clock;
    use loom::sync::MutexGuard;
    use std::sync::LockResult;
    use std::time::Duration;

    /// loom knows no time: a wait with a timeout always times out, and the model's clock moves on
    /// by as much.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Condvar {
            Condvar(loom::sync::Condvar::new())
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
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
