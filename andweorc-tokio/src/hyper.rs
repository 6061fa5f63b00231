//! An executor for hyper and hyper-util, whose tasks are profiled: connections of a server or a
//! client, streams of HTTP/2.

use crate::profiled::{Kind, Profiled};
use crate::wrapped::Wrapped;
use std::borrow::Cow;
use std::future::Future;

/// Spawns what hyper asks to be spawned on the current tokio runtime, as targets of one name. In
/// the place of `hyper_util::rt::TokioExecutor`:
///
/// ```ignore
/// let server = hyper_util::server::conn::auto::Builder::new(Executor::new("http/2 stream"));
/// let client = hyper_util::client::legacy::Client::builder(Executor::new("upstream connection"));
/// ```
#[derive(Clone, Debug)]
pub struct Executor {
    name: Cow<'static, str>,
}

impl Executor {
    /// Tasks of this name.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Executor {
        Executor { name: name.into() }
    }
}

impl<F> ::hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    fn execute(&self, future: F) {
        let _wrapped = Wrapped::begin();
        tokio::spawn(Profiled::new(future, Kind::Name(self.name.clone())));
    }
}
