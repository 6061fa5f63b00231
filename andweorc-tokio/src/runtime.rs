//! An extension of [`tokio::runtime::Builder`]: workers that tell when they are idle.

#[cfg(tokio_unstable)]
use crate::unwrapped::watch;
use crate::{deferred, driver_timer};
use andweorc_core::hooks::thread::{self, was_enabled};
use std::fmt;
use tokio::runtime::{Builder, Handle};

/// Lets a runtime that is built by hand take part.
///
/// ```
/// use andweorc_tokio::runtime::BuilderExt;
/// let runtime =
///     tokio::runtime::Builder::new_current_thread().enable_profiling().build().unwrap();
/// # drop(runtime);
/// ```
pub trait BuilderExt: sealed::Sealed {
    /// Installs andweorc's hooks on the workers: `on_thread_park` and `on_thread_unpark`. The
    /// runtime gets a driver for I/O too, as by `enable_io`: there its workers notice that a wake
    /// is due which an experiment has held.
    ///
    /// A builder has one slot a hook, and the last call wins: hooks set before are replaced. To
    /// have both, hand yours to [`enable_profiling_with`](BuilderExt::enable_profiling_with).
    fn enable_profiling(&mut self) -> &mut Self;

    /// Installs hooks as [`enable_profiling`](BuilderExt::enable_profiling) does, and calls `hooks`
    /// too.
    fn enable_profiling_with(&mut self, hooks: Hooks) -> &mut Self;
}

/// Keeps [`BuilderExt`] to tokio's own builder, so that it may get further methods.
mod sealed {
    /// Bound of the trait.
    pub trait Sealed {}
}

type Hook = Box<dyn Fn() + Send + Sync>;

/// Hooks of your own, to be called beside andweorc's.
#[derive(Default)]
#[must_use = "hooks are called once a builder has them"]
pub struct Hooks {
    park: Option<Hook>,
    unpark: Option<Hook>,
}

impl Hooks {
    /// No hooks.
    pub fn new() -> Hooks {
        Hooks::default()
    }

    /// Called just before a worker parks, as by `Builder::on_thread_park`.
    pub fn on_thread_park(mut self, hook: impl Fn() + Send + Sync + 'static) -> Hooks {
        self.park = Some(Box::new(hook));
        self
    }

    /// Called just after a worker unparks, as by `Builder::on_thread_unpark`.
    pub fn on_thread_unpark(mut self, hook: impl Fn() + Send + Sync + 'static) -> Hooks {
        self.unpark = Some(Box::new(hook));
        self
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("park", &self.park.is_some())
            .field("unpark", &self.unpark.is_some())
            .finish()
    }
}

/// Tells andweorc which threads belong to a runtime. All others take part as plain threads from
/// then on, where their waits are seen. Called when a runtime is built with
/// [`BuilderExt::enable_profiling`].
pub fn tell_threads_apart() {
    thread::when_of_a_runtime(|| Handle::try_current().is_ok());
}

impl sealed::Sealed for Builder {}

impl BuilderExt for Builder {
    fn enable_profiling(&mut self) -> &mut Self {
        self.enable_profiling_with(Hooks::new())
    }

    fn enable_profiling_with(&mut self, hooks: Hooks) -> &mut Self {
        let Hooks { park, unpark } = hooks;
        let alarm = driver_timer::Shared::default();
        tell_threads_apart();
        self.enable_io();
        self.on_thread_park(move || {
            if let Some(hook) = &park {
                hook();
            }
            // Also when it is off again: wakes may be held then, and other threads know who parks.
            if was_enabled() {
                deferred::ends();
                let watches = driver_timer::parks(&alarm);
                #[cfg(tokio_unstable)]
                watch::idle();
                thread::parked(watches);
            }
        })
        .on_thread_unpark(move || {
            if was_enabled() {
                let has_watched = driver_timer::unparks();
                #[cfg(tokio_unstable)]
                watch::unparks(has_watched);
                #[cfg(not(tokio_unstable))]
                let _ = has_watched;
                thread::unparked();
            }
            if let Some(hook) = &unpark {
                hook();
            }
        })
    }
}
