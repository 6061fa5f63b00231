//! Module from which `#[andweorc::main]` and `#[andweorc::test]` build runtimes: tokio's attributes
//! generate calls of `<crate>::runtime::Builder`, and this module is their `crate`.
//!
//! It has all methods that the attributes of any supported version of tokio may call, also where
//! [`tokio::runtime::Builder`] is older: `Newer` stands in for what that lacks.

pub use tokio::pin;

/// Counterpart of `tokio::runtime`, as far as tokio's attributes use it.
pub mod runtime {
    use crate::start::background::Background;
    #[allow(unused_imports, reason = "tokio 1.51 has all of it itself")]
    use crate::start::newer::Newer;
    use crate::start::without_main;
    use andweorc_tokio::Profile;
    use andweorc_tokio::Wrapped;
    use andweorc_tokio::runtime::BuilderExt;
    use std::fmt;
    use std::future::Future;
    use std::io;
    use std::pin::{Pin, pin};

    #[cfg(tokio_unstable)]
    pub use tokio::runtime::UnhandledPanic;

    /// A [`tokio::runtime::Builder`] whose workers have andweorc's hooks.
    #[derive(Debug)]
    pub struct Builder(tokio::runtime::Builder);

    impl Builder {
        /// See [`tokio::runtime::Builder::new_multi_thread`].
        pub fn new_multi_thread() -> Builder {
            Builder(tokio::runtime::Builder::new_multi_thread())
        }

        /// See [`tokio::runtime::Builder::new_current_thread`].
        pub fn new_current_thread() -> Builder {
            Builder(tokio::runtime::Builder::new_current_thread())
        }

        /// See [`tokio::runtime::Builder::enable_all`].
        pub fn enable_all(&mut self) -> &mut Self {
            self.0.enable_all();
            self
        }

        /// See [`tokio::runtime::Builder::worker_threads`].
        pub fn worker_threads(&mut self, workers: usize) -> &mut Self {
            self.0.worker_threads(workers);
            self
        }

        /// See `tokio::runtime::Builder::name`.
        pub fn name(&mut self, name: &str) -> &mut Self {
            self.0.name(name);
            self
        }

        /// See `tokio::runtime::Builder::start_paused`.
        #[cfg(feature = "test-util")]
        pub fn start_paused(&mut self, paused: bool) -> &mut Self {
            self.0.start_paused(paused);
            self
        }

        /// See `tokio::runtime::Builder::unhandled_panic`.
        #[cfg(tokio_unstable)]
        pub fn unhandled_panic(&mut self, behavior: UnhandledPanic) -> &mut Self {
            self.0.unhandled_panic(behavior);
            self
        }

        /// Builds the runtime.
        ///
        /// # Errors
        ///
        /// As [`tokio::runtime::Builder::build`].
        pub fn build(&mut self) -> io::Result<Runtime> {
            self.0.enable_profiling().build().map(Runtime)
        }

        /// Builds a runtime of one thread that spawns tasks that need not be `Send`.
        ///
        /// # Errors
        ///
        /// As `tokio::runtime::Builder::build_local`; and where tokio has no such runtime.
        pub fn build_local(&mut self, _: LocalOptions) -> io::Result<LocalRuntime> {
            let runtime = self.0.enable_profiling().build_local(Default::default())?;
            Ok(LocalRuntime(Box::new(move |future| runtime.block_on(future))))
        }
    }

    /// Counterpart of `tokio::runtime::LocalOptions`, which has no options yet.
    #[derive(Debug, Default)]
    pub struct LocalOptions(());

    /// A [`tokio::runtime::Runtime`] that is profiled while it runs its root future.
    #[derive(Debug)]
    pub struct Runtime(tokio::runtime::Runtime);

    impl Runtime {
        /// Runs `future` to its end, profiled if the environment says so.
        pub fn block_on<F: Future>(&self, future: F) -> F::Output {
            let background = session();
            let _wrapped = Wrapped::begin();
            let output = self.0.block_on(future.profiled("main"));
            drop(background);
            output
        }
    }

    /// The session that the program's layer, say, has started before, or else a new one.
    fn session() -> Background {
        without_main::take().unwrap_or_else(Background::from_env)
    }

    type BlockOn = dyn Fn(Pin<&mut dyn Future<Output = ()>>);

    /// A `tokio::runtime::LocalRuntime` that is profiled while it runs its root future. Its type
    /// can't be named: not every supported version of tokio has it.
    pub struct LocalRuntime(Box<BlockOn>);

    impl LocalRuntime {
        /// Runs `future` to its end, profiled if the environment says so.
        pub fn block_on<F: Future>(&self, future: F) -> F::Output {
            let background = session();
            let mut output = None;
            let _wrapped = Wrapped::begin();
            (self.0)(pin!(async { output = Some(future.profiled("main").await) }));
            drop(background);
            output.expect("`block_on` returns when the future has completed")
        }
    }

    impl fmt::Debug for LocalRuntime {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("LocalRuntime").finish_non_exhaustive()
        }
    }
}
