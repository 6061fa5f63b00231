//! Methods that [`tokio::runtime::Builder`] does not have in every supported version of tokio.
//!
//! A method of the type itself goes before one of a trait: where tokio has the method, the one here
//! is not called. So a call compiles with any version, without asking which one it is.

use std::convert::Infallible;
use std::future::Future;
use std::io;

/// Methods of newer versions of tokio.
#[allow(dead_code, reason = "only where tokio is old")]
pub(crate) trait Newer {
    /// Since 1.51, as is the key `name` of the attributes.
    fn name(&mut self, _: &str) -> &mut Self {
        self
    }

    /// Since 1.51, and before with `--cfg tokio_unstable`. The attributes refuse `flavor = "local"`
    /// where it is missing.
    fn build_local(&mut self, (): ()) -> io::Result<NoRuntime> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "tokio's LocalRuntime needs tokio 1.51, or `--cfg tokio_unstable`",
        ))
    }
}

impl Newer for tokio::runtime::Builder {}

/// In the place of a `LocalRuntime`: there is none.
#[derive(Debug)]
pub(crate) struct NoRuntime(Infallible);

impl NoRuntime {
    #[allow(dead_code, reason = "only where tokio is old")]
    pub(crate) fn block_on<F: Future>(&self, _: F) -> F::Output {
        match self.0 {}
    }
}
