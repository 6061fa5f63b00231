//! What `#[andweorc::main]` and `#[andweorc::test]` build runtimes from: tokio's attributes generate calls of
//! `<crate>::runtime::Builder`, and this module is their `crate`.

pub use tokio::pin;

/// As `tokio::runtime`, as far as tokio's attributes use it.
pub mod runtime {
    use crate::start::background::Background;
    use andweorc_tokio::Profile;
    use andweorc_tokio::runtime::BuilderExt;
    use std::future::Future;
    use std::io;

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
            self.0.andweorc().build().map(Runtime)
        }
    }

    /// A [`tokio::runtime::Runtime`] that is profiled while it runs its root future.
    #[derive(Debug)]
    pub struct Runtime(tokio::runtime::Runtime);

    impl Runtime {
        /// Runs `future` to its end, profiled if the environment says so.
        pub fn block_on<F: Future>(&self, future: F) -> F::Output {
            let background = Background::from_env();
            let output = self.0.block_on(future.profiled("main"));
            drop(background);
            output
        }
    }
}
