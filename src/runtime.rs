//! Runtimes that are built by hand.

use crate::start::without_main;
use andweorc_tokio::runtime::BuilderExt as Workers;
pub use andweorc_tokio::runtime::Hooks;
use tokio::runtime::Builder;

/// Lets a runtime that is built by hand take part.
///
/// With `ANDWEORC_ENABLED` set it starts to profile, unless `#[andweorc::main]`, say, has before.
///
/// ```
/// use andweorc::runtime::BuilderExt;
/// let runtime =
///     tokio::runtime::Builder::new_current_thread().enable_profiling().build().unwrap();
/// # drop(runtime);
/// ```
pub trait BuilderExt: sealed::Sealed {
    /// Installs andweorc's hooks on the workers: `on_thread_park` and `on_thread_unpark`. The
    /// runtime gets a driver for I/O too, like by `enable_io`: there its workers notice that a wake
    /// is due which an experiment has held.
    ///
    /// A builder has one slot a hook, and the last call wins: hooks set before are replaced. To
    /// have both, hand yours to [`enable_profiling_with`](BuilderExt::enable_profiling_with).
    fn enable_profiling(&mut self) -> &mut Self;

    /// Does the same as [`enable_profiling`](BuilderExt::enable_profiling), and calls `hooks` too.
    fn enable_profiling_with(&mut self, hooks: Hooks) -> &mut Self;
}

/// Keeps [`BuilderExt`] to tokio's own builder, so that it may get further methods.
mod sealed {
    /// Bound of the trait.
    pub trait Sealed {}
}

impl sealed::Sealed for Builder {}

impl BuilderExt for Builder {
    fn enable_profiling(&mut self) -> &mut Self {
        BuilderExt::enable_profiling_with(self, Hooks::new())
    }

    fn enable_profiling_with(&mut self, hooks: Hooks) -> &mut Self {
        without_main::start();
        Workers::enable_profiling_with(self, hooks)
    }
}
